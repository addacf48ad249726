#include "proxy/store/recording.h"

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

/// An unfinished frame with more text than this is not cut off. Every frame of a recording has less
/// text, also in recordings by earlier versions.
constexpr std::uint64_t kMaxCutText = std::uint64_t{128} << 20U;
/// An unfinished frame of more bytes than this is not cut off: kMaxCutText bytes of text that
/// cannot be compressed.
constexpr std::uint64_t kMaxCutBytes = kMaxCutText + kMaxCutText / 128;

/// Decompresses a file from an offset on, and calls `visit` with the text, until `visit` returns
/// false, the data is damaged, or the file ends. Returns false if the data needs too large a
/// window.
bool read_frames(int file, std::uint64_t at,
                 const std::function<bool(std::string_view text)>& visit) {
    constexpr std::size_t kPiece = 65536;
    std::vector<char> packed(kPiece);
    std::vector<char> room(kPiece);
    std::unique_ptr<Decompressor> unpacker;
    while (true) {
        const ssize_t read = ::pread(file, packed.data(), packed.size(), static_cast<off_t>(at));
        const auto size = static_cast<std::size_t>(std::max<ssize_t>(read, 0));
        if (!unpacker) {
            unpacker = make_decompressor({packed.data(), size});
        }
        if (!unpacker) {
            return true;
        }
        const auto result = unpacker->unpack(std::span{packed}.first(size), room);
        const bool stopped = result.written != 0 && !visit({room.data(), result.written});
        if (stopped || result.damaged || (result.read == 0 && result.written == 0)) {
            return !result.too_wide;
        }
        at += result.read;
    }
}

/// Returns the first bytes of a compressed file's text; fewer if the text is short or damaged.
std::string begin_of_text(int file) {
    constexpr std::size_t kPacked = std::size_t{256} << 10U; // holds a frame's first block
    constexpr std::size_t kBegin = 64;
    std::string packed(kPacked, '\0');
    const ssize_t read = ::pread(file, packed.data(), packed.size(), 0);
    packed.resize(static_cast<std::size_t>(std::max<ssize_t>(read, 0)));
    return decompress_start(packed, kBegin);
}

/// Returns the data of a file from the offset `end` on; empty if the data is longer than any unit.
std::string rest_of(int file, std::uint64_t end, std::uint64_t size) {
    std::string text(size - end <= sink::kMaxLineBytes ? size - end : 0, '\0');
    const ssize_t read = ::pread(file, text.data(), text.size(), static_cast<off_t>(end));
    return read == static_cast<ssize_t>(text.size()) ? text : std::string{};
}

/// The longest time for which a frame stays open. With the time for which data waits in a queue,
/// readers of the file get it about a second late.
constexpr std::chrono::milliseconds kFrameTime{750};
constexpr std::int64_t kNanoseconds = 1'000'000'000; ///< number of nanoseconds in a second
constexpr std::chrono::seconds kRetryEvery{1};
constexpr std::chrono::seconds kLookEvery{1};
/// If the wall clock jumps by this many seconds, it was set. Smaller jumps are corrections.
constexpr std::int64_t kJumpSeconds = 60;
constexpr std::chrono::milliseconds kLockPoll{20};
/// The longest time for which a starting twscope is expected to hold the lock of the folder.
constexpr std::chrono::seconds kStartTime{1};
/// The number of names that are tried if other processes created segments in the same second.
constexpr int kNamesToTry = 100;

std::int64_t seconds_of(Recording::Clock::time_point time) {
    return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

std::string other_writer_complaint(const std::string& path) {
    return fmt::format("{}: another process is recording to it; stop that one, or name another {}",
                       path, path.ends_with('/') ? "folder" : "file or folder");
}

} // namespace

Recording::Recording(RecordingOptions options, StartMode mode, Disk& disk)
    : OutputFile{options.path, *options.format}, options_{std::move(options)}, disk_{&disk},
      file_start_{format().file_header()}, ages_{options_.keep.age}, now_{Clock::now()},
      opened_at_{now_}, last_check_{now_} {
    clock_offset_ = disk_->utc_seconds() - seconds_of(now_);
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
    // Another process may still write to a shared recording; see continue_recording().
    const bool is_shared = mode == StartMode::shared;
    if (options_.segments) {
        const base::UniqueFd starting = is_shared ? base::UniqueFd{} : wait_for_other_writer();
        count_segments();
        if (!is_shared) {
            repair_last_segment();
        }
        free_disk_space();
        require(is_shared || open_segment());
        return;
    }
    current_path_ = options_.path;
    file_ = disk_->open(current_path_, Disk::OpenMode::append, options_.readers);
    require(file_ >= 0);
    if (is_shared) {
        return;
    }
    for (const auto until = Clock::now() + options_.patience; !lock_file();) {
        if (Clock::now() >= until) {
            throw std::runtime_error{other_writer_complaint(options_.path)};
        }
        std::this_thread::sleep_for(kLockPoll);
    }
    require(mode != StartMode::empty || disk_->truncate(file_, 0));
    const RepairResult result = mode == StartMode::append ? repair() : RepairResult::done;
    require(result != RepairResult::failed);
    if (result != RepairResult::done) {
        throw std::runtime_error{repair_error_text(result)};
    }
    begin_file();
}

void Recording::count_segments() {
    for (const Segment& segment : segments_in(options_.segments->folder, &*options_.segments)) {
        number_ = std::max(number_, segment.number);
    }
}

/// Waits until no other process writes to segments of the recording. Errors: std::runtime_error if
/// another process still writes after RecordingOptions::patience. While the returned descriptor is
/// open, other processes wait in this function.
base::UniqueFd Recording::wait_for_other_writer() const {
    const std::string& path = options_.segments->folder;
    base::UniqueFd folder{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    const auto until = Clock::now() + options_.patience;
    while (true) {
        // Ignores the folder's lock after a while: a starting twscope holds it only for a moment.
        const bool has_turn = ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0 ||
                              errno != EWOULDBLOCK || Clock::now() >= until + kStartTime;
        const bool is_written = std::ranges::any_of(
            segments_in(path, &*options_.segments),
            [&path](const Segment& each) { return base::is_locked(path + "/" + each.file); });
        if (has_turn && !is_written) {
            return folder;
        }
        if (is_written && Clock::now() >= until) {
            throw std::runtime_error{other_writer_complaint(options_.path)};
        }
        ::flock(folder.get(), LOCK_UN);
        std::this_thread::sleep_for(kLockPoll);
    }
}

/// Locks the file. Returns false if another process has locked it. Not all file systems have locks.
bool Recording::lock_file() {
    is_locked_ = base::lock_file(file_);
    return is_locked_ || (errno != EAGAIN && errno != EACCES);
}

bool Recording::open_segment() {
    for (int tries = 0; tries < kNamesToTry; ++tries) {
        std::string path = options_.segments->path(disk_->utc_seconds(), number_ + 1);
        const int file = disk_->open(path, Disk::OpenMode::create, options_.readers);
        if (file < 0 && errno != EEXIST) {
            return false;
        }
        ++number_;
        if (file >= 0) {
            file_ = file;
            current_path_ = std::move(path);
            std::ignore = lock_file();
            file_start_ =
                format().segment_header(current_path_.substr(current_path_.rfind('/') + 1), number_,
                                        disk_->utc_seconds() * kNanoseconds);
            opened_at_ = now_;
            is_path_moved_ = false;
            reopening_wanted_ = false;
            begin_file();
            ages_.on_segment_start(number_, now_);
            delete_segments();
            return true;
        }
    }
    return false;
}

void Recording::begin_file() {
    if (!file_start_.empty()) {
        unit_.insert(0, frame_writer_ ? compress_frame(file_start_) : file_start_);
        std::ignore = write_unit();
    }
    file_bytes_ = 0;
}

/// Returns a separate compressed frame with this text.
std::string Recording::compress_frame(std::string_view text) {
    std::string frame;
    frame_writer_->append_frame(text, frame);
    return frame;
}

/// Repairs the end of the file so that units can be appended: cuts off an unfinished line, block or
/// compressed frame. Completes a last line that lacks only its newline.
Recording::RepairResult Recording::repair() {
    const auto facts = disk_->file_facts(file_);
    if (!facts || !facts->regular) {
        return RepairResult::done;
    }
    if (options_.compressed) {
        const auto scan = scan_frames(file_);
        if (scan && (scan->foreign || format().is_foreign_data(begin_of_text(file_)))) {
            return RepairResult::foreign;
        }
        return !scan || scan->complete_bytes == scan->size ? RepairResult::done
                                                           : cut_off_frame(*scan);
    }
    if (format().is_foreign_file(file_)) {
        return RepairResult::foreign;
    }
    const auto end = format().find_last_unit_end(file_, facts->size);
    if (!end || *end >= facts->size) {
        return RepairResult::done;
    }
    const std::string_view missing =
        format().completion_of_last_unit(rest_of(file_, *end, facts->size));
    if ((missing.empty() || !write_all(*disk_, file_, missing)) && disk_->truncate(file_, *end)) {
        state.cut_bytes += facts->size - *end;
    }
    return RepairResult::done;
}

/// Cuts off the unfinished frame at the end of the file. Counts its readable complete units.
Recording::RepairResult Recording::cut_off_frame(const FrameScan& scan) {
    const std::uint64_t cut_bytes = scan.size - scan.complete_bytes;
    std::uint64_t cut_units = 0;
    std::uint64_t text_bytes = 0;
    std::string rest; // text after the last complete unit
    const bool readable = read_frames(file_, scan.complete_bytes, [&](std::string_view text) {
        text_bytes += text.size();
        rest.append(text);
        const std::size_t whole = format().size_of_complete_units(rest);
        cut_units += format().count_units(std::string_view{rest}.substr(0, whole));
        rest.erase(0, whole);
        return text_bytes <= kMaxCutText;
    });
    if (!readable || text_bytes > kMaxCutText || cut_bytes > kMaxCutBytes) {
        return RepairResult::too_much_unfinished;
    }
    if (!disk_->truncate(file_, scan.complete_bytes)) {
        return RepairResult::failed;
    }
    state.cut_bytes += cut_bytes;
    state.cut_units += cut_units;
    return RepairResult::done;
}

/// Repairs the end of the last segment after a crash. Errors are ignored, because new data goes to
/// a new segment.
void Recording::repair_last_segment() {
    const auto segments = segments_in(options_.segments->folder, &*options_.segments);
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
            options_.path, format().unit_name(), options_.compressed ? ", compressed" : "");
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
        state.lost += format().count_units(block);
        return;
    }
    if (!frame_writer_) {
        unit_.append(block);
        std::ignore = write_current_unit();
        return;
    }
    frame_start_ = text_.empty() ? now_ : frame_start_;
    text_.append(block);
    if (text_.size() >= options_.frame_text) {
        end_frame();
        std::ignore = write_current_unit();
    }
}

void Recording::end_frame() {
    if (!text_.empty()) {
        frame_writer_->append_frame(text_, unit_);
        text_.clear();
    }
}

bool Recording::write_current_unit() {
    if (state.disk_scarce) {
        set_error(ENOSPC);
        return false;
    }
    if (file_ < 0 && !open_segment()) {
        set_error(errno);
        return false;
    }
    if (was_truncated_elsewhere()) {
        begin_file();
    }
    last_try_ = now_;
    return write_unit();
}

/// Sets the error after a failed attempt to write, open or sync a file.
void Recording::set_error(int error) {
    state.error = error;
    last_try_ = now_;
}

/// Returns whether another process truncated the file, as logrotate's copytruncate does. The bytes
/// at the start of each file must then be written again.
bool Recording::was_truncated_elsewhere() {
    const auto facts =
        file_start_.empty() || file_bytes_ == 0 ? std::nullopt : disk_->file_facts(file_);
    return facts && facts->regular && facts->size == 0;
}

bool Recording::write_unit() {
    while (written_ < unit_.size()) {
        const ssize_t done = disk_->write(file_, std::string_view{unit_}.substr(written_));
        if (done > 0) {
            written_ += static_cast<std::size_t>(done);
            file_bytes_ += static_cast<std::uint64_t>(done);
            state.written_bytes += static_cast<std::uint64_t>(done);
            has_unsynced_data_ = true;
        } else if (done == 0 || errno != EINTR) {
            const int error = done == 0 ? EIO : errno;
            remove_written_part();
            state.error = error;
            return false;
        }
    }
    unit_.clear();
    written_ = 0;
    state.error = 0;
    return true;
}

/// Removes the written part of the current unit or frame from the file. If that fails, the next
/// attempt to write completes the unit or frame.
void Recording::remove_written_part() {
    const std::size_t kept =
        frame_writer_
            ? 0
            : format().size_of_complete_units(std::string_view{unit_}.substr(0, written_));
    const std::size_t torn = written_ - kept;
    const auto facts = disk_->file_facts(file_);
    const bool gone = facts && facts->size < torn; // another process has truncated the file
    if (torn != 0 && (gone || (facts && disk_->truncate(file_, facts->size - torn)))) {
        written_ = kept;
        file_bytes_ -= std::min<std::uint64_t>(file_bytes_, torn);
        state.written_bytes -= torn;
    }
    unit_.erase(0, kept);
    written_ -= kept;
}

void Recording::on_time(Clock::time_point now) {
    now_ = now;
    execute_requests();
    const bool is_check_due = now - last_check_ >= kLookEvery;
    if (is_check_due) {
        last_check_ = now;
        detect_clock_jump();
        free_disk_space();
    }
    if (failed()) {
        if (now - last_try_ >= kRetryEvery || waiting_stopped_) {
            std::ignore = write_current_unit();
        }
        return;
    }
    if (!text_.empty() && now - frame_start_ >= kFrameTime) {
        end_frame();
        std::ignore = write_current_unit();
    }
    if (is_check_due) {
        detect_moved_file();
        if (!is_locked_ && file_ >= 0) {
            std::ignore = lock_file(); // the process that had locked the file has ended
        }
        if (options_.sync == SyncPolicy::every_second) {
            sync();
        }
    }
}

/// Continues the recording of another process. Precondition: that process no longer writes to it.
void Recording::continue_recording() {
    if (options_.segments) {
        count_segments();
        if (file_ < 0 && !open_segment()) { // only an open segment can be locked
            set_error(errno);
        }
        return;
    }
    const RepairResult result = repair();
    if (result == RepairResult::done) {
        std::ignore = lock_file();
        begin_file();
    } else if (result == RepairResult::failed) {
        set_error(errno);
        repair_wanted_ = true;
    }
}

void Recording::execute_requests() {
    if (repair_wanted_.exchange(false)) {
        continue_recording();
    }
    if (!options_.segments && (is_path_moved_ || reopening_wanted_)) {
        reopen();
    }
}

/// Continues in the file that the path now names, or reports once why that is not possible.
void Recording::reopen() {
    if (reopening_wanted_.exchange(false)) {
        reported_error_ = 0;
    }
    is_path_moved_ =
        false; // detect_moved_file() sets is_path_moved_ again if the path still names another file
    const int error = switch_to_named_file();
    if (std::exchange(reported_error_, error) != error && error != 0) {
        state.reopening_error = error;
    }
}

/// Continues in the file that the path now names. Returns an errno value if that is not possible:
/// EEXIST if the path names something other than a recording.
int Recording::switch_to_named_file() {
    const int next = disk_->open(current_path_, Disk::OpenMode::append, options_.readers);
    if (next < 0) {
        return errno;
    }
    const auto own = disk_->file_facts(file_);
    const auto other = disk_->file_facts(next);
    if (own && other && own->is_same_file(*other)) {
        disk_->close(next);
        return 0;
    }
    if (other && !other->regular) { // writing to a pipe could wait for ever
        disk_->close(next);
        return EEXIST;
    }
    end_frame();
    if (!failed()) {
        std::ignore = write_current_unit();
    }
    const int before = file_;
    file_ = next;
    if (const RepairResult result = repair(); result != RepairResult::done) {
        const int error = result == RepairResult::failed ? errno : EEXIST;
        file_ = before; // no data may be appended to the new file
        disk_->close(next);
        return error;
    }
    file_ = before;
    close_current_file();
    file_ = next;
    std::ignore = lock_file();
    written_ = 0;
    begin_file();
    if (failed()) {
        std::ignore =
            write_current_unit(); // the unit that could not be written to the previous file
    }
    return 0;
}

void Recording::detect_moved_file() {
    const auto own = file_ < 0 ? std::nullopt : disk_->file_facts(file_);
    if (own && own->regular) {
        const auto named = disk_->file_facts(current_path_);
        is_path_moved_ = !named || !named->is_same_file(*own);
    }
}

void Recording::detect_clock_jump() {
    const std::int64_t clock = disk_->utc_seconds() - seconds_of(now_);
    if (std::abs(clock - clock_offset_) >= kJumpSeconds) {
        state.clock_jump += clock - clock_offset_;
        clock_offset_ = clock;
    }
}

/// Deletes old segments if too little disk space is free. Sets state.disk_scarce if there is still
/// too little.
void Recording::free_disk_space() {
    if (options_.least_free == 0) {
        return;
    }
    const std::string& where = options_.segments ? options_.segments->folder : options_.path;
    const auto is_scarce = [&] { return disk_->free_bytes(where) < options_.least_free; };
    bool scarce = is_scarce();
    if (scarce && options_.segments && options_.keep.has_limit()) {
        delete_segments();
        scarce = is_scarce();
    }
    state.disk_scarce = scarce;
}

void Recording::delete_segments() {
    delete_old_segments(*disk_, *options_.segments, options_.keep, options_.least_free, ages_, now_,
                        current_path_);
}

bool Recording::is_segment_due(Clock::time_point now) {
    if (!options_.segments || file_ < 0) {
        return false;
    }
    if (reopening_wanted_ || is_path_moved_) {
        return true;
    }
    const auto& limits = options_.rotate;
    return file_bytes_ != 0 && ((limits.age.count() != 0 && now - opened_at_ >= limits.age) ||
                                (limits.bytes != 0 && file_bytes_ >= limits.bytes));
}

bool Recording::start_segment() {
    end_frame();
    if (!write_current_unit()) {
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
    const auto facts =
        frame_writer_ && text_.empty() && unit_.empty() ? disk_->file_facts(file_) : std::nullopt;
    if (facts && facts->regular && facts->size == 0) {
        std::ignore = write_all(*disk_, file_, compress_frame(""));
    }
    if (options_.sync != SyncPolicy::none && has_unsynced_data_) {
        std::ignore = disk_->sync(file_); // an error cannot be handled any more
    }
    has_unsynced_data_ = false;
    disk_->close(file_);
    file_ = -1;
}

void Recording::finish_writing() {
    execute_requests();
    end_frame();
    if (!unit_.empty() && !write_current_unit()) {
        const std::string text = frame_writer_ ? decompress_start(unit_, SIZE_MAX) : unit_;
        state.lost += format().count_units(text) -
                      (text.starts_with(file_start_) ? format().count_units(file_start_) : 0);
        unit_.clear();
    }
    if (options_.sync != SyncPolicy::none) {
        sync();
    }
}

/// Writes a unit even if less disk space is free than must stay free. If the disk is full, the unit
/// usually fits where the written part of a larger unit was removed.
void Recording::write_loss_notice(std::string_view unit) {
    const bool is_unit_begin = written_ == 0 && (file_bytes_ != 0 || file_start_.empty());
    if (file_ < 0 || !is_unit_begin) {
        return;
    }
    const int error = state.error;
    unit_ = frame_writer_ ? compress_frame(unit) : std::string{unit};
    if (!write_unit()) {
        unit_.clear();
    }
    state.error = error;
}

} // namespace tw::store
