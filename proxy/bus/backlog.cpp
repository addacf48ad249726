#include "proxy/bus/backlog.h"

#include "proxy/base/files.h"
#include "proxy/base/log.h"
#include "proxy/sink/output.h"
#include "proxy/store/file_queue.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <system_error>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tw::bus {

namespace {

/// A segment in memory is full from this size on. Files are read in pieces of this size.
constexpr std::size_t kPieceBytes = std::size_t{256} << 10U;
constexpr std::size_t kMaxStateBytes = 256;
constexpr mode_t kSpoolFileMode = 0640;

} // namespace

Backlog::Backlog(std::string run, std::string server, std::size_t max_memory)
    : max_memory_{max_memory}, run_{std::move(run)}, state_{.server = std::move(server)} {}

Backlog::Backlog(SpoolFolder& folder, std::string run, int state_file)
    : folder_{&folder}, run_{std::move(run)}, state_file_{state_file} {
    folder.set_run_in_use(run_, true);
}

Backlog::Backlog(SpoolFolder& folder, std::string run, std::string server, std::string stream)
    : Backlog{folder, run,
              ::open((folder.path() / spool_state_file_name(run)).c_str(),
                     O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kSpoolFileMode)} {
    if (!state_file_.valid() || !base::lock_file(state_file_.get())) {
        throw std::system_error{errno, std::generic_category(), folder.path().string()};
    }
    state_.server = std::move(server);
    state_.stream = std::move(stream);
    error_ = write_state();
}

std::unique_ptr<Backlog> Backlog::take_over_other_spool(SpoolFolder& folder,
                                                        const std::string& own_run,
                                                        const std::string& stream) {
    for (const std::string& run : folder.list_run_ids()) {
        const auto path = folder.path() / spool_state_file_name(run);
        base::UniqueFd state{run == own_run ? -1 : ::open(path.c_str(), O_RDWR | O_CLOEXEC)};
        if (!state.valid() || !base::lock_file(state.get())) {
            continue;
        }
        std::array<char, kMaxStateBytes> text{};
        const ssize_t got = ::pread(state.get(), text.data(), text.size(), 0);
        const auto known =
            parse_spool_state({text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))});

        struct stat found {};

        // The previous owner may have removed the file before this process locked it.
        if (known && known->belongs_to_stream(stream) && ::fstat(state.get(), &found) == 0 &&
            found.st_nlink != 0) {
            std::unique_ptr<Backlog> backlog{new Backlog{folder, run, state.release()}};
            backlog->state_ = *known;
            backlog->has_state_file_ = true;
            backlog->load_segments();
            return backlog;
        }
    }
    return nullptr;
}

Backlog::~Backlog() {
    if (folder_ == nullptr) {
        return;
    }
    const std::lock_guard lock{mutex_};
    while (!segments_.empty() && last_line_of_segment(segments_.begin()) <= state_.settled) {
        remove_first_segment();
    }
    if (segments_.empty() && (error_ == 0 || !has_state_file_)) {
        std::ignore = ::unlink((folder_->path() / spool_state_file_name(run_)).c_str());
    }
    folder_->set_run_in_use(run_, false);
}

void Backlog::load_segments() {
    last_line_ = state_.settled;
    for (const SpoolFile& file : folder_->list_files()) {
        if (file.run == run_) {
            segments_.push_back({.first = file.first, .bytes = file.bytes, .text = {}});
            last_line_ = std::max(state_.settled, file.first + folder_->count_lines(file) - 1);
        }
    }
    // Lines before the first file do not count as lost here, because the process that dropped them
    // has counted them.
    losses_counted_until_ = segments_.empty() ? 0 : segments_.front().first - 1;
}

std::uint64_t Backlog::last_line_of_segment(Segments::const_iterator segment) const {
    const auto next = std::next(segment);
    return next == segments_.end() ? last_line_ : next->first - 1;
}

std::uint64_t Backlog::size_of_segments() const {
    std::uint64_t bytes = 0;
    for (const Segment& segment : segments_) {
        bytes += segment.bytes;
    }
    return bytes;
}

bool Backlog::has_room() const {
    const std::lock_guard lock{mutex_};
    return unwritten_lines_.empty() && (folder_ != nullptr || size_of_segments() < max_memory_);
}

void Backlog::append_lines(std::string_view block) {
    const std::lock_guard lock{mutex_};
    if (folder_ != nullptr) {
        unwritten_lines_.append(block);
        write_unwritten_lines();
        return;
    }
    if (block.empty()) {
        return;
    }
    if (segments_.empty() || segments_.back().bytes >= kPieceBytes) {
        segments_.push_back({.first = last_line_ + 1, .text = {}});
    }
    segments_.back().text.append(block);
    segments_.back().bytes += block.size();
    last_line_ += sink::count_lines(block);
}

/// Starts the next file if `coming` bytes do not fit in the current file. Returns false if a file
/// cannot be created at the moment.
bool Backlog::start_segment_if_full(std::size_t coming) {
    const std::uint64_t most = folder_->segment_bytes();
    if (file_.valid() && !segments_.empty() && segments_.back().bytes + coming <= most) {
        return true;
    }
    last_dropped_line_ =
        std::max(last_dropped_line_,
                 folder_->drop_oldest_lines_to_fit(run_, std::max<std::uint64_t>(most, coming)));
    losses_counted_until_ = std::max(losses_counted_until_, last_dropped_line_);
    while (!segments_.empty() && last_line_of_segment(segments_.begin()) <= last_dropped_line_) {
        segments_.pop_front();
    }
    file_ = base::UniqueFd{
        folder_->disk().open(segment_path(last_line_ + 1), store::Disk::OpenMode::empty)};
    if (!file_.valid()) {
        error_ = errno;
        return false;
    }
    segments_.push_back({.first = last_line_ + 1, .text = {}});
    return true;
}

void Backlog::write_unwritten_lines() {
    if (unwritten_lines_.empty()) {
        return;
    }
    if (!has_state_file_) {
        error_ = write_state();
    }
    if (!has_state_file_ || !start_segment_if_full(unwritten_lines_.size())) {
        if (error_ == ENOENT) { // this confined process is not permitted to create folders
            if (!std::exchange(is_folder_removed_, true)) {
                log::error(
                    "the spool {} was removed: nothing is published until twscope is restarted",
                    folder_->path().string());
            }
            refused_lines_ += sink::count_lines(unwritten_lines_);
            unwritten_lines_.clear();
        }
        return;
    }
    Segment& segment = segments_.back();
    if (store::write_all(folder_->disk(), file_.get(), unwritten_lines_)) {
        error_ = 0;
        segment.bytes += unwritten_lines_.size();
        last_line_ += sink::count_lines(unwritten_lines_);
        unwritten_lines_.clear();
        return;
    }
    error_ = errno;
    if (!folder_->disk().truncate(file_.get(), segment.bytes)) {
        // The file ends with a damaged line. The next line starts a new file.
        file_ = base::UniqueFd{};
    }
    if (segment.bytes == 0) {
        std::ignore = folder_->disk().remove(segment_path(segment.first));
        segments_.pop_back();
        file_ = base::UniqueFd{};
    }
}

Backlog::Status Backlog::status() const {
    const std::lock_guard lock{mutex_};
    const bool is_spool = folder_ != nullptr;
    return {.error = error_,
            .last_line = last_line_,
            .last_dropped_line = last_dropped_line_,
            .lost_lines = refused_lines_ +
                          (is_spool ? folder_->dropped_lines() + folder_->missing_lines() : 0),
            .unsaved_lines = is_spool ? sink::count_lines(unwritten_lines_) : num_unsettled_lines(),
            .last_settled_line = state_.settled,
            .settled_sequence = state_.sequence};
}

/// Returns how many lines of the segments are still to be published.
std::uint64_t Backlog::num_unsettled_lines() const {
    std::uint64_t lines = 0;
    for (auto segment = segments_.begin(); segment != segments_.end(); ++segment) {
        const std::uint64_t before =
            std::max({segment->first - 1, state_.settled, losses_counted_until_});
        const std::uint64_t last = last_line_of_segment(segment);
        lines += last > before ? last - before : 0;
    }
    return lines;
}

LineTotals Backlog::count_waiting_lines() const {
    LineTotals totals =
        folder_ == nullptr ? LineTotals{} : folder_->count_unpublished_lines(run_, state_.stream);
    const std::lock_guard lock{mutex_};
    const std::uint64_t unsettled = num_unsettled_lines();
    totals.lines += unsettled + sink::count_lines(unwritten_lines_);
    totals.bytes += (unsettled == 0 ? 0 : size_of_segments()) + unwritten_lines_.size();
    return totals;
}

void Backlog::remove_first_segment() {
    if (folder_ != nullptr) {
        std::ignore = folder_->disk().remove(segment_path(segments_.front().first));
    }
    segments_.pop_front();
}

/// Counts the lines from `from` to `last` as missing, except lines that are already published or
/// counted.
void Backlog::count_missing_lines(std::uint64_t from, std::uint64_t last) {
    const std::uint64_t before = std::max({from - 1, state_.settled, losses_counted_until_});
    if (last > before) {
        folder_->count_missing_lines(last - before);
        losses_counted_until_ = last;
    }
}

bool Backlog::find_line(std::uint64_t from, NumberedLine& line) {
    if (from < next_read_line_) { // a new connection starts again at an earlier line
        read_segment_first_ = 0;
        buffer_.clear();
        buffer_offset_ = 0;
    }
    std::size_t end = 0;
    while (true) {
        end = buffer_.find('\n', buffer_offset_);
        // Ignores text after the line segment_last_line_. A failed write may have left such text.
        if (end == std::string::npos || next_read_line_ > segment_last_line_) {
            if (!read_next_lines(from)) {
                return false;
            }
        } else if (next_read_line_ < from) {
            buffer_offset_ = end + 1;
            ++next_read_line_;
        } else {
            break;
        }
    }
    if (next_read_line_ > from) {
        const std::lock_guard lock{mutex_};
        count_missing_lines(from, next_read_line_ - 1);
    }
    line = {.number = next_read_line_,
            .text = std::string_view{buffer_}.substr(buffer_offset_, end - buffer_offset_)};
    return true;
}

/// Reads lines into the buffer: the next lines of the current segment. At the end of that segment,
/// reads the segment that contains the line `from`, or the next segment. Returns false if no line
/// was read.
bool Backlog::read_next_lines(std::uint64_t from) {
    buffer_.clear();
    buffer_offset_ = 0;
    const std::lock_guard lock{mutex_};
    while (true) {
        const auto current = std::ranges::find(segments_, read_segment_first_, &Segment::first);
        if (current != segments_.end() && read_segment_lines(*current)) {
            segment_last_line_ = last_line_of_segment(current);
            return true;
        }
        auto next = std::ranges::upper_bound(segments_, std::max(from, read_segment_first_), {},
                                             &Segment::first);
        if (next != segments_.begin() && std::prev(next)->first > read_segment_first_) {
            --next;
        }
        if (next == segments_.end()) {
            return false;
        }
        read_segment_first_ = next_read_line_ = next->first;
        read_offset_ = 0;
        if (folder_ == nullptr) {
            continue;
        }
        read_file_ =
            base::UniqueFd{::open(segment_path(next_read_line_).c_str(), O_RDONLY | O_CLOEXEC)};
        if (!read_file_.valid()) { // the file was removed from outside
            count_missing_lines(from, last_line_of_segment(next));
            if (std::next(next) == segments_.end()) {
                file_ = base::UniqueFd{}; // the next line starts a new file
            }
        }
    }
}

/// Reads the next lines of a segment into the buffer. Returns false if no line was read.
bool Backlog::read_segment_lines(const Segment& segment) {
    for (std::size_t size = kPieceBytes;; size *= 2) { // longer pieces are needed for long lines
        const std::uint64_t left = segment.bytes - std::min(segment.bytes, read_offset_);
        buffer_.resize(std::min<std::uint64_t>(size, left));
        if (folder_ == nullptr) {
            buffer_ = segment.text.substr(read_offset_, buffer_.size());
        } else {
            const ssize_t got = ::pread(read_file_.get(), buffer_.data(), buffer_.size(),
                                        static_cast<off_t>(read_offset_));
            buffer_.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        }
        const auto newline = buffer_.rfind('\n');
        if (newline != std::string::npos) {
            buffer_.resize(newline + 1);
            read_offset_ += buffer_.size();
            return true;
        }
        if (buffer_.size() < size) {
            buffer_.clear();
            return false;
        }
    }
}

/// Writes the state file. Returns 0 or errno; after an error, the file is unchanged.
int Backlog::write_state() {
    const std::string text = spool_state_text(state_);
    const ssize_t written = ::pwrite(state_file_.get(), text.data(), text.size(), 0);
    if (written == static_cast<ssize_t>(text.size())) {
        has_state_file_ = true;
        return 0;
    }
    return written < 0 ? errno : ENOSPC;
}

void Backlog::settle_lines(std::uint64_t line, std::uint64_t sequence) {
    const std::lock_guard lock{mutex_};
    state_.settled = line;
    state_.sequence = sequence;
    if (folder_ != nullptr) {
        // An error is harmless: a process that takes over the spool then has to look up more lines
        // in the stream.
        std::ignore = write_state();
    }
    // Keeps the last file, which stays open for the next lines.
    const std::size_t kept = folder_ == nullptr ? 0 : 1;
    while (segments_.size() > kept && last_line_of_segment(segments_.begin()) <= line) {
        remove_first_segment();
    }
}

} // namespace tw::bus
