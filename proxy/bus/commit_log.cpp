#include "proxy/bus/commit_log.h"

#include "proxy/bus/publish_answer.h"
#include "proxy/bus/run_id.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

namespace tw::bus {

namespace {

constexpr std::int64_t kPatienceMs = 3000;
/// A batch a second for a day; older ones are settled with the consumer long since.
constexpr std::int64_t kKept = 100'000;
/// Of nats-server: another message is the last one.
constexpr std::string_view kWrongLast = "wrong last sequence";

} // namespace

std::string commit_text(std::string_view id, const NumberSet& places) {
    return fmt::format("{} {}", id, places.text());
}

Tried<CommitLog> CommitLog::open(const Link& link, const std::string& stream,
                                 const std::string& consumer) {
    const std::string name = stream + "-collected";
    CommitLog log{link, name, fmt::format("{}.{}", name, consumer)};
    if (auto made = log.make_stream(); !made) {
        return tl::unexpected{made.error()};
    }
    if (auto done = log.read_on(); !done) {
        return tl::unexpected{done.error()};
    }
    return log;
}

Tried<void> CommitLog::make_stream() const {
    const std::string subjects = stream_ + ".*";
    const char* subject = subjects.c_str();
    jsStreamConfig config;
    jsStreamConfig_Init(&config);
    config.Name = stream_.c_str();
    config.Description = "what collectors of twscope have written";
    config.Subjects = &subject;
    config.SubjectsLen = 1;
    config.Discard = js_DiscardOld;
    config.Storage = js_FileStorage;
    config.MaxMsgsPerSubject = kKept;
    jsStreamInfo* found = nullptr;
    jsErrCode code{};
    natsStatus status =
        js_GetStreamInfo(&found, link_->stream_api(), stream_.c_str(), nullptr, &code);
    if (status == NATS_NOT_FOUND) {
        status = js_AddStream(&found, link_->stream_api(), &config, nullptr, &code);
    }
    const JetStreamInfo info{found};
    if (status != NATS_OK && code != JSStreamNameExistErr) {
        return tl::unexpected{
            fmt::format("the stream {} cannot be made: {}", stream_, link_->describe(status))};
    }
    return {};
}

void CommitLog::take(std::string_view text, std::uint64_t place) {
    const auto blank = text.find(' ');
    read_ = place;
    if (blank == std::string_view::npos) {
        return;
    }
    if (const auto places = NumberSet::read(text.substr(blank + 1))) {
        done_.insert(*places);
        batches_.emplace(text.substr(0, blank));
    }
}

Tried<void> CommitLog::read_on() {
    jsSubOptions wishes;
    jsSubOptions_Init(&wishes);
    wishes.Stream = stream_.c_str();
    wishes.Ordered = true;
    wishes.Config.DeliverPolicy = js_DeliverByStartSequence;
    wishes.Config.OptStartSeq = read_ + 1;
    natsSubscription* made = nullptr;
    jsErrCode code{};
    natsStatus status =
        js_SubscribeSync(&made, link_->stream_api(), subject_.c_str(), nullptr, &wishes, &code);
    const NatsSubscription subscription{made};
    jsConsumerInfo* found = nullptr;
    if (status == NATS_OK) {
        status = natsSubscription_GetConsumerInfo(&found, made, nullptr, &code);
    }
    const ConsumerInfo info{found};
    bool more = status == NATS_OK && info->NumPending + info->Delivered.Consumer != 0;
    while (status == NATS_OK && more) {
        natsMsg* next = nullptr;
        status = natsSubscription_NextMsg(&next, made, kPatienceMs);
        const NatsMessage message{next};
        jsMsgMetaData* data = nullptr;
        if (status == NATS_OK) {
            status = natsMsg_GetMetaData(&data, next);
        }
        const MessagePlace place{data};
        if (status == NATS_OK) {
            take({natsMsg_GetData(next), static_cast<std::size_t>(natsMsg_GetDataLength(next))},
                 place->Sequence.Stream);
            more = place->NumPending != 0;
        }
    }
    if (status != NATS_OK) {
        return tl::unexpected{fmt::format("reading from {}: {}", stream_, link_->describe(status))};
    }
    std::ignore = natsSubscription_Unsubscribe(made);
    return {};
}

Tried<bool> CommitLog::add(const std::string& id, const NumberSet& places) {
    const std::string text = commit_text(id, places);
    natsMsg* made = nullptr;
    natsStatus status = natsMsg_Create(&made, subject_.c_str(), nullptr, text.data(),
                                       static_cast<int>(text.size()));
    const NatsMessage message{made};
    if (status == NATS_OK) {
        status = natsMsgHeader_Set(made, "Nats-Expected-Last-Subject-Sequence",
                                   std::to_string(read_).c_str());
    }
    natsMsg* got = nullptr;
    if (status == NATS_OK) {
        status = natsConnection_RequestMsg(&got, link_->connection(), made, kPatienceMs);
    }
    const NatsMessage reply{got};
    if (status != NATS_OK) {
        return tl::unexpected{fmt::format("writing to {}: {}", stream_, link_->describe(status))};
    }
    const PublishAnswer answer = read_publish_answer(
        {natsMsg_GetData(got), static_cast<std::size_t>(natsMsg_GetDataLength(got))});
    if (answer.place != 0) {
        take(text, answer.place);
        return true;
    }
    if (!answer.complaint.starts_with(kWrongLast)) {
        return tl::unexpected{fmt::format("writing to {}: {}", stream_, answer.complaint)};
    }
    if (auto done = read_on(); !done) {
        return tl::unexpected{done.error()};
    }
    return false;
}

Tried<void> CommitLog::fence() {
    while (true) {
        const auto added = add(make_run_id(), {});
        if (!added) {
            return tl::unexpected{added.error()};
        }
        if (*added) {
            return {};
        }
    }
}

} // namespace tw::bus
