#include "proxy/sink/byte_source.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace tw::sink {

namespace {

constexpr std::size_t kPiece = std::size_t{1} << 18U;

} // namespace

ByteSource::ByteSource(const std::string& path)
    : file_{path == "-" ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)} {
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
    unpacker_ = make_unpacker(text);
    begun_ = unpacker_ != nullptr || text.size() == begin.size() || !may_be_packed(text);
}

std::size_t ByteSource::read(std::span<char> room) {
    if (end_ == FileEnd::damaged || end_ == FileEnd::unreadable || room.empty()) {
        return 0;
    }
    if (!begun_) {
        look_at_begin();
    }
    if (unpacker_ != nullptr) {
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
    std::size_t written = 0;
    while (written < room.size()) {
        if (at_ == packed_.size()) {
            packed_.resize(kPiece);
            packed_.resize(read_file(packed_));
            at_ = 0;
        }
        const auto step = unpacker_->unpack(std::span{packed_}.subspan(at_), room.subspan(written));
        at_ += step.read;
        written += step.written;
        if (step.damaged) {
            end_ = FileEnd::damaged;
            break;
        }
        if (packed_.empty() && step.written == 0) {
            end_ = end_ == FileEnd::unreadable ? end_
                   : step.within_frame         ? FileEnd::within_frame
                                               : FileEnd::whole;
            break;
        }
    }
    return written;
}

} // namespace tw::sink
