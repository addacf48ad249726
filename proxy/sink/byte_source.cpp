#include "proxy/sink/byte_source.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>
#include <zstd.h>

namespace tw::sink {

namespace {

using namespace std::string_view_literals;

constexpr std::string_view kFrame = "\x28\xB5\x2F\xFD"sv;
constexpr std::size_t kPiece = std::size_t{1} << 18U;
/// A file may ask for a window of this size to be unpacked, and no more memory.
constexpr int kMaxWindowLog = 27;

/// What a compressed file may begin with, beside a frame: 0x184D2A50 to 0x184D2A5F.
bool is_skippable(std::string_view begin) {
    return begin.size() == kFrame.size() && (begin[0] & '\xF0') == '\x50' &&
           begin.substr(1) == "\x2A\x4D\x18"sv;
}

bool may_be_packed(char first) {
    return first == kFrame.front() || (first & '\xF0') == '\x50';
}

} // namespace

ByteSource::ByteSource(const std::string& path)
    : file_{path == "-" ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)},
      context_{nullptr, &ZSTD_freeDCtx} {
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

/// The first bytes say what the file is.
void ByteSource::look_at_begin() {
    std::array<char, kFrame.size()> begin{};
    while (packed_.size() < begin.size()) {
        const std::size_t more = read_file(std::span{begin}.first(begin.size() - packed_.size()));
        if (more == 0) {
            break;
        }
        packed_.insert(packed_.end(), begin.begin(),
                       begin.begin() + static_cast<std::ptrdiff_t>(more));
    }
    const std::string_view text{packed_.data(), packed_.size()};
    begun_ = text.size() == begin.size() || (!text.empty() && !may_be_packed(text.front()));
    if (text == kFrame || is_skippable(text)) {
        context_.reset(ZSTD_createDCtx());
        if (context_ == nullptr) {
            throw std::bad_alloc{};
        }
        ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
    }
}

std::size_t ByteSource::read(std::span<char> room) {
    if (end_ == FileEnd::damaged || end_ == FileEnd::unreadable || room.empty()) {
        return 0;
    }
    if (!begun_) {
        look_at_begin();
    }
    if (context_ != nullptr) {
        return read_packed(room);
    }
    if (!begun_) {
        return 0; // too short to tell: nothing of ours
    }
    if (at_ < packed_.size()) {
        const std::size_t size = std::min(room.size(), packed_.size() - at_);
        std::copy_n(packed_.begin() + static_cast<std::ptrdiff_t>(at_), size, room.begin());
        at_ += size;
        return size;
    }
    return read_file(room);
}

std::size_t ByteSource::read_packed(std::span<char> room) {
    ZSTD_outBuffer out{.dst = room.data(), .size = room.size(), .pos = 0};
    while (out.pos < out.size) {
        if (at_ == packed_.size()) {
            packed_.resize(kPiece);
            packed_.resize(read_file(packed_));
            at_ = 0;
        }
        ZSTD_inBuffer in{.src = packed_.data(), .size = packed_.size(), .pos = at_};
        const std::size_t before = out.pos;
        const std::size_t left = ZSTD_decompressStream(context_.get(), &out, &in);
        const bool stuck = in.pos == at_ && out.pos == before;
        at_ = in.pos;
        if (ZSTD_isError(left) != 0) {
            end_ = FileEnd::damaged;
            break;
        }
        if (!stuck || in.pos != in.size) {
            within_frame_ = left != 0;
        }
        if (packed_.empty() && stuck) {
            end_ = end_ == FileEnd::unreadable ? end_
                   : within_frame_             ? FileEnd::within_frame
                                               : FileEnd::whole;
            break;
        }
    }
    return out.pos;
}

} // namespace tw::sink
