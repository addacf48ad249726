#include "proxy/bus/backlog.h"

#include "proxy/base/files.h"
#include "proxy/sink/output.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <tuple>

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tw::bus {

bool MemoryBacklog::append(std::string_view block) {
    const std::uint64_t lines = sink::count_lines(block);
    if (lines == 0) {
        return true;
    }
    const std::lock_guard lock{mutex_};
    blocks_.push_back({.first = last_ + 1, .text = std::string{block}});
    bytes_ += block.size();
    last_ += lines;
    return true;
}

bool MemoryBacklog::has_room() const {
    const std::lock_guard lock{mutex_};
    return bytes_ < max_bytes_;
}

std::uint64_t MemoryBacklog::waiting_bytes() const {
    const std::lock_guard lock{mutex_};
    return bytes_;
}

bool MemoryBacklog::read_lines(std::uint64_t from, RecordLines& lines) {
    const std::lock_guard lock{mutex_};
    if (from > last_ || blocks_.empty()) {
        return false;
    }
    const auto behind = std::upper_bound(
        blocks_.begin(), blocks_.end(), from,
        [](std::uint64_t line, const RecordLines& block) { return line < block.first; });
    lines = behind == blocks_.begin() ? blocks_.front() : *std::prev(behind);
    return true;
}

void MemoryBacklog::settle_lines(std::uint64_t line, std::uint64_t sequence) {
    const std::lock_guard lock{mutex_};
    settled_ = line;
    sequence_ = sequence;
    while (!blocks_.empty() && (blocks_.size() > 1 ? blocks_[1].first - 1 : last_) <= line) {
        bytes_ -= blocks_.front().text.size();
        blocks_.pop_front();
    }
}

std::uint64_t MemoryBacklog::last_settled() const {
    const std::lock_guard lock{mutex_};
    return settled_;
}

std::optional<std::uint64_t> MemoryBacklog::settled_sequence() const {
    const std::lock_guard lock{mutex_};
    return sequence_;
}

std::uint64_t MemoryBacklog::last_line() const {
    const std::lock_guard lock{mutex_};
    return last_;
}

namespace {

constexpr std::size_t kReadBytes = std::size_t{256} << 10U;
constexpr std::size_t kMaxStateBytes = 256;
constexpr mode_t kSpoolFileMode = 0644;

} // namespace

Spool::Spool(SpoolFolder& folder, std::string run, int state)
    : folder_{&folder}, run_{std::move(run)}, state_file_{state} {}

Spool::Spool(SpoolFolder& folder, const std::string& run, const std::string& server,
             const std::string& stream)
    : Spool{folder, run,
            ::open((folder.path() / spool_state_name(run)).c_str(),
                   O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kSpoolFileMode)} {
    if (!state_file_.valid() || !base::lock_file(state_file_.get())) {
        throw std::system_error{errno, std::generic_category(), folder.path().string()};
    }
    is_ours_ = true;
    state_.server = server;
    state_.stream = stream;
    error_ = write_state();
}

std::unique_ptr<Spool> Spool::take_over(SpoolFolder& folder, const std::string& run,
                                        const std::string& stream) {
    const auto path = folder.path() / spool_state_name(run);
    base::UniqueFd state{::open(path.c_str(), O_RDWR | O_CLOEXEC)};
    if (!state.valid() || !base::lock_file(state.get())) {
        return nullptr;
    }
    std::array<char, kMaxStateBytes> text{};
    const ssize_t got = ::pread(state.get(), text.data(), text.size(), 0);
    const auto known =
        read_spool_state({text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))});

    struct stat found {};

    // The previous owner may have removed the file before this process locked it.
    if (::fstat(state.get(), &found) != 0 || found.st_nlink == 0) {
        return nullptr;
    }
    std::unique_ptr<Spool> spool{new Spool{folder, run, state.release()}};
    if (!known || !known->belongs_to_stream(stream)) {
        return nullptr;
    }
    spool->state_ = *known;
    spool->has_state_file_ = true;
    spool->find_segments();
    folder.count_damaged_lines(run, spool->state_.settled);
    return spool;
}

Spool::~Spool() {
    const std::lock_guard lock{mutex_};
    if (state_.server.empty()) {
        return; // the state file is invalid
    }
    while (!segments_.empty() && last_line_of(0) <= state_.settled) {
        remove_first_segment();
    }
    if (segments_.empty() && (error_ == 0 || !has_state_file_)) {
        std::ignore = ::unlink((folder_->path() / spool_state_name(run_)).c_str());
    }
}

std::unique_ptr<Spool> Spool::take_over_next(SpoolFolder& folder, const std::string& own_run,
                                             const std::string& stream) {
    for (const std::string& run : folder.run_ids()) {
        if (run == own_run) {
            continue;
        }
        if (auto spool = take_over(folder, run, stream)) {
            return spool;
        }
    }
    return nullptr;
}

void Spool::find_segments() {
    for (const SpoolFolder::FoundFile& found : folder_->list_files()) {
        if (found.file.run == run_) {
            segments_.push_back({.first = found.file.first, .bytes = found.bytes});
        }
    }
    std::uint64_t bytes = 0;
    for (const SpoolSegment& segment : segments_) {
        bytes += segment.bytes;
    }
    folder_->add_leftover_bytes(run_, bytes);
    last_ = state_.settled;
    if (!segments_.empty()) {
        const std::uint64_t lines =
            SpoolFolder::count_contents(segment_path(segments_.back().first)).lines;
        last_ = std::max(last_, segments_.back().first + lines - 1);
    }
}

std::uint64_t Spool::waiting_lines() const {
    std::uint64_t lines = folder_->waiting_lines(run_, state_.stream);
    const std::lock_guard lock{mutex_};
    for (std::size_t i = 0; i < segments_.size(); ++i) {
        const std::uint64_t before = std::max(segments_[i].first - 1, state_.settled);
        lines += last_line_of(i) > before ? last_line_of(i) - before : 0;
    }
    return lines;
}

std::string Spool::segment_path(std::uint64_t first) const {
    return (folder_->path() / spool_file_name(run_, first)).string();
}

std::uint64_t Spool::last_line_of(std::size_t segment) const {
    return segment + 1 < segments_.size() ? segments_[segment + 1].first - 1 : last_;
}

/// Starts the next file if `coming` bytes do not fit in the current file. Returns false if a file
/// cannot be created at the moment.
bool Spool::begin_segment(std::size_t coming) {
    if (file_.valid() && !segments_.empty() &&
        segments_.back().bytes + coming <= folder_->segment_bytes()) {
        return true;
    }
    file_ =
        base::UniqueFd{folder_->disk().open(segment_path(last_ + 1), sink::Disk::OpenMode::empty)};
    if (!file_.valid()) {
        error_ = errno;
        // The confined process must not create the folder again.
        if (error_ == ENOENT && !is_folder_removed_.exchange(true)) {
            spdlog::error(
                "the spool {} was removed: nothing is published until twscope is restarted",
                folder_->path().string());
        }
        return false;
    }
    segments_.push_back({.first = last_ + 1});
    return true;
}

bool Spool::append(std::string_view block) {
    if (block.empty()) {
        return true;
    }
    folder_->make_room_for(run_, block.size(), [this] { return drop_oldest_file(); });
    const std::lock_guard lock{mutex_};
    if (!has_state_file_) {
        error_ = write_state();
    }
    if (!has_state_file_ || !begin_segment(block.size())) {
        return false;
    }
    SpoolSegment& segment = segments_.back();
    std::uint64_t written = 0;
    while (written < block.size()) {
        const ssize_t some =
            folder_->disk().write(file_.get(), block.substr(static_cast<std::size_t>(written)));
        if (some < 0 && errno == EINTR) {
            continue;
        }
        if (some <= 0) {
            error_ = some == 0 ? EIO : errno;
            break;
        }
        written += static_cast<std::uint64_t>(some);
    }
    if (written == block.size()) {
        error_ = 0;
        segment.bytes += written;
        folder_->add_bytes(written);
        last_ += sink::count_lines(block);
        return true;
    }
    if (!folder_->disk().truncate(file_.get(), segment.bytes)) {
        file_ =
            // the next line starts a new file; this file is read only up to segment.bytes
            base::UniqueFd{};
    }
    if (segment.bytes == 0) {
        std::ignore = folder_->disk().remove(segment_path(segment.first));
        segments_.pop_back();
        file_ = base::UniqueFd{};
    }
    return false;
}

int Spool::error() const {
    const std::lock_guard lock{mutex_};
    return error_;
}

void Spool::retry_writing() {
    const std::lock_guard lock{mutex_};
    error_ = 0;
}

std::uint64_t Spool::dropped_lines() const {
    return folder_->dropped_line_count();
}

std::uint64_t Spool::unreported_losses() const {
    return folder_->unreported_losses();
}

void Spool::mark_losses_reported(std::uint64_t lost) {
    folder_->mark_losses_reported(lost);
}

/// Returns 0 if all lines are settled. Otherwise returns the size of all files, although some lines
/// in the oldest file may be settled.
std::uint64_t Spool::waiting_bytes() const {
    return waiting_lines() == 0 ? 0 : folder_->total_bytes();
}

void Spool::remove_first_segment() {
    if (file_.valid() && segments_.size() == 1) {
        file_ = base::UniqueFd{};
    }
    folder_->remove_file(segment_path(segments_.front().first), segments_.front().bytes);
    segments_.pop_front();
}

std::optional<SpoolFolder::FileLoss> Spool::drop_oldest_file() {
    const std::lock_guard lock{mutex_};
    if (segments_.size() < 2) {
        return std::nullopt;
    }
    const std::uint64_t first = segments_.front().first;
    const std::uint64_t begin = std::max(first, state_.settled + 1);
    SpoolFolder::FileLoss loss = SpoolFolder::loss_in_file(segment_path(first), first, begin);
    // Counted by line numbers, because a damaged file may contain fewer lines.
    loss.lines = std::max(last_line_of(0) + 1, begin) - begin;
    remove_first_segment();
    return loss;
}

/// Moves the reading position to a line, or to the first later line that exists. Returns false if
/// there is no such line.
bool Spool::seek_line(std::uint64_t from) {
    while (true) {
        auto behind = std::upper_bound(
            segments_.begin(), segments_.end(), from,
            [](std::uint64_t line, const SpoolSegment& segment) { return line < segment.first; });
        const auto at = behind == segments_.begin() ? behind : std::prev(behind);
        if (at == segments_.end()) {
            return false;
        }
        read_file_ = base::UniqueFd{::open(segment_path(at->first).c_str(), O_RDONLY | O_CLOEXEC)};
        if (read_file_.valid()) {
            read_segment_ = read_number_ = at->first;
            read_at_ = 0;
            return true;
        }
        if (at != segments_.begin()) { // the next call finds this segment as the first one
            return false;
        }
        if (is_ours_) { // other processes may drop the files of a run that was taken over
            const std::uint64_t begin = std::max(at->first, from);
            folder_->count_removed_lines(std::max(last_line_of(0) + 1, begin) - begin);
        }
        segments_.pop_front();
    }
}

/// Reads lines from the reading position on, at most to the end of the segment. Returns false if no
/// line was read.
bool Spool::read_segment(RecordLines& lines) {
    const auto segment = std::ranges::find_if(
        segments_, [this](const SpoolSegment& each) { return each.first == read_segment_; });
    if (segment == segments_.end()) {
        return false;
    }
    const std::uint64_t left = segment->bytes - std::min(segment->bytes, read_at_);
    lines.text.resize(std::max<std::size_t>(kReadBytes, lines.text.size()));
    while (true) {
        const std::size_t wanted = std::min<std::uint64_t>(left, lines.text.size());
        const ssize_t got =
            ::pread(read_file_.get(), lines.text.data(), wanted, static_cast<off_t>(read_at_));
        const std::string_view text{lines.text.data(),
                                    static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
        const auto newline = text.rfind('\n');
        if (newline != std::string_view::npos) {
            lines.first = read_number_;
            lines.text.resize(newline + 1);
            read_at_ += newline + 1;
            read_number_ += sink::count_lines(lines.text);
            drop_lines_after(last_line_of(static_cast<std::size_t>(segment - segments_.begin())),
                             lines);
            return !lines.text.empty();
        }
        if (text.size() < lines.text.size()) {
            return false;
        }
        lines.text.resize(2 * lines.text.size()); // the line is longer than the buffer
    }
}

/// Removes the lines after the number `last` from `lines`. A file may contain such lines if a write
/// failed and could not be undone.
void Spool::drop_lines_after(std::uint64_t last, RecordLines& lines) {
    while (read_number_ > last + 1 && !lines.text.empty()) {
        lines.text.pop_back();
        const auto newline = lines.text.rfind('\n');
        lines.text.resize(newline == std::string::npos ? 0 : newline + 1);
        --read_number_;
    }
}

bool Spool::read_lines(std::uint64_t from, RecordLines& lines) {
    const std::lock_guard lock{mutex_};
    if (from > last_) {
        return false;
    }
    if (read_number_ != from && !seek_line(from)) {
        return false;
    }
    while (true) {
        if (read_segment(lines)) {
            if (read_number_ > from) {
                return true;
            }
            continue;
        }
        const auto next = std::ranges::find_if(
            segments_, [this](const auto& each) { return each.first > read_segment_; });
        if (next == segments_.end() || !seek_line(next->first)) {
            return false;
        }
    }
}

/// Writes the state file. Returns 0 or errno; after an error, the file is unchanged.
int Spool::write_state() {
    const std::string text = spool_state_text(state_);
    const ssize_t written = ::pwrite(state_file_.get(), text.data(), text.size(), 0);
    if (written == static_cast<ssize_t>(text.size())) {
        has_state_file_ = true;
        return 0;
    }
    return written < 0 ? errno : ENOSPC;
}

void Spool::settle_lines(std::uint64_t line, std::uint64_t sequence) {
    const std::lock_guard lock{mutex_};
    state_.settled = line;
    state_.sequence = sequence;
    // after a failure, the next run starts from an older state and looks up the later lines
    std::ignore = write_state();
    while (segments_.size() > 1 && last_line_of(0) <= line) {
        remove_first_segment();
    }
}

std::uint64_t Spool::last_settled() const {
    const std::lock_guard lock{mutex_};
    return state_.settled;
}

std::optional<std::uint64_t> Spool::settled_sequence() const {
    const std::lock_guard lock{mutex_};
    return state_.sequence;
}

std::uint64_t Spool::last_line() const {
    const std::lock_guard lock{mutex_};
    return last_;
}

} // namespace tw::bus
