#pragma once

#include <memory>

#include <nats/nats.h>

namespace tw::bus {

/// Gives back an object of the NATS library.
template <auto Destroy>
struct GiveBack {
    template <typename Object>
    void operator()(Object* object) const {
        Destroy(object);
    }
};

using NatsOptions = std::unique_ptr<natsOptions, GiveBack<natsOptions_Destroy>>;
using NatsConnection = std::unique_ptr<natsConnection, GiveBack<natsConnection_Destroy>>;
using NatsSubscription = std::unique_ptr<natsSubscription, GiveBack<natsSubscription_Destroy>>;
using NatsMessage = std::unique_ptr<natsMsg, GiveBack<natsMsg_Destroy>>;
using NatsInbox = std::unique_ptr<natsInbox, GiveBack<natsInbox_Destroy>>;
using JetStream = std::unique_ptr<jsCtx, GiveBack<jsCtx_Destroy>>;
using JetStreamInfo = std::unique_ptr<jsStreamInfo, GiveBack<jsStreamInfo_Destroy>>;
using StreamNames = std::unique_ptr<jsStreamNamesList, GiveBack<jsStreamNamesList_Destroy>>;
using ConsumerInfo = std::unique_ptr<jsConsumerInfo, GiveBack<jsConsumerInfo_Destroy>>;
using MessagePlace = std::unique_ptr<jsMsgMetaData, GiveBack<jsMsgMetaData_Destroy>>;

} // namespace tw::bus
