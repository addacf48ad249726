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

constexpr std::size_t kPiece = std::size_t{1} << 18U;
/// The most text that is stored until its frame's checksum was verified, in bytes. More text would
/// not fit into the processor's cache, which would halve the speed of reading a full server's
/// recording.
constexpr std::size_t kMaxHeld = std::size_t{8} << 20U;

} // namespace

ByteSource::ByteSource(const std::string& path, DamageHandling on_damage)
    : file_{path == "-" ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)},
      on_damage_{on_damage} {
    if (file_ < 0) {
        throw std::system_error{errno, std::generic_category(), path};
    }
}

ByteSource::~ByteSource() {
    ::close(file_);
}

std::size_t ByteSource::read_file(std::span<char> room) {
    while (true) {
        const ssize_t read = ::read(file_, room.data(), room.size());
        if (read >= 0) {
            position_ += static_cast<std::uint64_t>(read);
            return static_cast<std::size_t>(read);
        }
        if (errno != EINTR) {
            end_ = FileEnd::unreadable;
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
    unpacker_ = make_decompressor(text);
    on_damage_ = is_zstd(text) ? on_damage_ : DamageHandling::stop;
    has_begun_ = unpacker_ != nullptr || text.size() == begin.size() || !may_be_compressed(text);
}

std::size_t ByteSource::read(std::span<char> room) {
    const bool stopped = end_ == FileEnd::window_too_large || end_ == FileEnd::damaged;
    const bool over = end_ == FileEnd::unreadable || (stopped && !is_searching_);
    if (over || room.empty()) {
        return 0;
    }
    if (!has_begun_) {
        detect_format();
    }
    if (unpacker_ != nullptr && on_damage_ == DamageHandling::skip) {
        return read_undamaged_text(room);
    }
    if (unpacker_ != nullptr) {
        return read_decompressed(room);
    }
    if (!has_begun_) {
        return 0; // the file is too short to have one of the known formats
    }
    if (at_ < packed_.size()) {
        const std::size_t size = std::min(room.size(), packed_.size() - at_);
        std::copy_n(packed_.begin() + static_cast<std::ptrdiff_t>(at_), size, room.begin());
        at_ += size;
        return size;
    }
    return read_file(room);
}

std::size_t ByteSource::read_decompressed(std::span<char> room) {
    std::size_t written = 0;
    while (written < room.size()) {
        if (at_ == packed_.size()) {
            std::ignore = load_packed_bytes();
        }
        const auto result =
            unpacker_->unpack(std::span{packed_}.subspan(at_), room.subspan(written));
        at_ += result.read;
        written += result.written;
        if (result.damaged) {
            end_ = result.too_wide ? FileEnd::window_too_large : FileEnd::damaged;
            break;
        }
        if (packed_.empty() && result.written == 0) {
            set_end(result.within_frame ? FileEnd::within_frame : FileEnd::whole);
            break;
        }
    }
    return written;
}

std::size_t ByteSource::read_undamaged_text(std::span<char> room) {
    constexpr std::array<char, 2> kTornEnd{'\x18', '\n'};
    if (returned_bytes_ == released_bytes_ && !unpack_frame()) {
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

void ByteSource::set_end(FileEnd end) {
    end_ = end_ == FileEnd::unreadable ? end_ : end;
}

/// Decompresses until `text_` contains text for read(). Returns false at the current end of the
/// file.
bool ByteSource::unpack_frame() {
    text_bytes_ = released_bytes_ = returned_bytes_ = 0;
    while (released_bytes_ == 0) {
        if (is_searching_ && !find_next_frame()) {
            set_end(too_wide_ ? FileEnd::window_too_large : FileEnd::damaged);
            return false;
        }
        if (!make_text_room()) { // the frame has more text than kMaxHeld
            released_bytes_ = text_bytes_;
            is_returned_early_ = true;
        } else if (at_ == packed_.size() && !has_more_text_ && !load_packed_bytes()) {
            if (within_frame_ && contains_another_frame()) {
                skip_damaged_frame();
                continue;
            }
            set_end(within_frame_ ? FileEnd::within_frame : FileEnd::whole);
            released_bytes_ =
                text_bytes_; // the file ends within the frame, so a checksum cannot follow
            is_returned_early_ = is_returned_early_ || released_bytes_ != 0;
            return released_bytes_ != 0;
        } else {
            process_result(unpacker_->unpack(std::span{packed_}.subspan(at_), free_text_space()));
        }
    }
    return true;
}

/// Makes room in `text_` for further text. Returns false if the text has reached kMaxHeld.
bool ByteSource::make_text_room() {
    if (text_bytes_ == text_.size()) {
        text_.resize(std::clamp(2 * text_.size(), std::size_t{1} << 20U, kMaxHeld));
    }
    return !free_text_space().empty();
}

/// Returns the free part of `text_`. If text of the current frame was already returned, uses only
/// as much of `text_` as fits into the processor's cache.
std::span<char> ByteSource::free_text_space() {
    const std::size_t most = is_returned_early_ ? std::min(kPiece, text_.size()) : text_.size();
    return std::span{text_}.first(most).subspan(text_bytes_);
}

bool ByteSource::load_packed_bytes() {
    packed_.resize(kPiece);
    packed_.resize(read_file(packed_));
    at_ = 0;
    return !packed_.empty();
}

void ByteSource::process_result(const Decompressor::Result& result) {
    at_ += result.read;
    text_bytes_ += result.written;
    has_more_text_ = free_text_space().empty();
    within_frame_ = result.within_frame;
    if (result.damaged) {
        too_wide_ = result.too_wide && frame_ == 0;
        skip_damaged_frame();
    } else if (!result.within_frame) {
        end_frame();
    }
}

/// Returns whether the current frame, which reaches to the end of the file, contains the start of
/// another frame. The length in the current frame's header is then damaged.
bool ByteSource::contains_another_frame() const {
    constexpr std::uint64_t kLongestBlock = std::uint64_t{128} << 10U;
    const off_t here = ::lseek(file_, 0, SEEK_CUR);
    std::vector<char> last(std::min(2 * kLongestBlock, position_ - frame_ - 1));
    const ssize_t read =
        here < 0 ? 0
                 : ::pread(file_, last.data(), last.size(), here - static_cast<off_t>(last.size()));
    return read > 0 && std::string_view{last.data(), static_cast<std::size_t>(read)}.find(
                           zstd_magic()) != std::string_view::npos;
}

void ByteSource::end_frame() {
    if (damage_) {
        left_out_ += frame_ - *damage_;
        damage_.reset();
        too_wide_ = false;
    }
    released_bytes_ = text_bytes_;
    is_returned_early_ = false;
    frame_ = position_ - (packed_.size() - at_);
}

/// Skips a damaged frame. The end of the frame is unknown, because its length may be damaged.
/// Therefore the search for the next frame starts at the first byte of the damaged frame, or at the
/// current position if the source can be read only once.
void ByteSource::skip_damaged_frame() {
    damage_ = damage_.value_or(frame_);
    has_returned_damaged_text_ = has_returned_damaged_text_ || is_returned_early_;
    text_bytes_ = 0;
    within_frame_ = has_more_text_ = is_returned_early_ = false;
    is_searching_ = has_gap_ = true;
    unpacker_ = make_decompressor(zstd_magic());
    const auto back = static_cast<off_t>(position_ - (frame_ + 1));
    if (::lseek(file_, -back, SEEK_CUR) >= 0) {
        position_ = frame_ + 1;
        packed_.clear();
        at_ = 0;
    }
}

bool ByteSource::find_next_frame() {
    const std::string_view magic = zstd_magic();
    while (true) {
        const std::string_view packed{packed_.data(), packed_.size()};
        const std::size_t found = packed.find(magic, at_);
        if (found != std::string_view::npos) {
            at_ = found;
            frame_ = position_ - (packed_.size() - at_);
            is_searching_ = false;
            return true;
        }
        // Keeps the last bytes, because they may be the start of the next frame's signature.
        const std::size_t kept = std::min(packed.size() - at_, magic.size() - 1);
        std::vector<char> more(kPiece);
        std::copy_n(packed_.end() - static_cast<std::ptrdiff_t>(kept), kept, more.begin());
        const std::size_t read = read_file(std::span{more}.subspan(kept));
        more.resize(kept + read);
        packed_ = std::move(more);
        at_ = 0;
        if (read == 0) {
            return false;
        }
    }
}

bool LineReader::next_line(std::string_view& line) {
    while (true) {
        const void* const end =
            looked_ < held_ ? std::memchr(room_.data() + looked_, '\n', held_ - looked_) : nullptr;
        if (end != nullptr) {
            const auto stop =
                static_cast<std::size_t>(static_cast<const char*>(end) - room_.data());
            line = {room_.data() + at_, stop - at_};
            at_ = looked_ = stop + 1;
            if (!is_skipping_line_) {
                ++lines_;
                line.remove_suffix(line.ends_with('\r') ? 1 : 0); // Windows ends lines with \r\n
                return true;
            }
            skipped_ += line.size() + 1;
            is_skipping_line_ = false;
            continue;
        }
        looked_ = held_;
        if (!fill_buffer()) {
            return false;
        }
    }
}

/// Reads further data into `room_`. Returns false if the file has no further data now.
bool LineReader::fill_buffer() {
    if (held_ - at_ >= sink::kMaxLineBytes) {
        skipped_ += held_ - at_;
        is_skipping_line_ = true;
        at_ = held_;
    }
    if (at_ != 0) {
        std::copy(room_.begin() + static_cast<std::ptrdiff_t>(at_),
                  room_.begin() + static_cast<std::ptrdiff_t>(held_), room_.begin());
        held_ -= at_;
        at_ = 0;
        looked_ = held_;
    }
    if (held_ == room_.size()) {
        room_.resize(std::min(2 * room_.size(), 2 * sink::kMaxLineBytes));
    }
    const std::size_t more = source_.read(std::span{room_}.subspan(held_));
    held_ += more;
    return more != 0;
}

namespace {

/// While a pipe contains too few bytes, it is checked kLooks times, every kLook.
constexpr int kLooks = 50;
constexpr std::chrono::milliseconds kLook{20};

/// Returns the first bytes of a file, or the bytes that wait in a pipe or socket, without consuming
/// them. For compressed data, these bytes usually include the first block, which is enough.
std::string peeked_bytes(int file) {
    std::string bytes(kPiece, '\0');
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
std::string peeked_text(int file, std::size_t size) {
    const std::string bytes = peeked_bytes(file);
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

int open_for_peeking(const std::string& path) {
    if (path == "-") {
        return ::dup(STDIN_FILENO);
    }
    return is_named_pipe(path) ? -1 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
}

bool has_hung_up(int file) {
    pollfd state{.fd = file, .events = 0, .revents = 0};
    return ::poll(&state, 1, 0) != 0;
}

} // namespace

FileStartReader::FileStartReader(const std::string& path, std::size_t size)
    : file_{open_for_peeking(path)} {
    if (file_ < 0) {
        return;
    }
    const off_t at = ::lseek(file_, 0, SEEK_CUR);
    if (at > 0) {
        return; // standard input whose first bytes were already read, so its type is unknown
    }
    bytes_ = peeked_text(file_, size);
    if (at == 0) {
        return;
    }
    for (int look = 0;
         look < kLooks && !bytes_.empty() && bytes_.size() < size && !has_hung_up(file_); ++look) {
        std::this_thread::sleep_for(kLook);
        bytes_ = peeked_text(file_, size);
    }
}

FileStartReader::~FileStartReader() {
    if (file_ >= 0) {
        ::close(file_);
    }
}

} // namespace tw::store
