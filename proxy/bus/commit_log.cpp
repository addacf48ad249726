#include "proxy/bus/commit_log.h"

#include "proxy/bus/publisher.h"
#include "proxy/bus/subjects.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace tw::bus {

namespace {

std::optional<std::uint64_t> number_of(std::string_view text) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional{number}
                                                                    : std::nullopt;
}

} // namespace

void NumberSet::insert(std::uint64_t first, std::uint64_t last) {
    auto at = ranges_.upper_bound(first);
    if (at != ranges_.begin() &&
        std::prev(at)->second >= first - std::min<std::uint64_t>(first, 1)) {
        --at;
        first = at->first;
    }
    while (at != ranges_.end() && (last == UINT64_MAX || at->first <= last + 1)) {
        last = std::max(last, at->second);
        at = ranges_.erase(at);
    }
    ranges_.emplace(first, last);
}

void NumberSet::insert(const NumberSet& other) {
    for (const auto& [first, last] : other.ranges_) {
        insert(first, last);
    }
}

bool NumberSet::contains(std::uint64_t number) const {
    const auto behind = ranges_.upper_bound(number);
    return behind != ranges_.begin() && std::prev(behind)->second >= number;
}

std::uint64_t NumberSet::count(std::uint64_t first, std::uint64_t last) const {
    std::uint64_t sum = 0;
    auto range = ranges_.upper_bound(first);
    range = range == ranges_.begin() ? range : std::prev(range);
    for (; range != ranges_.end() && range->first <= last; ++range) {
        const std::uint64_t from = std::max(first, range->first);
        const std::uint64_t to = std::min(last, range->second);
        sum += from <= to ? to - from + 1 : 0;
    }
    return sum;
}

void NumberSet::forget_before(std::uint64_t number) {
    while (!ranges_.empty() && ranges_.begin()->first < number) {
        const std::uint64_t last = ranges_.begin()->second;
        ranges_.erase(ranges_.begin());
        if (last >= number) {
            ranges_.emplace(number, last);
        }
    }
}

std::string NumberSet::text() const {
    std::string text;
    for (const auto& [first, last] : ranges_) {
        text += fmt::format("{}{}", text.empty() ? "" : ",", first);
        if (last != first) {
            text += fmt::format("-{}", last);
        }
    }
    return text;
}

std::optional<NumberSet> NumberSet::read(std::string_view text) {
    NumberSet set;
    while (!text.empty()) {
        const std::string_view range = text.substr(0, text.find(','));
        text.remove_prefix(std::min(text.size(), range.size() + 1));
        const auto dash = range.find('-');
        const auto first = number_of(range.substr(0, dash));
        const auto last =
            dash == std::string_view::npos ? first : number_of(range.substr(dash + 1));
        if (!first || !last || *last < *first) {
            return std::nullopt;
        }
        set.insert(*first, *last);
    }
    return set;
}

namespace {

constexpr std::int64_t kCommitPatienceMs = 3000;
/// The most messages in the log: enough for a batch each second for a day. Records of older batches
/// were acknowledged long ago.
constexpr std::int64_t kKept = 100'000;
/// The error of nats-server if the stream's last message is not the expected one.
constexpr std::string_view kWrongLast = "wrong last sequence";

/// Removes the text up to the next blank, and the blank. Returns the text without the blank.
std::string_view take_word(std::string_view& text) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    return word;
}

} // namespace

std::string commit_text(const CommitEntry& commit) {
    return fmt::format("{} {} {}", commit.batch, commit.created, commit.places.text());
}

std::optional<CommitEntry> read_commit(std::string_view text) {
    CommitEntry commit{.batch = std::string{take_word(text)}};
    const std::string_view created = take_word(text);
    const char* const end = created.data() + created.size();
    const auto parsed = std::from_chars(created.data(), end, commit.created);
    auto places = NumberSet::read(text);
    if (commit.batch.empty() || parsed.ec != std::errc{} || parsed.ptr != end || !places) {
        return std::nullopt;
    }
    commit.places = *std::move(places);
    return commit;
}

void CommittedPlaces::add_entry(std::string_view text) {
    const auto commit = read_commit(text);
    if (!commit) {
        return;
    }
    found_ = found_ || commit->batch == sought_;
    if (commit->created == created_) {
        places_.insert(commit->places);
    }
}

BusResult<CommitLog> CommitLog::open(const BusConnection& link, Options options) {
    std::string stream = options.stream + kLogSuffix;
    std::string subject = fmt::format("{}.{}", stream, options.consumer);
    CommitLog log{link, std::move(stream), std::move(subject),
                  CommittedPlaces{options.created, std::move(options.sought)}};
    const auto made = log.make_stream();
    if (!made) {
        return tl::unexpected{made.error()};
    }
    log.made_ = *made;
    if (auto done = log.read_on(); !done) {
        return tl::unexpected{done.error()};
    }
    return log;
}

/// Creates the stream if it does not exist. Returns its creation time.
BusResult<std::int64_t> CommitLog::make_stream() const {
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
    // another collector created it at the same time
    if (status != NATS_OK && code == JSStreamNameExistErr) {
        status = js_GetStreamInfo(&found, link_->stream_api(), stream_.c_str(), nullptr, &code);
    }
    const JetStreamInfo info{found};
    if (status != NATS_OK) {
        return tl::unexpected{
            fmt::format("cannot create the stream {}: {}", stream_, link_->describe(status))};
    }
    return info->Created;
}

BusResult<void> CommitLog::read_on() {
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
        status = natsSubscription_NextMsg(&next, made, kCommitPatienceMs);
        const NatsMessage message{next};
        jsMsgMetaData* data = nullptr;
        if (status == NATS_OK) {
            status = natsMsg_GetMetaData(&data, next);
        }
        const MessagePlace place{data};
        if (status == NATS_OK) {
            committed_.add_entry(
                {natsMsg_GetData(next), static_cast<std::size_t>(natsMsg_GetDataLength(next))});
            read_ = place->Sequence.Stream;
            more = place->NumPending != 0;
        }
    }
    if (status != NATS_OK) {
        return tl::unexpected{fmt::format("reading from {}: {}", stream_, link_->describe(status))};
    }
    std::ignore = natsSubscription_Unsubscribe(made);
    return {};
}

/// Reads the batches that other collectors added. Returns an error if messages were deleted from the
/// log.
BusResult<void> CommitLog::read_new_entries() {
    const std::uint64_t before = read_;
    const auto made = make_stream();
    if (!made) {
        return tl::unexpected{made.error()};
    }
    if (auto done = read_on(); !done) {
        return done;
    }
    if (*made != made_ || read_ == before) {
        return tl::unexpected{fmt::format("{} was emptied or recreated", stream_)};
    }
    return {};
}

BusResult<bool> CommitLog::add(const std::string& batch, const NumberSet& places) {
    const std::string text =
        commit_text({.batch = batch, .created = committed_.created(), .places = places});
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
        status = natsConnection_RequestMsg(&got, link_->connection(), made, kCommitPatienceMs);
    }
    const NatsMessage reply{got};
    if (status != NATS_OK) {
        return tl::unexpected{fmt::format("writing to {}: {}", stream_, link_->describe(status))};
    }
    const PublishAnswer answer = read_publish_answer(
        {natsMsg_GetData(got), static_cast<std::size_t>(natsMsg_GetDataLength(got))});
    if (answer.place != 0) {
        committed_.add_entry(text);
        read_ = answer.place;
        return true;
    }
    if (!answer.complaint.starts_with(kWrongLast)) {
        return tl::unexpected{fmt::format("writing to {}: {}", stream_, answer.complaint)};
    }
    if (auto done = read_new_entries(); !done) {
        return tl::unexpected{done.error()};
    }
    return false;
}

BusResult<void> CommitLog::reject_late_messages() {
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
