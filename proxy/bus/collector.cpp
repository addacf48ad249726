#include "proxy/bus/collector.h"

#include "proxy/bus/link.h"
#include "proxy/bus/spool_folder.h"
#include "proxy/bus/subjects.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <string_view>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

namespace tw::bus {

namespace {

constexpr const char* kJournal = ".collect-journal";
constexpr mode_t kReadableByAll = 0644;
constexpr std::string_view kEnd = "end\n";
constexpr std::size_t kMaxJournal = std::size_t{1} << 20U;

} // namespace

CollectedFiles::CollectedFiles(std::filesystem::path folder, sink::Disk& disk)
    : folder_{std::move(folder)}, disk_{&disk} {
    std::filesystem::create_directory(folder_);
    journal_ = ::open((folder_ / kJournal).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kReadableByAll);
    if (journal_ < 0 || !lock_file(journal_)) {
        const int error = journal_ < 0 ? errno : EBUSY;
        ::close(journal_);
        throw std::system_error{error, std::generic_category(), folder_.string()};
    }
    read_journal();
}

CollectedFiles::~CollectedFiles() {
    ::close(journal_);
}

/// Reads the journal.
/// Layout: the batch's id on a line, then a line "SIZE NAME" for each file, then "end".
void CollectedFiles::read_journal() {
    std::string text(kMaxJournal, '\0');
    const ssize_t got = ::pread(journal_, text.data(), text.size(), 0);
    text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    if (!text.ends_with(kEnd)) {
        return; // The journal is incomplete: the process ended before it appended the batch to any file.
    }
    std::string_view rest{text};
    rest.remove_suffix(kEnd.size());
    const auto take_line = [&rest] {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
        return line;
    };
    batch_ = take_line();
    while (!rest.empty()) {
        const std::string_view line = take_line();
        std::uint64_t size = 0;
        const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), size);
        if (error == std::errc{} && *end == ' ') {
            sizes_[std::string{line.substr(static_cast<std::size_t>(end - line.data()) + 1)}] =
                size;
        }
    }
}

int CollectedFiles::write_journal() {
    std::string text = batch_ + '\n';
    for (const auto& [name, size] : sizes_) {
        text += fmt::format("{} {}\n", size, name);
    }
    text += kEnd;
    if (text.size() > kMaxJournal) {
        return EFBIG;
    }
    if (::ftruncate(journal_, 0) != 0) {
        return errno;
    }
    const ssize_t written = ::pwrite(journal_, text.data(), text.size(), 0);
    return written == static_cast<ssize_t>(text.size()) ? 0 : written < 0 ? errno : ENOSPC;
}

int CollectedFiles::write(const std::string& name, std::string_view text) {
    const int file = disk_->open((folder_ / name).string(), sink::Disk::How::append);
    if (file < 0) {
        return errno;
    }
    int error = 0;
    while (!text.empty() && error == 0) {
        const ssize_t written = disk_->write(file, text);
        if (written > 0) {
            text.remove_prefix(static_cast<std::size_t>(written));
        } else if (written == 0 || errno != EINTR) {
            error = written == 0 ? EIO : errno;
        }
    }
    disk_->close(file);
    return error;
}

int CollectedFiles::append(const std::string& batch,
                           const std::map<std::string, std::string>& texts) {
    batch_ = batch;
    sizes_.clear();
    for (const auto& [name, text] : texts) {
        const auto path = folder_ / name;
        std::error_code error;
        std::filesystem::create_directories(path.parent_path(), error);
        const auto facts = disk_->facts(path.string());
        sizes_[name] = facts ? facts->size : 0;
    }
    int error = write_journal();
    for (auto each = texts.begin(); each != texts.end() && error == 0; ++each) {
        error = write(each->first, each->second);
    }
    if (error != 0) {
        std::ignore = take_back(); // if this fails, unfinished() still returns the batch
    }
    return error;
}

void CollectedFiles::keep() {
    batch_.clear();
    sizes_.clear();
    std::ignore = ::ftruncate(journal_, 0);
}

/// Truncates a file to this size; size 0 removes it, because the batch created it.
int CollectedFiles::truncate_file(const std::string& name, std::uint64_t size) {
    const std::string path = (folder_ / name).string();
    errno = 0;
    const auto facts = disk_->facts(path);
    if (!facts || facts->size <= size) {
        return facts || errno == ENOENT || errno == ENOTDIR ? 0 : errno;
    }
    if (size == 0) {
        return disk_->remove(path) ? 0 : errno;
    }
    const int file = disk_->open(path, sink::Disk::How::append);
    if (file < 0) {
        return errno;
    }
    const int error = disk_->truncate(file, size) ? 0 : errno;
    disk_->close(file);
    return error;
}

int CollectedFiles::take_back() {
    int error = 0;
    for (const auto& [name, size] : sizes_) {
        const int failed = truncate_file(name, size);
        error = error == 0 ? failed : error;
    }
    if (error == 0) {
        keep();
    }
    return error;
}

namespace {

/// The most records of a batch, and the time in ms to wait for them.
constexpr int kBatch = 1000;
constexpr std::int64_t kGatherMs = 500;
/// After this time, unacknowledged messages are sent to another collector.
constexpr std::chrono::seconds kHandOver{30};
/// The most unacknowledged messages of all collectors together.
constexpr std::int64_t kUnderWay = 64LL * kBatch;
constexpr std::chrono::milliseconds kPause{500};
/// The interval of looking for dropped records while records arrive without a pause.
constexpr std::chrono::seconds kLookForMissed{10};
/// The value of NATS_LIMIT_REACHED, which version 3.4 of the library does not declare.
constexpr auto kLimitReached = static_cast<natsStatus>(NATS_MISSED_HEARTBEAT + 1);

/// Owns the messages of a list.
class FetchedList {
  public:
    FetchedList() = default;

    ~FetchedList() { natsMsgList_Destroy(&list); }

    FetchedList(const FetchedList&) = delete;
    FetchedList& operator=(const FetchedList&) = delete;
    FetchedList(FetchedList&&) = delete;
    FetchedList& operator=(FetchedList&&) = delete;

    /// Makes the bus send the messages to the next collector at once, not only after kHandOver.
    void give_back() const {
        for (int i = 0; i < list.Count; ++i) {
            std::ignore = natsMsg_Nak(list.Msgs[i], nullptr);
        }
    }

    natsMsgList list{};
};

std::string_view text_of(natsMsg* message) {
    return {natsMsg_GetData(message), static_cast<std::size_t>(natsMsg_GetDataLength(message))};
}

Collected record_of(natsMsg* message) {
    const char* id = nullptr;
    const bool named = natsMsgHeader_Get(message, kMessageId, &id) == NATS_OK;
    return {.server = std::string{server_of_subject(natsMsg_GetSubject(message))},
            .run = std::string{named ? run_of_id(id) : std::string_view{}},
            .line = std::string{text_of(message)}};
}

} // namespace

std::string batch_name(const std::string& stream, const std::string& consumer,
                       const std::string& id) {
    return fmt::format("{}.{}.{}", stream, consumer, id);
}

std::optional<CommitLog::Options> log_of(const std::string& batch) {
    const auto first = batch.find('.');
    const auto second = batch.find('.', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) {
        return std::nullopt;
    }
    std::string stream = batch.substr(0, first);
    std::string consumer = batch.substr(first + 1, second - first - 1);
    if (!is_subject_token(stream) || !is_subject_token(consumer)) {
        return std::nullopt;
    }
    return CommitLog::Options{
        .stream = std::move(stream), .consumer = std::move(consumer), .sought = batch};
}

void Collector::print_error(const std::string& what) {
    if (complaint_ != what) {
        spdlog::warn("cannot collect records: {}; trying again", what);
        complaint_ = what;
    }
}

void Collector::run(const std::function<bool()>& stopped) {
    while (!stopped()) {
        const auto served = use_connection(stopped);
        if (served) {
            return;
        }
        print_error(served.error());
        troubled_ = true;
        options_.on_trouble(served.error());
        if (lacks_stream_ && options_.until_end) {
            return;
        }
        std::this_thread::sleep_for(kPause);
    }
}

BusResult<NatsSubscription> Collector::subscribe(const BusConnection& link) const {
    jsSubOptions wishes;
    jsSubOptions_Init(&wishes);
    wishes.Stream = options_.stream.c_str();
    wishes.ManualAck = true;
    wishes.Config.Durable = options_.consumer.c_str();
    wishes.Config.AckPolicy = js_AckExplicit;
    wishes.Config.AckWait = std::chrono::nanoseconds{kHandOver}.count();
    wishes.Config.MaxAckPending = kUnderWay;
    natsSubscription* made = nullptr;
    jsErrCode code{};
    const natsStatus status =
        js_PullSubscribe(&made, link.stream_api(), (options_.stream + ".>").c_str(),
                         options_.consumer.c_str(), nullptr, &wishes, &code);
    if (status != NATS_OK) {
        return tl::unexpected{
            fmt::format("the consumer {}: {}", options_.consumer, link.describe(status))};
    }
    return NatsSubscription{made};
}

BusResult<void> Collector::take_back() {
    if (const int error = sink_->take_back(); error != 0) {
        return tl::unexpected{fmt::format("cannot undo uncommitted output: {}",
                                          std::generic_category().message(error))};
    }
    return {};
}

/// Handles a batch that an earlier process left unconfirmed: keeps it if the log contains it,
/// otherwise takes it back.
BusResult<void> Collector::recover_batch(const BusConnection& link) {
    const std::string batch = sink_->unfinished();
    if (batch.empty()) {
        return {};
    }
    auto log = CommitLog::open(
        link, log_of(batch).value_or(CommitLog::Options{
                  .stream = options_.stream, .consumer = options_.consumer, .sought = batch}));
    if (!log) {
        return tl::unexpected{log.error()};
    }
    if (auto fenced = log->reject_late_messages(); !fenced) {
        return fenced;
    }
    if (!log->committed().found()) {
        return take_back();
    }
    sink_->keep();
    return {};
}

/// Returns the facts of the stream. A missing stream is an error and is not created, because its name
/// may be mistyped.
BusResult<StreamFacts> Collector::find_stream(const BusConnection& link) {
    const auto found = link.find_stream(options_.stream);
    if (!found) {
        return tl::unexpected{found.error()};
    }
    if (!std::exchange(lacks_stream_, !*found) && lacks_stream_) {
        const auto names = link.stream_names();
        others_ = names.empty() ? "" : fmt::format(" (there is {})", fmt::join(names, ", "));
    }
    if (lacks_stream_) {
        return tl::unexpected{fmt::format(
            "no stream {}: nothing has been published to it yet, or it has another name{}",
            options_.stream, others_)};
    }
    return **found;
}

BusResult<void> Collector::use_connection(const std::function<bool()>& stopped) {
    const auto link = BusConnection::open(options_.access, "twscope collect");
    if (!link) {
        return tl::unexpected{link.error()};
    }
    const auto stream = find_stream(**link);
    if (!stream) {
        return tl::unexpected{stream.error()};
    }
    if (auto recovered = recover_batch(**link); !recovered) {
        return recovered;
    }
    auto log = CommitLog::open(
        **link,
        {.stream = options_.stream, .consumer = options_.consumer, .created = stream->created});
    if (!log) {
        return tl::unexpected{log.error()};
    }
    const auto subscription = subscribe(**link);
    if (!subscription) {
        return tl::unexpected{subscription.error()};
    }
    if (!ever_connected_) {
        spdlog::info("collecting from the stream {} as {}", options_.stream, options_.consumer);
    }
    ever_connected_ = true;
    if (std::exchange(created_, stream->created) != stream->created) {
        looked_until_ = 0;
    }
    // A new consumer starts at the oldest record that the stream still has.
    const std::uint64_t gone = stream->first != 0 ? stream->first - 1 : 0;
    const std::uint64_t last = log->committed().last();
    looked_until_ = std::max(looked_until_, last != 0 ? last : gone);
    auto collected = collect(**link, *log, subscription->get(), stopped);
    // Waits until pending acknowledgements are sent.
    std::ignore = natsConnection_FlushTimeout((*link)->connection(), kGatherMs);
    return collected;
}

BusResult<void> Collector::collect(const BusConnection& link, CommitLog& log,
                                   natsSubscription* subscription,
                                   const std::function<bool()>& stopped) {
    auto looked = std::chrono::steady_clock::now();
    while (!stopped()) {
        auto batch = fetch(link, subscription, log.committed());
        if (!batch) {
            return tl::unexpected{batch.error()};
        }
        if (!batch->empty()) {
            if (auto written = write_batch(log, *batch); !written) {
                for (const auto& [place, message] : *batch) {
                    // returns the message to the bus, if still connected
                    std::ignore = natsMsg_Nak(message.get(), nullptr);
                }
                return written;
            }
            report_recovery();
            if (std::chrono::steady_clock::now() - looked < kLookForMissed) {
                continue;
            }
        }
        looked = std::chrono::steady_clock::now();
        const auto end = is_at_end(link, log);
        if (!end) {
            return tl::unexpected{end.error()};
        }
        report_recovery();
        reached_end_ = *end;
        if (*end && options_.until_end) {
            break;
        }
    }
    return {};
}

/// Logs that the last logged problem is over.
void Collector::report_recovery() {
    if (!complaint_.empty()) {
        spdlog::info("collecting from the stream {} again", options_.stream);
        complaint_.clear();
    }
    if (std::exchange(troubled_, false)) {
        options_.on_trouble({});
    }
}

/// Fetches available records that the log does not contain yet.
BusResult<Collector::Batch> Collector::fetch(const BusConnection& link,
                                             natsSubscription* subscription,
                                             const CommittedPlaces& committed) {
    Batch batch;
    FetchedList fetched;
    jsFetchRequest request;
    jsFetchRequest_Init(&request);
    request.Batch = size_.messages(kBatch);
    request.MaxBytes = size_.bytes();
    request.Expires = std::chrono::nanoseconds{std::chrono::milliseconds{kGatherMs}}.count();
    const natsStatus status = natsSubscription_FetchRequest(&fetched.list, subscription, &request);
    // Version 3.4 of the library has no status of its own for a message that is larger than
    // requested; version 3.10 has.
    if ((status == NATS_ERR || status == kLimitReached) && !link.broken() &&
        !size_.is_single_message()) {
        size_.request_single_message();
        return batch;
    }
    if (status == NATS_TIMEOUT && !link.broken()) {
        return batch;
    }
    if (status != NATS_OK) {
        return tl::unexpected{link.describe(status)};
    }
    const auto stream = find_stream(link);
    if (!stream || stream->created != committed.created()) {
        fetched.give_back();
        size_.on_fetched(0, true);
        return tl::unexpected{stream ? fmt::format("the stream {} was recreated", options_.stream)
                                     : stream.error()};
    }
    std::int64_t bytes = 0;
    std::uint64_t pending = 0;
    for (int i = 0; i < fetched.list.Count; ++i) {
        NatsMessage message{std::exchange(fetched.list.Msgs[i], nullptr)};
        jsMsgMetaData* data = nullptr;
        if (natsMsg_GetMetaData(&data, message.get()) != NATS_OK) {
            continue;
        }
        const MessagePlace place{data};
        bytes += natsMsg_GetDataLength(message.get());
        pending = place->NumPending;
        if (committed.contains(place->Sequence.Stream)) {
            // The log has the record, but its collector did not acknowledge it to the bus.
            std::ignore = natsMsg_Ack(message.get(), nullptr);
            continue;
        }
        batch.emplace(place->Sequence.Stream, std::move(message));
    }
    size_.on_fetched(bytes, pending != 0 && fetched.list.Count < kBatch);
    return batch;
}

BusResult<void> Collector::write_batch(CommitLog& log, Batch& batch) {
    while (!batch.empty()) {
        const std::string id = batch_name(options_.stream, options_.consumer, make_run_id());
        NumberSet places;
        std::vector<Collected> records;
        for (const auto& [place, message] : batch) {
            places.insert(place);
            records.push_back(record_of(message.get()));
        }
        if (const int error = sink_->write(id, records); error != 0) {
            return tl::unexpected{std::generic_category().message(error)};
        }
        const auto added = log.add(id, places);
        if (!added) {
            // After the next connect, the log tells whether the batch was committed.
            return tl::unexpected{added.error()};
        }
        if (*added) {
            sink_->keep();
            break;
        }
        if (auto taken_back = take_back(); !taken_back) {
            return taken_back;
        }
        for (auto each = batch.begin(); each != batch.end();) {
            if (log.committed().contains(each->first)) {
                std::ignore = natsMsg_Ack(each->second.get(), nullptr);
                each = batch.erase(each);
            } else {
                ++each;
            }
        }
    }
    for (const auto& [place, message] : batch) {
        std::ignore = natsMsg_Ack(message.get(), nullptr);
    }
    return {};
}

/// Returns true if all available records are committed, by any collector. Forgets sequence numbers
/// that are no longer needed.
BusResult<bool> Collector::is_at_end(const BusConnection& link, CommitLog& log) {
    jsConsumerInfo* found = nullptr;
    jsErrCode code{};
    // Names the consumer, because a subscription to an existing consumer does not always know its
    // name.
    const natsStatus status = js_GetConsumerInfo(&found, link.stream_api(), options_.stream.c_str(),
                                                 options_.consumer.c_str(), nullptr, &code);
    const ConsumerInfo info{found};
    if (status != NATS_OK) {
        return tl::unexpected{link.describe(status)};
    }
    const auto stream = find_stream(link);
    if (!stream) {
        return tl::unexpected{stream.error()};
    }
    // Records before the stream's first message can no longer be collected.
    const std::uint64_t gone = stream->first != 0 ? stream->first - 1 : 0;
    const std::uint64_t floor = std::max(info->AckFloor.Stream, gone);
    if (stream->mixed) { // sequence numbers also count messages on other subjects
        looked_until_ = std::max(looked_until_, floor);
    } else if (auto counted = count_missed(log, floor); !counted) {
        return tl::unexpected{counted.error()};
    }
    log.forget_before(info->AckFloor.Stream);
    return info->NumPending == 0 && info->NumAckPending == 0;
}

/// Counts missed records. All records up to `floor` were acknowledged or dropped by the stream, so
/// those that are not committed are lost.
BusResult<void> Collector::count_missed(CommitLog& log, std::uint64_t floor) {
    if (floor <= looked_until_) {
        return {};
    }
    if (log.committed().missing(looked_until_ + 1, floor) != 0) {
        if (auto read = log.read_on(); !read) {
            return read;
        }
    }
    if (const auto missing = log.committed().missing(looked_until_ + 1, floor); missing != 0) {
        missed_ += missing;
        spdlog::error("{} records are missing: the stream {} dropped them before they were "
                      "collected; raise its limits, or collect sooner",
                      missing, options_.stream);
    }
    looked_until_ = floor;
    return {};
}

} // namespace tw::bus
