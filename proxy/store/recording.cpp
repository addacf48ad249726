#include "proxy/store/recording.h"

#include "proxy/base/clock.h"
#include "proxy/base/files.h"
#include "proxy/store/byte_source.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

namespace tw::store {

namespace {

/// An unfinished frame with more bytes of text than this is not cut off, because no version of
/// twscope writes such a frame.
constexpr std::uint64_t kMaxCutOffText = std::uint64_t{128} << 20U;
/// An unfinished frame with more compressed bytes than this is not cut off. This is the largest
/// compressed size of kMaxCutOffText bytes of text.
constexpr std::uint64_t kMaxCutOffBytes = kMaxCutOffText + kMaxCutOffText / 128;

/// Decompresses a file from the offset `at` on, and calls `visit` with each piece of text. Stops if
/// `visit` returns false, the data is damaged, or the file ends. Returns false if the data needs
/// too large a window.
bool visit_frame_texts(int file, std::uint64_t at,
                       const std::function<bool(std::string_view text)>& visit) {
    constexpr std::size_t kPiece = 65536;
    std::vector<char> packed(kPiece);
    std::vector<char> room(kPiece);
    std::unique_ptr<Decompressor> decompressor;
    while (true) {
        const ssize_t read = ::pread(file, packed.data(), packed.size(), static_cast<off_t>(at));
        const auto size = static_cast<std::size_t>(std::max<ssize_t>(read, 0));
        if (!decompressor) {
            decompressor = make_decompressor({packed.data(), size});
        }
        if (!decompressor) {
            return true;
        }
        const auto result = decompressor->decompress(std::span{packed}.first(size), room);
        const bool stopped = result.written != 0 && !visit({room.data(), result.written});
        if (stopped || result.damaged || (result.read == 0 && result.written == 0)) {
            return !result.window_too_large;
        }
        at += result.read;
    }
}

/// Returns up to `size` bytes of a file from the offset `at` on; empty if the file cannot be read.
std::string read_bytes_at(int file, std::uint64_t at, std::size_t size) {
    std::string text(size, '\0');
    const ssize_t read = ::pread(file, text.data(), text.size(), static_cast<off_t>(at));
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(read, 0)));
    return text;
}

/// The time after which a frame ends. Because data also waits in a queue, readers of the file get
/// the data about a second late.
constexpr std::chrono::milliseconds kMaxFrameDuration{750};
constexpr std::chrono::seconds kRetryInterval{1};
constexpr std::chrono::seconds kCheckInterval{1};
/// Jumps of the wall clock by fewer seconds than this are not reported.
constexpr std::int64_t kMinClockJumpSeconds = 60;
constexpr std::chrono::milliseconds kLockPollInterval{20};
/// The longest time for which a process that starts to record should lock the folder.
constexpr std::chrono::seconds kMaxFolderLockTime{1};
/// The number of file names that are tried if other processes create segments in the same second.
constexpr int kMaxSegmentNameTries = 100;

std::int64_t seconds_since_epoch(Recording::Clock::time_point time) {
    return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

std::string other_writer_error_text(const std::string& path) {
    return fmt::format("{}: another process is recording to it; stop that one, or name another {}",
                       path, path.ends_with('/') ? "folder" : "file or folder");
}

} // namespace

Recording::Recording(RecordingOptions options, StartMode mode, Disk& disk)
    : OutputFile{options.path, *options.format}, options_{std::move(options)}, disk_{&disk},
      file_start_{format().file_header()}, segment_ages_{options_.keep.age}, now_{Clock::now()},
      opened_at_{now_}, last_check_{now_} {
    clock_offset_ = disk_->utc_seconds() - seconds_since_epoch(now_);
    if (options_.compressed) {
        frame_writer_.emplace();
    }
    try {
        open(mode);
    } catch (...) {
        if (file_ >= 0) {
            disk_->close(file_); // ends the lock
        }
        throw;
    }
}

Recording::~Recording() {
    close_current_file();
}

void Recording::open(StartMode mode) {
    const auto require = [this](bool is_done) {
        if (!is_done) {
            throw std::system_error{errno, std::generic_category(), options_.path};
        }
    };
    // Another process may still write to a recording that is taken over; see take_over_recording().
    const bool is_taken_over = mode == StartMode::take_over;
    if (options_.segments) {
        const base::UniqueFd starting = is_taken_over ? base::UniqueFd{} : wait_for_other_writer();
        find_last_segment_number();
        if (!is_taken_over) {
            repair_last_segment();
        }
        free_disk_space();
        require(is_taken_over || open_segment());
        return;
    }
    current_path_ = options_.path;
    file_ = disk_->open(current_path_, Disk::OpenMode::append, options_.readers);
    require(file_ >= 0);
    if (is_taken_over) {
        return;
    }
    for (const auto until = Clock::now() + options_.other_writer_timeout; !lock_file();) {
        if (Clock::now() >= until) {
            throw std::runtime_error{other_writer_error_text(options_.path)};
        }
        std::this_thread::sleep_for(kLockPollInterval);
    }
    require(mode != StartMode::empty || disk_->truncate(file_, 0));
    const RepairResult result = mode == StartMode::append ? repair() : RepairResult::done;
    require(result != RepairResult::failed);
    if (result != RepairResult::done) {
        throw std::runtime_error{repair_error_text(result)};
    }
    write_file_start();
}

void Recording::find_last_segment_number() {
    for (const Segment& segment : list_segments(options_.segments->folder, &*options_.segments)) {
        last_segment_number_ = std::max(last_segment_number_, segment.number);
    }
}

/// Waits until no other process writes to segments of the recording. Errors: std::runtime_error if
/// another process still writes after RecordingOptions::other_writer_timeout. While the returned
/// descriptor is open, other processes wait in this function.
base::UniqueFd Recording::wait_for_other_writer() const {
    const std::string& path = options_.segments->folder;
    base::UniqueFd folder{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    const auto until = Clock::now() + options_.other_writer_timeout;
    while (true) {
        // Other processes lock the folder only briefly, while they start. A lock that lasts longer
        // is ignored.
        const bool may_start = ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0 ||
                               errno != EWOULDBLOCK || Clock::now() >= until + kMaxFolderLockTime;
        const bool is_written = std::ranges::any_of(
            list_segments(path, &*options_.segments),
            [&path](const Segment& each) { return base::is_locked(path + "/" + each.file); });
        if (may_start && !is_written) {
            return folder;
        }
        if (is_written && Clock::now() >= until) {
            throw std::runtime_error{other_writer_error_text(options_.path)};
        }
        ::flock(folder.get(), LOCK_UN);
        std::this_thread::sleep_for(kLockPollInterval);
    }
}

/// Locks the file. Returns false if another process has locked it. Returns true without a lock if
/// the file system does not support locks.
bool Recording::lock_file() {
    has_locked_file_ = base::lock_file(file_);
    return has_locked_file_ || (errno != EAGAIN && errno != EACCES);
}

bool Recording::open_segment() {
    for (int tries = 0; tries < kMaxSegmentNameTries; ++tries) {
        std::string path = options_.segments->path(disk_->utc_seconds(), last_segment_number_ + 1);
        const int file = disk_->open(path, Disk::OpenMode::create, options_.readers);
        if (file < 0 && errno != EEXIST) {
            return false;
        }
        ++last_segment_number_;
        if (file >= 0) {
            file_ = file;
            current_path_ = std::move(path);
            std::ignore = lock_file();
            // The header has the time in nanoseconds, because two programs may create files with
            // the same name in the same second.
            file_start_ =
                format().segment_header(current_path_.substr(current_path_.rfind('/') + 1),
                                        last_segment_number_, base::now_utc());
            opened_at_ = now_;
            is_path_moved_ = false;
            is_reopening_requested_ = false;
            write_file_start();
            segment_ages_.on_segment_start(last_segment_number_, now_);
            delete_segments();
            return true;
        }
    }
    return false;
}

void Recording::write_file_start() {
    if (!file_start_.empty()) {
        buffer_.insert(0, frame_writer_ ? compress_frame(file_start_) : file_start_);
        is_start_missing_ = true;
        std::ignore = write_buffer_to_file();
    }
    file_bytes_ = 0;
}

/// Returns a separate compressed frame with this text.
std::string Recording::compress_frame(std::string_view text) {
    std::string frame;
    frame_writer_->append_frame(text, frame);
    return frame;
}

/// Repairs the end of the file so that entries can be appended: cuts off an unfinished entry or
/// compressed frame. Completes a last line that lacks only its newline.
Recording::RepairResult Recording::repair() {
    const auto status = disk_->file_status(file_);
    if (!status || !status->is_regular) {
        return RepairResult::done;
    }
    if (options_.compressed) {
        const auto scan = scan_frames(file_);
        constexpr std::size_t kPacked = std::size_t{256} << 10U; // holds a frame's first block
        constexpr std::size_t kBegin = 64;
        if (scan && (scan->has_foreign_data || format().is_foreign_data(decompress_start(
                                                   read_bytes_at(file_, 0, kPacked), kBegin)))) {
            return RepairResult::foreign;
        }
        return !scan || scan->complete_bytes == scan->size ? RepairResult::done
                                                           : cut_off_unfinished_frame(*scan);
    }
    if (format().is_foreign_file(file_)) {
        return RepairResult::foreign;
    }
    const auto end = format().find_last_entry_end(file_, status->size);
    if (!end || *end >= status->size) {
        return RepairResult::done;
    }
    const std::uint64_t rest = status->size - *end;
    const std::string_view missing = format().missing_end_of_last_entry(
        rest <= sink::kMaxLineBytes ? read_bytes_at(file_, *end, rest) : std::string{});
    if ((missing.empty() || !write_all(*disk_, file_, missing)) && disk_->truncate(file_, *end)) {
        state.cut_off_bytes += rest;
    }
    return RepairResult::done;
}

/// Cuts off the unfinished frame at the end of the file. Counts its readable complete entries.
Recording::RepairResult Recording::cut_off_unfinished_frame(const FrameScan& scan) {
    const std::uint64_t cut_off_bytes = scan.size - scan.complete_bytes;
    std::uint64_t num_cut_off_entries = 0;
    std::uint64_t text_bytes = 0;
    std::string rest; // text after the last complete entry
    const bool readable = visit_frame_texts(file_, scan.complete_bytes, [&](std::string_view text) {
        text_bytes += text.size();
        rest.append(text);
        const std::size_t whole = format().size_of_complete_entries(rest);
        num_cut_off_entries += format().count_entries(std::string_view{rest}.substr(0, whole));
        rest.erase(0, whole);
        return text_bytes <= kMaxCutOffText;
    });
    if (!readable || text_bytes > kMaxCutOffText || cut_off_bytes > kMaxCutOffBytes) {
        return RepairResult::too_much_unfinished;
    }
    if (!disk_->truncate(file_, scan.complete_bytes)) {
        return RepairResult::failed;
    }
    state.cut_off_bytes += cut_off_bytes;
    state.num_cut_off_entries += num_cut_off_entries;
    return RepairResult::done;
}

/// Repairs the end of the last segment after a crash. Errors are ignored, because new data goes to
/// a new segment.
void Recording::repair_last_segment() {
    const auto segments = list_segments(options_.segments->folder, &*options_.segments);
    if (segments.empty()) {
        return;
    }
    file_ = disk_->open(options_.segments->folder + '/' + segments.back().file,
                        Disk::OpenMode::append, options_.readers);
    if (file_ >= 0) {
        std::ignore = repair();
        disk_->close(std::exchange(file_, -1));
    }
}

std::string Recording::repair_error_text(RepairResult result) const {
    if (result == RepairResult::foreign) {
        return fmt::format(
            "{} contains something other than {}{}; name another file, or move this one away",
            options_.path, format().content_name(), options_.compressed ? ", compressed" : "");
    }
    return fmt::format("{} ends in the middle of compressed data that was not recorded live and "
                       "would be lost; {}",
                       options_.path,
                       &format() == &record_line_format()
                           ? fmt::format("save what can be read with 'twscope records {} -o "
                                         "OTHER.jsonl.zst', then move it away",
                                         options_.path)
                           : "name another file, or move this one away");
}

void Recording::write(std::string_view block) {
    if (!accepts_data()) {
        state.lost_entries += format().count_entries(block);
        return;
    }
    if (!frame_writer_) {
        buffer_.append(block);
        std::ignore = write_buffered_data();
        return;
    }
    frame_started_at_ = frame_text_.empty() ? now_ : frame_started_at_;
    frame_text_.append(block);
    if (frame_text_.size() >= options_.frame_text_bytes) {
        end_frame();
        std::ignore = write_buffered_data();
    }
}

void Recording::end_frame() {
    if (!frame_text_.empty()) {
        frame_writer_->append_frame(frame_text_, buffer_);
        frame_text_.clear();
    }
}

bool Recording::write_buffered_data() {
    if (state.is_disk_space_low) {
        set_error(ENOSPC);
        return false;
    }
    if (file_ < 0 && !open_segment()) {
        set_error(errno);
        return false;
    }
    if (blocking_error_ != 0) {
        reopen();
    }
    if (blocking_error_ != 0) {
        set_error(blocking_error_);
        return false;
    }
    // If another process truncated the file, as logrotate's copytruncate does, the bytes at the
    // start of each file must be written again.
    const auto status =
        file_start_.empty() || file_bytes_ == 0 ? std::nullopt : disk_->file_status(file_);
    if (status && status->is_regular && status->size == 0) {
        write_file_start();
    }
    last_try_ = now_;
    return write_buffer_to_file();
}

/// Sets the error after a failed attempt to write, open or sync a file.
void Recording::set_error(int error) {
    state.error = error;
    last_try_ = now_;
}

bool Recording::write_buffer_to_file() {
    while (written_bytes_ < buffer_.size()) {
        const ssize_t done = disk_->write(file_, std::string_view{buffer_}.substr(written_bytes_));
        if (done > 0) {
            written_bytes_ += static_cast<std::size_t>(done);
            file_bytes_ += static_cast<std::uint64_t>(done);
            state.written_bytes += static_cast<std::uint64_t>(done);
            has_unsynced_data_ = true;
        } else if (done == 0 || errno != EINTR) {
            const int error = done == 0 ? EIO : errno;
            remove_partial_entry();
            state.error = error;
            return false;
        }
    }
    buffer_.clear();
    written_bytes_ = 0;
    is_start_missing_ = false;
    state.error = 0;
    return true;
}

/// Removes the written part of an unfinished entry or frame from the file. If that fails, the next
/// attempt to write completes the entry or frame.
void Recording::remove_partial_entry() {
    const std::size_t kept = frame_writer_
                                 ? 0
                                 : format().size_of_complete_entries(
                                       std::string_view{buffer_}.substr(0, written_bytes_));
    const std::size_t torn = written_bytes_ - kept;
    const auto status = disk_->file_status(file_);
    const bool gone = status && status->size < torn; // another process has truncated the file
    if (torn != 0 && (gone || (status && disk_->truncate(file_, status->size - torn)))) {
        written_bytes_ = kept;
        file_bytes_ -= std::min<std::uint64_t>(file_bytes_, torn);
        state.written_bytes -= torn;
    }
    buffer_.erase(0, kept);
    written_bytes_ -= kept;
}

void Recording::do_due_work(Clock::time_point now) {
    now_ = now;
    const bool is_check_due = now - last_check_ >= kCheckInterval;
    if (is_check_due && !failed()) {
        detect_moved_file();
    }
    execute_requests();
    if (is_check_due) {
        last_check_ = now;
        const std::int64_t clock = disk_->utc_seconds() - seconds_since_epoch(now_);
        if (std::abs(clock - clock_offset_) >= kMinClockJumpSeconds) {
            state.clock_jump += clock - std::exchange(clock_offset_, clock);
        }
        free_disk_space();
    }
    if (failed()) {
        if (now - last_try_ >= kRetryInterval || is_waiting_stopped_) {
            std::ignore = write_buffered_data();
        }
        return;
    }
    if (!frame_text_.empty() && now - frame_started_at_ >= kMaxFrameDuration) {
        end_frame();
        std::ignore = write_buffered_data();
    }
    if (is_check_due) {
        if (!has_locked_file_ && file_ >= 0) {
            std::ignore = lock_file(); // the process that had locked the file has ended
        }
        if (options_.sync == SyncPolicy::every_second) {
            sync();
        }
    }
}

/// Takes over the recording of another process, which no longer writes to it.
void Recording::take_over_recording() {
    if (options_.segments) {
        find_last_segment_number();
        if (file_ < 0 && !open_segment()) { // only an open segment can be locked
            set_error(errno);
        }
        return;
    }
    const RepairResult result = repair();
    if (result == RepairResult::done) {
        std::ignore = lock_file();
        write_file_start();
    } else if (result == RepairResult::failed) {
        set_error(errno);
        is_repair_requested_ = true;
    }
}

void Recording::execute_requests() {
    if (is_repair_requested_.exchange(false)) {
        take_over_recording();
    }
    if (!options_.segments && (is_path_moved_ || is_reopening_requested_)) {
        reopen();
    }
}

/// Continues in the file that the path now names, or reports once why that is not possible.
void Recording::reopen() {
    if (is_reopening_requested_.exchange(false)) {
        reported_error_ = 0;
    }
    // detect_moved_file() sets the flag again if the path still names another file.
    is_path_moved_ = false;
    blocking_error_ = 0;
    const int error = switch_to_file_at_path();
    state.is_path_unusable = error != 0;
    if (const auto own = disk_->file_status(file_); error != 0 && own && !own->has_name) {
        blocking_error_ = error; // data in a file without a name would be lost, so data waits
        set_error(error);
        return;
    }
    if (std::exchange(reported_error_, error) != error && error != 0) {
        state.reopening_error = error;
    }
}

/// Continues in the file that the path now names. Returns an errno value if that is not possible:
/// EEXIST if the path names something other than a recording.
int Recording::switch_to_file_at_path() {
    const int next = disk_->open(current_path_, Disk::OpenMode::append, options_.readers);
    if (next < 0) {
        return errno;
    }
    const auto own = disk_->file_status(file_);
    const auto other = disk_->file_status(next);
    if (own && other && own->is_same_file(*other)) {
        disk_->close(next);
        return 0;
    }
    if (other && !other->is_regular) { // writing to a pipe could wait forever
        disk_->close(next);
        return EEXIST;
    }
    if (own && own->has_name) { // if the file was removed, the new file gets the data
        end_frame();
        if (!failed()) {
            std::ignore = write_buffered_data();
        }
    }
    const int before = file_;
    file_ = next;
    if (const RepairResult result = repair(); result != RepairResult::done) {
        const int error = result == RepairResult::failed ? errno : EEXIST;
        file_ = before; // the new file cannot be continued
        disk_->close(next);
        return error;
    }
    file_ = before;
    close_current_file();
    file_ = next;
    std::ignore = lock_file();
    written_bytes_ = 0;
    write_file_start();
    if (failed()) {
        std::ignore = write_buffered_data(); // data that could not be written to the previous file
    }
    return 0;
}

void Recording::detect_moved_file() {
    const auto own = file_ < 0 ? std::nullopt : disk_->file_status(file_);
    if (own && own->is_regular) {
        const auto named = disk_->file_status(current_path_);
        is_path_moved_ = !named || !named->is_same_file(*own);
    }
}

/// Deletes old segments if too little disk space is free. Sets state.is_disk_space_low if there is
/// still too little.
void Recording::free_disk_space() {
    if (options_.min_free_bytes == 0) {
        return;
    }
    const std::string& where = options_.segments ? options_.segments->folder : options_.path;
    const auto is_scarce = [&] { return disk_->free_bytes(where) < options_.min_free_bytes; };
    bool scarce = is_scarce();
    if (scarce && options_.segments && options_.keep.has_limit()) {
        delete_segments();
        scarce = is_scarce();
    }
    state.is_disk_space_low = scarce;
}

void Recording::delete_segments() {
    delete_old_segments(*disk_, *options_.segments, options_.keep, options_.min_free_bytes,
                        segment_ages_, now_, current_path_);
}

bool Recording::is_segment_due(Clock::time_point now) {
    if (!options_.segments || file_ < 0) {
        return false;
    }
    if (is_reopening_requested_ || is_path_moved_) {
        return true;
    }
    const auto& limits = options_.segment_limits;
    return file_bytes_ != 0 && ((limits.age.count() != 0 && now - opened_at_ >= limits.age) ||
                                (limits.bytes != 0 && file_bytes_ >= limits.bytes));
}

bool Recording::start_segment() {
    end_frame();
    if (!write_buffered_data()) {
        return false;
    }
    // This duplicate keeps the lock until the next segment is locked.
    const base::UniqueFd before{file_ < 0 ? -1 : ::fcntl(file_, F_DUPFD_CLOEXEC, 0)};
    close_current_file();
    if (!open_segment()) {
        set_error(errno);
    }
    return true;
}

void Recording::sync() {
    if (std::exchange(has_unsynced_data_, false) && file_ >= 0 && !disk_->sync(file_)) {
        set_error(errno);
    }
}

void Recording::close_current_file() {
    if (file_ < 0) {
        return;
    }
    // An empty frame is written to an empty file, so that readers recognise it as zstd.
    const auto status = frame_writer_ && frame_text_.empty() && buffer_.empty()
                            ? disk_->file_status(file_)
                            : std::nullopt;
    if (status && status->is_regular && status->size == 0) {
        std::ignore = write_all(*disk_, file_, compress_frame(""));
    }
    if (const auto own = options_.segments ? disk_->file_status(file_) : std::nullopt;
        own && own->size == 0) { // no data fitted on the disk
        std::ignore = disk_->remove(current_path_);
    }
    if (options_.sync != SyncPolicy::none && has_unsynced_data_) {
        std::ignore = disk_->sync(file_); // an error cannot be handled any more
    }
    has_unsynced_data_ = false;
    disk_->close(file_);
    file_ = -1;
}

void Recording::finish_writing() {
    if (!options_.segments) {
        detect_moved_file();
    }
    execute_requests();
    end_frame();
    if (!buffer_.empty() && !write_buffered_data()) {
        const std::string text = frame_writer_ ? decompress_start(buffer_, SIZE_MAX) : buffer_;
        state.lost_entries +=
            format().count_entries(text) -
            (text.starts_with(file_start_) ? format().count_entries(file_start_) : 0);
        buffer_.clear();
    }
    if (options_.sync != SyncPolicy::none) {
        sync();
    }
}

/// Writes an entry even if less disk space is free than must stay free. If the disk is full, this
/// small entry usually fits where the written part of a larger entry was removed.
void Recording::write_loss_notice(std::string_view entry) {
    const bool is_entry_start = written_bytes_ == 0 && (file_bytes_ != 0 || !is_start_missing_);
    if (file_ < 0 || !is_entry_start) {
        return;
    }
    const int error = state.error;
    buffer_ = frame_writer_ ? compress_frame(entry) : std::string{entry};
    if (!write_buffer_to_file()) {
        buffer_.clear();
    }
    state.error = error;
}

} // namespace tw::store
