#include "proxy/bus/stored_lines.h"

#include <charconv>
#include <chrono>

#include <fmt/format.h>

namespace tw::bus {

namespace {

constexpr std::int64_t kFetchPatienceMs = 3000;
/// How long the server keeps what we asked it for when we are gone.
constexpr std::int64_t kForgetAfter = std::chrono::nanoseconds{std::chrono::seconds{30}}.count();

/// Hands on the headers of messages from a place on. Nothing: there are none.
Tried<NatsSubscription> look(const Link& link, const std::string& stream,
                             const std::string& subjects, std::uint64_t from) {
    jsSubOptions wishes;
    jsSubOptions_Init(&wishes);
    wishes.Stream = stream.c_str();
    wishes.Ordered = true;
    wishes.Config.DeliverPolicy = js_DeliverByStartSequence;
    wishes.Config.OptStartSeq = from;
    wishes.Config.HeadersOnly = true;
    wishes.Config.InactiveThreshold = kForgetAfter;
    natsSubscription* made = nullptr;
    jsErrCode code{};
    const natsStatus status =
        js_SubscribeSync(&made, link.stream_api(), subjects.c_str(), nullptr, &wishes, &code);
    if (status != NATS_OK) {
        return tl::unexpected{fmt::format("reading from {}: {}", stream, link.describe(status))};
    }
    return NatsSubscription{made};
}

/// How many messages it will hand on that are there now.
Tried<std::uint64_t> count(const Link& link, natsSubscription* subscription) {
    jsConsumerInfo* found = nullptr;
    jsErrCode code{};
    const natsStatus status =
        natsSubscription_GetConsumerInfo(&found, subscription, nullptr, &code);
    const ConsumerInfo info{found};
    if (status != NATS_OK) {
        return tl::unexpected{fmt::format("counting the stored lines: {}", link.describe(status))};
    }
    return info->NumPending + info->Delivered.Consumer;
}

} // namespace

std::string message_id(std::string_view run, std::uint64_t line) {
    return fmt::format("{}:{}", run, line);
}

std::uint64_t line_of_id(std::string_view id, std::string_view run) {
    if (!id.starts_with(run) || id.size() <= run.size() || id[run.size()] != ':') {
        return 0;
    }
    const std::string_view digits = id.substr(run.size() + 1);
    std::uint64_t line = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), line);
    return error == std::errc{} && end == digits.data() + digits.size() ? line : 0;
}

std::string_view run_of_id(std::string_view id) {
    constexpr std::size_t kUuid = 36; // see make_run_id
    const std::string_view run = id.substr(0, kUuid);
    return line_of_id(id, run) != 0 && run.size() == kUuid ? run : std::string_view{};
}

Tried<StoredLines> find_stored_lines(const Link& link, const std::string& stream,
                                     const std::string& subjects, const std::string& run,
                                     std::uint64_t behind, std::uint64_t until) {
    StoredLines stored;
    // Who made the stream anew counts from 1 again.
    const std::uint64_t from = behind > until ? 1 : behind + 1;
    if (from > until) {
        return stored;
    }
    const auto subscription = look(link, stream, subjects, from);
    if (!subscription) {
        return tl::unexpected{subscription.error()};
    }
    const auto messages = count(link, subscription->get());
    if (!messages) {
        return tl::unexpected{messages.error()};
    }
    bool more = *messages != 0;
    while (more) {
        natsMsg* next = nullptr;
        const natsStatus status =
            natsSubscription_NextMsg(&next, subscription->get(), kFetchPatienceMs);
        const NatsMessage message{next};
        jsMsgMetaData* data = nullptr;
        if (status != NATS_OK || natsMsg_GetMetaData(&data, next) != NATS_OK) {
            return tl::unexpected{
                fmt::format("reading the stored lines: {}", link.describe(status))};
        }
        const MessagePlace place{data};
        const char* id = nullptr;
        if (natsMsgHeader_Get(next, kMessageId, &id) == NATS_OK) {
            if (const std::uint64_t line = line_of_id(id, run); line != 0) {
                stored.emplace(line, place->Sequence.Stream);
            }
        }
        more = place->NumPending != 0 && place->Sequence.Stream < until;
    }
    std::ignore = natsSubscription_Unsubscribe(subscription->get());
    return stored;
}

} // namespace tw::bus
