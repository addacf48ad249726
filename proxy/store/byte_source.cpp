#include "proxy/store/byte_source.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace tw::store {

namespace {

constexpr std::size_t kBytesPerRead = std::size_t{1} << 18U;
/// The most text of a frame that waits for the verification of the frame's checksum, in bytes. More
/// text would not fit into the processor's cache.
constexpr std::size_t kMaxUnverifiedText = std::size_t{8} << 20U;
/// The most bytes that are searched again after damaged frames: kMaxSearchedAgain, plus
/// kMaxTimesSearchedAgain times the bytes read so far. Without a limit, a file with a damaged frame
/// at each byte would be searched again for each byte.
constexpr std::uint64_t kMaxSearchedAgain = std::uint64_t{64} << 20U;
constexpr std::uint64_t kMaxTimesSearchedAgain = 16;

} // namespace

ByteSource::ByteSource(const std::string& path, DamageHandling on_damage)
    : file_{base::take_descriptor(path == "-" ? ::dup(STDIN_FILENO)
                                              : ::open(path.c_str(), O_RDONLY | O_CLOEXEC),
                                  path.c_str())},
      on_damage_{on_damage} {}

std::size_t ByteSource::read_file(std::span<char> room) {
    while (true) {
        const ssize_t read = ::read(file_.get(), room.data(), room.size());
        if (read >= 0) {
            position_ += static_cast<std::uint64_t>(read);
            return static_cast<std::size_t>(read);
        }
        if (errno != EINTR) {
            stop_reason_ = ReadStopReason::read_error;
            return 0;
        }
    }
}

void ByteSource::detect_format() {
    std::array<char, kSignatureSize> begin{};
    while (packed_.size() < begin.size()) {
        const std::size_t more = read_file(std::span{begin}.first(begin.size() - packed_.size()));
        if (more == 0) {
            break;
        }
        packed_.insert(packed_.end(), begin.begin(),
                       begin.begin() + static_cast<std::ptrdiff_t>(more));
    }
    const std::string_view text{packed_.data(), packed_.size()};
    decompressor_ = make_decompressor(text);
    on_damage_ = is_zstd(text) ? on_damage_ : DamageHandling::stop;
    is_format_known_ =
        decompressor_ != nullptr || text.size() == begin.size() || !may_be_compressed(text);
}

std::size_t ByteSource::read(std::span<char> room) {
    const bool stopped =
        stop_reason_ == ReadStopReason::window_too_large || stop_reason_ == ReadStopReason::damaged;
    const bool over = stop_reason_ == ReadStopReason::read_error || (stopped && !is_searching_);
    if (over || room.empty()) {
        return 0;
    }
    if (!is_format_known_) {
        detect_format();
    }
    if (decompressor_ != nullptr && on_damage_ == DamageHandling::skip) {
        return read_undamaged_text(room);
    }
    if (decompressor_ != nullptr) {
        return read_decompressed(room);
    }
    if (!is_format_known_) {
        return 0; // the file is too short to have one of the known formats
    }
    if (packed_offset_ < packed_.size()) {
        const std::size_t size = std::min(room.size(), packed_.size() - packed_offset_);
        std::copy_n(packed_.begin() + static_cast<std::ptrdiff_t>(packed_offset_), size,
                    room.begin());
        packed_offset_ += size;
        return size;
    }
    return read_file(room);
}

std::size_t ByteSource::read_decompressed(std::span<char> room) {
    std::size_t written = 0;
    while (written < room.size()) {
        if (packed_offset_ == packed_.size()) {
            std::ignore = load_packed_bytes();
        }
        const auto result = decompressor_->decompress(std::span{packed_}.subspan(packed_offset_),
                                                      room.subspan(written));
        packed_offset_ += result.read;
        written += result.written;
        if (result.damaged) {
            stop_reason_ = result.window_too_large ? ReadStopReason::window_too_large
                                                   : ReadStopReason::damaged;
            break;
        }
        if (packed_.empty() && result.written == 0) {
            set_stop_reason(result.within_frame ? ReadStopReason::within_frame
                                                : ReadStopReason::file_end);
            break;
        }
    }
    return written;
}

std::size_t ByteSource::read_undamaged_text(std::span<char> room) {
    constexpr std::array<char, 2> kTornEnd{'\x18', '\n'};
    if (returned_bytes_ == released_bytes_ && !decompress_text()) {
        return 0;
    }
    if (has_gap_ && last_char_ != '\n') {
        room.front() = last_char_ == kTornEnd[0] ? kTornEnd[1] : kTornEnd[0];
        last_char_ = room.front();
        return 1;
    }
    has_gap_ = false;
    const std::size_t size = std::min(room.size(), released_bytes_ - returned_bytes_);
    std::copy_n(text_.begin() + static_cast<std::ptrdiff_t>(returned_bytes_), size, room.begin());
    returned_bytes_ += size;
    last_char_ = text_[returned_bytes_ - 1];
    return size;
}

void ByteSource::set_stop_reason(ReadStopReason reason) {
    stop_reason_ = stop_reason_ == ReadStopReason::read_error ? stop_reason_ : reason;
}

/// Decompresses data until `text_` contains text that read() may return. Returns false at the
/// current end of the file.
bool ByteSource::decompress_text() {
    text_bytes_ = released_bytes_ = returned_bytes_ = 0;
    while (released_bytes_ == 0) {
        if (is_searching_ && !find_next_frame()) {
            set_stop_reason(needs_larger_window_ ? ReadStopReason::window_too_large
                                                 : ReadStopReason::damaged);
            return false;
        }
        if (text_bytes_ == text_.size()) {
            text_.resize(std::clamp(2 * text_.size(), std::size_t{1} << 20U, kMaxUnverifiedText));
        }
        if (free_text_space().empty()) { // the frame's text is longer than kMaxUnverifiedText
            released_bytes_ = text_bytes_;
            is_returned_early_ = true;
        } else if (packed_offset_ == packed_.size() && !has_more_text_ && !load_packed_bytes()) {
            if (is_within_frame_ && contains_another_frame()) {
                skip_damaged_frame();
                continue;
            }
            set_stop_reason(is_within_frame_ ? ReadStopReason::within_frame
                                             : ReadStopReason::file_end);
            // The file ends within the frame, so the text cannot be verified by a checksum.
            released_bytes_ = text_bytes_;
            is_returned_early_ = is_returned_early_ || released_bytes_ != 0;
            return released_bytes_ != 0;
        } else {
            process_decompressed_text(decompressor_->decompress(
                std::span{packed_}.subspan(packed_offset_), free_text_space()));
        }
    }
    return true;
}

/// Returns the unused part of `text_`. If text of the current frame was already returned, uses only
/// the first kBytesPerRead bytes of `text_`, which fit into the processor's cache.
std::span<char> ByteSource::free_text_space() {
    const std::size_t most =
        is_returned_early_ ? std::min(kBytesPerRead, text_.size()) : text_.size();
    return std::span{text_}.first(most).subspan(text_bytes_);
}

bool ByteSource::load_packed_bytes() {
    packed_.resize(kBytesPerRead);
    packed_.resize(read_file(packed_));
    packed_offset_ = 0;
    return !packed_.empty();
}

void ByteSource::process_decompressed_text(const Decompressor::Result& result) {
    packed_offset_ += result.read;
    text_bytes_ += result.written;
    has_more_text_ = free_text_space().empty();
    is_within_frame_ = result.within_frame;
    if (result.damaged) {
        needs_larger_window_ = result.window_too_large && frame_offset_ == 0;
        skip_damaged_frame();
    } else if (!result.within_frame) {
        end_frame();
    }
}

/// Returns whether another frame starts within the current frame, which the file's end has cut off.
/// If so, the length in the current frame's header is damaged.
bool ByteSource::contains_another_frame() const {
    constexpr std::uint64_t kLongestBlock = std::uint64_t{128} << 10U;
    const off_t here = ::lseek(file_.get(), 0, SEEK_CUR);
    std::vector<char> last(std::min(2 * kLongestBlock, position_ - frame_offset_ - 1));
    const ssize_t read = here < 0 ? 0
                                  : ::pread(file_.get(), last.data(), last.size(),
                                            here - static_cast<off_t>(last.size()));
    return read > 0 && std::string_view{last.data(), static_cast<std::size_t>(read)}.find(
                           zstd_magic()) != std::string_view::npos;
}

void ByteSource::end_frame() {
    if (damage_start_) {
        skipped_before_damage_ += frame_offset_ - *damage_start_;
        damage_start_.reset();
        needs_larger_window_ = false;
    }
    released_bytes_ = text_bytes_;
    is_returned_early_ = false;
    frame_offset_ = position_ - (packed_.size() - packed_offset_);
}

/// Skips a damaged frame and starts the search for the next frame. The length in the damaged
/// frame's header may be wrong, so the search starts at the frame's second byte. If this byte is no
/// longer in memory and cannot be read again, the search starts at the current position. If too
/// many bytes were searched again, it starts after the bytes read so far.
void ByteSource::skip_damaged_frame() {
    damage_start_ = damage_start_.value_or(frame_offset_);
    has_returned_damaged_text_ = has_returned_damaged_text_ || is_returned_early_;
    text_bytes_ = 0;
    is_within_frame_ = has_more_text_ = is_returned_early_ = false;
    is_searching_ = has_gap_ = true;
    decompressor_ = make_decompressor(zstd_magic());
    const std::uint64_t back = position_ - (frame_offset_ + 1);
    searched_again_bytes_ += back;
    if (searched_again_bytes_ > kMaxSearchedAgain + kMaxTimesSearchedAgain * position_) {
        packed_offset_ = packed_.size();
    } else if (back <= packed_.size()) {
        packed_offset_ = packed_.size() - static_cast<std::size_t>(back);
    } else if (::lseek(file_.get(), -static_cast<off_t>(back), SEEK_CUR) >= 0) {
        position_ = frame_offset_ + 1;
        packed_.clear();
        packed_offset_ = 0;
    }
}

bool ByteSource::find_next_frame() {
    const std::string_view magic = zstd_magic();
    while (true) {
        const std::string_view packed{packed_.data(), packed_.size()};
        const std::size_t found = packed.find(magic, packed_offset_);
        if (found != std::string_view::npos) {
            packed_offset_ = found;
            frame_offset_ = position_ - (packed_.size() - packed_offset_);
            is_searching_ = false;
            return true;
        }
        // Keeps the last bytes, because they may be the start of the next frame's signature.
        const std::size_t kept = std::min(packed.size() - packed_offset_, magic.size() - 1);
        std::vector<char> more(kBytesPerRead);
        std::copy_n(packed_.end() - static_cast<std::ptrdiff_t>(kept), kept, more.begin());
        const std::size_t read = read_file(std::span{more}.subspan(kept));
        more.resize(kept + read);
        packed_ = std::move(more);
        packed_offset_ = 0;
        if (read == 0) {
            return false;
        }
    }
}

bool LineReader::next_line(std::string_view& line) {
    while (true) {
        const void* const end = searched_bytes_ < buffered_bytes_
                                    ? std::memchr(buffer_.data() + searched_bytes_, '\n',
                                                  buffered_bytes_ - searched_bytes_)
                                    : nullptr;
        if (end != nullptr) {
            const auto stop =
                static_cast<std::size_t>(static_cast<const char*>(end) - buffer_.data());
            line = {buffer_.data() + line_start_, stop - line_start_};
            line_start_ = searched_bytes_ = stop + 1;
            if (!is_skipping_line_) {
                ++num_lines_;
                line.remove_suffix(line.ends_with('\r') ? 1 : 0); // Windows ends lines with \r\n
                return true;
            }
            skipped_line_bytes_ += line.size() + 1;
            is_skipping_line_ = false;
            continue;
        }
        searched_bytes_ = buffered_bytes_;
        if (!fill_buffer()) {
            return false;
        }
    }
}

/// Reads further data into `buffer_`. Returns false if the file has no further data now.
bool LineReader::fill_buffer() {
    if (buffered_bytes_ - line_start_ >= sink::kMaxLineBytes) {
        skipped_line_bytes_ += buffered_bytes_ - line_start_;
        is_skipping_line_ = true;
        line_start_ = buffered_bytes_;
    }
    if (line_start_ != 0) {
        std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(line_start_),
                  buffer_.begin() + static_cast<std::ptrdiff_t>(buffered_bytes_), buffer_.begin());
        buffered_bytes_ -= line_start_;
        line_start_ = 0;
        searched_bytes_ = buffered_bytes_;
    }
    if (buffered_bytes_ == buffer_.size()) {
        buffer_.resize(std::min(2 * buffer_.size(), 2 * sink::kMaxLineBytes));
    }
    const std::size_t more = source_.read(std::span{buffer_}.subspan(buffered_bytes_));
    buffered_bytes_ += more;
    return more != 0;
}

namespace {

// How often, and at which interval, a pipe with too few bytes is checked again.
constexpr int kMaxPipeChecks = 50;
constexpr std::chrono::milliseconds kPipeCheckInterval{20};

/// Returns the first bytes of a file, or the bytes that wait in a pipe or socket, without consuming
/// them. Returns at most kBytesPerRead bytes, which include the first compressed block.
std::string peek_bytes(int file) {
    std::string bytes(kBytesPerRead, '\0');
    ssize_t size = ::pread(file, bytes.data(), bytes.size(), 0);
    if (size < 0) {
        size = ::recv(file, bytes.data(), bytes.size(), MSG_PEEK);
    }
    if (std::array<int, 2> copy{}; size < 0 && ::pipe2(copy.data(), O_CLOEXEC) == 0) {
        size = ::tee(file, copy[1], bytes.size(), 0) > 0
                   ? ::read(copy[0], bytes.data(), bytes.size())
                   : -1;
        ::close(copy[0]);
        ::close(copy[1]);
    }
    bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    return bytes;
}

/// Returns the first bytes of a file, decompressed if necessary.
std::string peek_text(int file, std::size_t size) {
    const std::string bytes = peek_bytes(file);
    return make_decompressor(bytes) ? decompress_start(bytes, size) : bytes.substr(0, size);
}

/// Returns whether the path is a named pipe. A named pipe is not opened a second time, because
/// open() would block if the writer has closed it.
bool is_named_pipe(const std::string& path) {
    struct stat found {};

    struct statfs system {};

    return ::stat(path.c_str(), &found) == 0 && S_ISFIFO(found.st_mode) &&
           ::statfs(path.c_str(), &system) == 0 && system.f_type != PIPEFS_MAGIC;
}

} // namespace

FileStartReader::FileStartReader(const std::string& path, std::size_t size)
    : file_{path == "-"           ? ::dup(STDIN_FILENO)
            : is_named_pipe(path) ? -1
                                  : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)} {
    if (!file_.valid()) {
        return;
    }
    const off_t at = ::lseek(file_.get(), 0, SEEK_CUR);
    if (at > 0) {
        return; // the first bytes of standard input were already read, so its format is unknown
    }
    bytes_ = peek_text(file_.get(), size);
    if (at == 0) {
        return;
    }
    pollfd writer{.fd = file_.get(), .events = 0, .revents = 0}; // ready when the writer is gone
    for (int look = 0; look < kMaxPipeChecks && !bytes_.empty() && bytes_.size() < size &&
                       ::poll(&writer, 1, 0) == 0;
         ++look) {
        std::this_thread::sleep_for(kPipeCheckInterval);
        bytes_ = peek_text(file_.get(), size);
    }
}

} // namespace tw::store
