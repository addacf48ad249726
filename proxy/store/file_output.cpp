#include "proxy/store/file_output.h"

#include "proxy/base/clock.h"
#include "proxy/record/json.h"
#include "proxy/record/records.h"
#include "proxy/sink/json_lines.h"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <tuple>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tw::store {

namespace {

/// The first bytes of every record (RECORDS.md).
constexpr std::string_view kRecordStart = "{\"v\":";

/// Returns whether a file contains only zeros, as may happen after a power failure.
bool contains_only_zeros(int file) {
    std::array<char, 4096> piece{};
    for (off_t at = 0;;) {
        const ssize_t read = ::pread(file, piece.data(), piece.size(), at);
        if (read <= 0) {
            return read == 0;
        }
        if (std::any_of(piece.begin(), piece.begin() + read, [](char c) { return c != '\0'; })) {
            return false;
        }
        at += read;
    }
}

class RecordLineFormat final : public RecordingFormat {
  public:
    [[nodiscard]] std::size_t size_of_whole_entries(std::string_view text,
                                                    std::size_t size) const override {
        const std::size_t end = size == 0 ? std::string_view::npos : text.find('\n', size - 1);
        return end == std::string_view::npos ? text.size() : end + 1;
    }

    [[nodiscard]] std::size_t size_of_complete_entries(std::string_view text) const override {
        return text.rfind('\n') + 1; // npos + 1 is 0
    }

    [[nodiscard]] std::uint64_t count_entries(std::string_view text) const override {
        return sink::count_lines(text);
    }

    [[nodiscard]] std::optional<std::uint64_t>
    find_last_entry_end(int file, std::uint64_t size) const override {
        std::array<char, 4096> piece{};
        for (std::uint64_t end = size; end > 0;) {
            const std::uint64_t begin = end - std::min<std::uint64_t>(end, piece.size());
            const ssize_t read = ::pread(file, piece.data(), static_cast<std::size_t>(end - begin),
                                         static_cast<off_t>(begin));
            if (read != static_cast<ssize_t>(end - begin)) {
                return std::nullopt;
            }
            const std::string_view text{piece.data(), static_cast<std::size_t>(read)};
            if (const std::size_t bytes = size_of_complete_entries(text); bytes != 0) {
                return begin + bytes;
            }
            end = begin;
        }
        return 0;
    }

    /// Returns whether the file starts with something other than a record. A truncated record, an
    /// empty file and a file of zeros are not foreign.
    [[nodiscard]] bool is_foreign_file(int file) const override {
        std::array<char, kRecordStart.size()> piece{};
        const ssize_t read = ::pread(file, piece.data(), piece.size(), 0);
        return is_foreign_data(
                   {piece.data(), static_cast<std::size_t>(std::max<ssize_t>(read, 0))}) &&
               !contains_only_zeros(file);
    }

    [[nodiscard]] bool is_foreign_data(std::string_view begin) const override {
        return !kRecordStart.starts_with(begin.substr(0, kRecordStart.size()));
    }

    [[nodiscard]] std::string_view missing_end_of_last_entry(std::string_view text) const override {
        return record::is_json_object(text) ? "\n" : "";
    }

    [[nodiscard]] std::string loss_notice(const RecordingLoss& loss,
                                          std::int64_t now) const override {
        const record::LossRecord record{
            .head = {.time = now}, .lost = loss.count, .since = loss.since, .cause = loss.cause};
        return sink::json_line(&record);
    }

    [[nodiscard]] std::string segment_header(std::string_view name, std::uint64_t number,
                                             std::int64_t now) const override {
        const record::SegmentRecord record{.head = {.time = now}, .name = name, .number = number};
        return sink::json_line(&record);
    }

    [[nodiscard]] std::string_view content_name() const override { return "records"; }
};

} // namespace

std::string OutputFile::error_text() const {
    if (state.is_disk_space_low) {
        return "less disk space is free than has to stay free";
    }
    const std::string text = std::generic_category().message(error());
    // The observer process may only use the folder that existed when the process started. If a new
    // folder now has the path, opening a file there fails with EACCES.
    return error() == EACCES ? text + " (after its folder was replaced, restart twscope)" : text;
}

const RecordingFormat& record_line_format() {
    static const RecordLineFormat lines;
    return lines;
}

namespace {

constexpr std::chrono::milliseconds kReaderPollInterval{100};
/// How many times a write polls for the reader after stop_waiting_for_reader().
constexpr int kPollsAfterStop = 8;

constexpr mode_t kOutputFilePermissions = 0644;

/// Opens a file. Fails with ENXIO, instead of waiting, if the file is a pipe without a reader.
int open_file_without_waiting(const std::string& path, int how) {
    const int file =
        ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | how,
               kOutputFilePermissions);
    if (file >= 0) {
        std::ignore = ::fcntl(file, F_SETFL, O_APPEND);
    }
    return file;
}

/// Empties and opens a file. If the file is a pipe, waits up to `reader_time` for a reader.
int open_with_reader(const std::string& path, std::chrono::milliseconds reader_time) {
    constexpr std::chrono::milliseconds kPause{20};
    if (path == "-") {
        return ::dup(STDOUT_FILENO);
    }
    const auto deadline = std::chrono::steady_clock::now() + reader_time;
    while (true) {
        const int file = open_file_without_waiting(path, O_TRUNC);

        struct stat found {};

        if (file >= 0 || errno != ENXIO || ::stat(path.c_str(), &found) != 0 ||
            !S_ISFIFO(found.st_mode)) {
            return file;
        }
        if (std::chrono::steady_clock::now() >= deadline) {
            errno = ETIMEDOUT;
            return -1;
        }
        std::this_thread::sleep_for(kPause);
    }
}

} // namespace

FileOutput::FileOutput(const std::string& path, const RecordingFormat& format,
                       std::chrono::milliseconds reader_time)
    : OutputFile{path, format}, file_{base::take_descriptor(open_with_reader(path, reader_time),
                                                            path.c_str())} {
    detect_file_kind();
    write_block(format.file_header());
}

void FileOutput::reopen() {
    is_reopening_requested_ = false;
    if (path() == "-") {
        return;
    }
    base::UniqueFd next{open_file_without_waiting(path(), 0)};
    if (!next.valid()) {
        state.reopening_error = errno;
        return;
    }
    file_ = std::move(next);
    detect_file_kind();
    state.error = 0;
    write_block(format().file_header());
}

void FileOutput::detect_file_kind() {
    struct stat found {};

    const bool disk = ::fstat(file_.get(), &found) == 0 && S_ISREG(found.st_mode);
    const bool device = S_ISCHR(found.st_mode) && ::isatty(file_.get()) == 0; // such as /dev/null
    waits_for_reader_ = !disk && !device;
    const int pipe = ::fcntl(file_.get(), F_GETPIPE_SZ);
    pipe_bytes_ = std::max<std::size_t>(PIPE_BUF, static_cast<std::size_t>(std::max(pipe, 0)));
}

/// Waits until data can be written. Returns false if the reader reads nothing after
/// stop_waiting_for_reader().
bool FileOutput::wait_for_reader() const {
    for (int polls = 0; !is_waiting_stopped_ || polls < kPollsAfterStop; ++polls) {
        pollfd room{.fd = file_.get(), .events = POLLOUT, .revents = 0};
        if (::poll(&room, 1, static_cast<int>(kReaderPollInterval.count())) > 0) {
            return true; // also for a pipe without a reader, to which the next write fails
        }
    }
    return false;
}

/// Returns the number of bytes that can be written without waiting for the reader. A writable pipe
/// has room for at least PIPE_BUF bytes, an empty pipe for its full size.
std::size_t FileOutput::writable_bytes() const {
    int unread = 0;
    const bool empty =
        pipe_bytes_ > PIPE_BUF && ::ioctl(file_.get(), FIONREAD, &unread) == 0 && unread == 0;
    return empty ? pipe_bytes_ : PIPE_BUF;
}

void FileOutput::write(std::string_view block) {
    if (is_reopening_requested_) {
        const std::size_t rest = ends_with_entry_ ? 0 : format().size_of_whole_entries(block, 1);
        write_block(block.substr(0, rest));
        block.remove_prefix(rest);
        if (ends_with_entry_) {
            reopen();
        }
    }
    write_block(block);
}

void FileOutput::do_due_work(Clock::time_point /*now*/) {
    if (is_reopening_requested_ && ends_with_entry_) {
        reopen();
    }
}

void FileOutput::write_block(std::string_view block) {
    ends_with_entry_ =
        block.empty() ? ends_with_entry_ : format().size_of_complete_entries(block) == block.size();
    while (!block.empty() && !failed()) {
        if (waits_for_reader_ && !wait_for_reader()) {
            state.error = ETIMEDOUT;
            break;
        }
        const std::size_t size =
            waits_for_reader_ ? std::min(block.size(), writable_bytes()) : block.size();
        const ssize_t written = ::write(file_.get(), block.data(), size);
        if (written >= 0) {
            block.remove_prefix(static_cast<std::size_t>(written));
        } else if (errno != EINTR && errno != EAGAIN) {
            state.error = errno;
        }
    }
    if (failed()) {
        state.lost_entries += format().count_entries(block);
    }
}

namespace {

/// How often OutputFile::do_due_work() is called while no data is written.
constexpr std::chrono::milliseconds kIdleInterval{250};
/// The number of bytes that are passed to the output file at a time. The number is small, so that
/// the progress count rises steadily.
constexpr std::size_t kBytesPerWrite = 65'536;
/// The time that is added to the current time in the last call of OutputFile::do_due_work(), so
/// that the file's next attempt to write is due.
constexpr std::chrono::seconds kForcedRetryTime{10};

std::string_view loss_cause(int error) {
    switch (error) {
    case 0:
        return "too_slow";
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return "disk_full";
    default:
        return "disk_error";
    }
}

} // namespace

QueuedOutput::QueuedOutput(OutputFile& target, unsigned num_producers,
                           std::atomic<std::uint64_t>* progress)
    : target_{&target}, num_producers_{num_producers}, progress_{progress},
      current_segment_{target.has_segments() ? 1U : 0U}, thread_{[this] { write_queued_data(); }} {}

QueuedOutput::~QueuedOutput() {
    finish_writing();
}

void QueuedOutput::finish_writing() {
    {
        const std::lock_guard lock{mutex_};
        is_stopping_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) {
        thread_.join();
    }
}

void QueuedOutput::write_to_segment(std::uint32_t segment, std::string_view block) {
    if (block.empty()) {
        return;
    }
    {
        const std::lock_guard lock{mutex_};
        // After a block was dropped, all blocks are dropped until the file accepts data again.
        // Otherwise small blocks would still fit, and be stored after the dropped one.
        if (queues_[0].size() + queues_[1].size() + block.size() > kMaxQueueBytes ||
            (unreported_loss_ && !target_->accepts_data())) {
            drop_block(block);
            return;
        }
        // After a segment was announced, some producers still add data for the previous segment.
        std::string& queue = queues_[is_segment_announced_ && segment == current_segment_ ? 1 : 0];
        append_loss_notice(queue);
        queue.append(block);
    }
    wake_.notify_one();
}

void QueuedOutput::drop_block(std::string_view block) {
    const std::uint64_t count = target_->format().count_entries(block);
    dropped_entries_ += count;
    add_loss(count);
}

void QueuedOutput::add_loss(std::uint64_t count) {
    if (!unreported_loss_) {
        unreported_loss_ =
            RecordingLoss{.since = base::now_utc(), .cause = loss_cause(target_->error())};
    }
    unreported_loss_->count += count;
}

void QueuedOutput::append_loss_notice(std::string& queue) {
    if (!unreported_loss_ || unreported_loss_->count == 0) {
        return;
    }
    queue.append(target_->format().loss_notice(*unreported_loss_, base::now_utc()));
    unreported_loss_.reset();
}

void QueuedOutput::advance_to_segment(std::uint32_t segment) {
    {
        const std::lock_guard lock{mutex_};
        num_advanced_producers_ += is_segment_announced_ && segment == current_segment_ ? 1U : 0U;
    }
    wake_.notify_one();
}

std::uint64_t QueuedOutput::num_dropped_entries() const {
    const std::lock_guard lock{mutex_};
    return dropped_entries_;
}

/// Announces a due segment, and starts it when all producers have called advance_to_segment().
void QueuedOutput::switch_segment(std::unique_lock<std::mutex>& lock, Clock::time_point now) {
    if (!is_segment_announced_) {
        if (target_->is_segment_due(now)) {
            num_advanced_producers_ = 0;
            is_segment_announced_ = true;
            current_segment_.fetch_add(1, std::memory_order_release);
        }
        return;
    }
    if (num_advanced_producers_ < num_producers_ || !queues_[0].empty() || !writing_.empty()) {
        return;
    }
    lock.unlock(); // this may take long, because buffered data is synced to the disk
    const bool cut = target_->start_segment();
    lock.lock();
    if (cut) {
        queues_[0].append(queues_[1]);
        queues_[1].clear();
        is_segment_announced_ = false;
    }
}

/// Passes the data in `writing_` to the output file, as long as the file accepts data.
void QueuedOutput::write_accepted_data() {
    while (passed_bytes_ < writing_.size() && target_->accepts_data()) {
        const std::string_view text = std::string_view{writing_}.substr(passed_bytes_);
        // Up to one and a half pieces are passed on at once, so that no short piece is left over.
        const std::size_t size =
            text.size() <= kBytesPerWrite + kBytesPerWrite / 2
                ? text.size()
                : target_->format().size_of_whole_entries(text, kBytesPerWrite);
        target_->write(text.substr(0, size));
        passed_bytes_ += size;
        if (progress_ != nullptr) {
            progress_->fetch_add(size, std::memory_order_relaxed);
        }
    }
    if (passed_bytes_ == writing_.size()) {
        writing_.clear();
        passed_bytes_ = 0;
    }
}

void QueuedOutput::write_queued_data() {
    std::unique_lock lock{mutex_};
    while (!is_stopping_) {
        wake_.wait_for(lock, kIdleInterval, [this] {
            const bool all_advanced =
                is_segment_announced_ && num_advanced_producers_ >= num_producers_;
            return is_stopping_ || (target_->accepts_data() &&
                                    (!queues_[0].empty() || !writing_.empty() || all_advanced));
        });
        if (writing_.empty()) {
            std::swap(queues_[0], writing_);
        }
        const auto now = Clock::now();
        lock.unlock();
        target_->do_due_work(now);
        write_accepted_data();
        failing_since_ = target_->accepts_data() ? 0
                         : failing_since_ == 0   ? base::now_utc()
                                                 : failing_since_;
        lock.lock();
        switch_segment(lock, now);
    }
    if (target_->accepts_data()) {
        append_loss_notice(queues_[is_segment_announced_ ? 1 : 0]);
    }
    lock.unlock(); // no other thread uses the queue any more
    write_remaining_data();
}

/// Passes all remaining data to the output file. Data that the file does not accept now is lost;
/// the last entry of the file then tells how much data was lost.
void QueuedOutput::write_remaining_data() {
    for (std::string* const queue : {queues_.data(), queues_.data() + 1}) {
        write_or_drop_data();
        if (queue == &queues_[1] && is_segment_announced_) {
            std::ignore = target_->start_segment();
        }
        std::swap(*queue, writing_);
        write_or_drop_data();
    }
    const std::uint64_t lost_before = target_->num_lost_entries();
    target_->finish_writing();
    if (const std::uint64_t lost = target_->num_lost_entries() - lost_before; lost != 0) {
        add_loss(lost);
    }
    if (unreported_loss_ && unreported_loss_->count != 0) {
        // The data that has waited since failing_since_ is lost, too.
        if (failing_since_ != 0 && !target_->accepts_data()) {
            unreported_loss_->since = std::min(unreported_loss_->since, failing_since_);
        }
        target_->write_loss_notice(
            target_->format().loss_notice(*unreported_loss_, base::now_utc()));
    }
}

void QueuedOutput::write_or_drop_data() {
    if (!target_->accepts_data()) {
        target_->do_due_work(Clock::now() + kForcedRetryTime);
    }
    write_accepted_data();
    if (!writing_.empty()) {
        const std::lock_guard lock{mutex_};
        drop_block(std::string_view{writing_}.substr(passed_bytes_));
        writing_.clear();
        passed_bytes_ = 0;
    }
}

} // namespace tw::store
