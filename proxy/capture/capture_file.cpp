#include "proxy/capture/capture_file.h"

#include "proxy/capture/pcapng.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <system_error>
#include <utility>

#include <pcap/dlt.h>

namespace tw::capture {

namespace {

constexpr std::uint32_t kPcapMicroseconds = 0xa1b2c3d4;
constexpr std::uint32_t kPcapNanoseconds = 0xa1b23c4d;
constexpr std::uint32_t kPcapModified = 0xa1b2cd34; ///< a variant: 8 more bytes before each frame
constexpr std::size_t kPcapHeaderBytes = 24;
constexpr std::size_t kPcapLinkTypeAt = 20; ///< offset of the link type in the file's header
constexpr std::size_t kRecordHeaderBytes = 16;
constexpr std::size_t kModifiedRecordHeaderBytes = 24;

constexpr std::size_t kBlockHeadBytes = 8; ///< size of a block's type and length
constexpr std::size_t kBlockTailBytes = 4; ///< size of the length at a block's end
constexpr std::uint32_t kMaxBlockBytes = std::uint32_t{16} << 20U; ///< as in libpcap

template <typename Integer>
Integer swap_bytes(Integer value) {
    auto bytes = std::as_writable_bytes(std::span{&value, 1});
    std::ranges::reverse(bytes);
    return value;
}

std::uint32_t magic_of(std::span<const std::byte> begin) {
    std::uint32_t magic = 0;
    std::memcpy(&magic, begin.data(), sizeof magic);
    return magic;
}

bool is_pcap(std::uint32_t magic) {
    return magic == kPcapMicroseconds || magic == kPcapNanoseconds || magic == kPcapModified;
}

/// Returns libpcap's number for a link type in a file. The two numbers differ for raw IP. The high
/// bits of `link` may contain the length of the frame check sequence.
int libpcap_link_type(std::uint32_t link) {
    constexpr std::uint32_t kTypeBits = 0x03ffffff;
    constexpr std::uint32_t kRaw = 101;
    return (link & kTypeBits) == kRaw ? DLT_RAW : static_cast<int>(link & kTypeBits);
}

/// Returns the number of units in a second, from the value of the option if_tsresol.
std::uint64_t decode_units_per_second(unsigned resolution) {
    constexpr unsigned kBinary = 0x80;
    const std::uint64_t base = resolution < kBinary ? 10 : 2;
    std::uint64_t units = 1;
    for (unsigned i = 0; i < resolution % kBinary; ++i) {
        units = std::min(units, UINT64_MAX / base) * base;
    }
    return units;
}

/// Returns the time in nanoseconds that is `units` after `seconds`.
std::int64_t time_of(std::int64_t seconds, std::uint64_t units, std::uint64_t units_per_second) {
    constexpr double kNanoseconds = 1e9;
    const double fraction = static_cast<double>(units) / static_cast<double>(units_per_second);
    return FrameReader::clamped_time(seconds, std::llround(fraction * kNanoseconds));
}

} // namespace

bool looks_like_capture(std::span<const std::byte> begin) {
    if (begin.size() < kCaptureMagicSize) {
        return false;
    }
    const std::uint32_t magic = magic_of(begin);
    return magic == kPcapngSectionBlock || is_pcap(magic) || is_pcap(swap_bytes(magic));
}

CaptureFile::CaptureFile(const std::string& path) {
    try {
        source_.emplace(path);
        read_to_first_frame();
    } catch (const std::system_error& error) {
        throw CaptureError{path + ": " + error.code().message() +
                           "; name a capture (pcap or pcapng) or a demo"};
    }
    if (source_->position() == 0 && read_error_.empty()) {
        throw CaptureError{path + ": is empty"};
    }
    if (!has_interfaces_) {
        const std::string why = read_error_.empty() ? "truncated" : read_error_;
        throw CaptureError{path + ": " + why +
                           " (expected a pcap or pcapng file; demos must be plain files)"};
    }
    if (const int link = interfaces_.front().link; !FrameReader::supports_link_type(link)) {
        throw CaptureError{path + ": " + FrameReader::describe_unsupported_link(link)};
    }
}

void CaptureFile::read_to_first_frame() {
    if (!load_bytes(kCaptureMagicSize)) {
        return;
    }
    std::uint32_t magic = magic_of(loaded_bytes(kCaptureMagicSize));
    if (magic == kPcapngSectionBlock) {
        is_pcapng_ = true;
        while (!has_interfaces_ && read_error_.empty() && read_pcapng_block()) {
        }
        return;
    }
    is_swapped_ = !is_pcap(magic);
    magic = is_swapped_ ? swap_bytes(magic) : magic;
    if (!is_pcap(magic)) {
        set_read_error("unknown file format");
    } else if (load_bytes(kPcapHeaderBytes)) {
        record_header_size_ =
            magic == kPcapModified ? kModifiedRecordHeaderBytes : kRecordHeaderBytes;
        const Bytes header = loaded_bytes(kPcapHeaderBytes);
        interfaces_.push_back(
            {.link = libpcap_link_type(read_number<std::uint32_t>(header, kPcapLinkTypeAt)),
             .units_per_second = magic == kPcapNanoseconds ? 1'000'000'000U : 1'000'000U});
        has_interfaces_ = true;
        at_ += kPcapHeaderBytes;
    }
}

template <typename Integer>
Integer CaptureFile::read_number(Bytes bytes, std::size_t at) const {
    Integer value{};
    std::memcpy(&value, bytes.subspan(at, sizeof value).data(), sizeof value);
    return is_swapped_ ? swap_bytes(value) : value;
}

bool CaptureFile::load_bytes(std::size_t size) {
    constexpr std::size_t kPiece = std::size_t{1} << 18U;
    if (end_ - at_ >= size) {
        return true;
    }
    std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(at_),
              buffer_.begin() + static_cast<std::ptrdiff_t>(end_), buffer_.begin());
    end_ -= std::exchange(at_, 0);
    buffer_.resize(std::max({buffer_.size(), size, kPiece}));
    while (end_ < size) {
        const std::size_t read = source_->read(std::span{buffer_}.subspan(end_));
        if (read == 0) {
            store_end_reason();
            return false;
        }
        end_ += read;
    }
    return true;
}

void CaptureFile::store_end_reason() {
    switch (source_->stop_reason()) {
    case store::ReadStopReason::file_end:
        ended_early_ = end_ != at_;
        break;
    case store::ReadStopReason::within_frame:
        ended_early_ = true;
        break;
    case store::ReadStopReason::damaged:
        set_read_error("its compressed data is damaged");
        break;
    case store::ReadStopReason::window_too_large:
        set_read_error("it was compressed with a window of more than 128 MiB");
        break;
    case store::ReadStopReason::read_error:
        set_read_error(std::generic_category().message(errno));
        break;
    }
}

bool CaptureFile::set_read_error(std::string why) {
    read_error_ = std::move(why);
    return false;
}

bool CaptureFile::read_pcap_record() {
    if (!load_bytes(record_header_size_)) {
        return false;
    }
    const Bytes header = loaded_bytes(record_header_size_);
    const auto seconds = read_number<std::uint32_t>(header, 0);
    const auto fraction = read_number<std::uint32_t>(header, 4);
    const auto size = read_number<std::uint32_t>(header, 8);
    const auto sent = read_number<std::uint32_t>(header, 12);
    if (size > std::uint32_t{kSnapLength}) { // libpcap accepts no larger frames, either
        return set_read_error("the size of a frame is invalid");
    }
    if (!load_bytes(record_header_size_ + size)) {
        return false;
    }
    const Interface& only = interfaces_.front();
    frame_ = {.link = only.link,
              .time = time_of(seconds, fraction, only.units_per_second),
              .wire_size = sent,
              .bytes = loaded_bytes(record_header_size_ + size).subspan(record_header_size_)};
    at_ += record_header_size_ + size;
    return true;
}

bool CaptureFile::read_byte_order() {
    if (!load_bytes(kBlockHeadBytes + sizeof kPcapngByteOrderMagic)) {
        return false;
    }
    is_swapped_ = false;
    const auto order = read_number<std::uint32_t>(
        loaded_bytes(kBlockHeadBytes + sizeof kPcapngByteOrderMagic), kBlockHeadBytes);
    is_swapped_ = order != kPcapngByteOrderMagic;
    interfaces_.clear();
    return !is_swapped_ || swap_bytes(order) == kPcapngByteOrderMagic ||
           set_read_error("the byte order of a section is invalid");
}

bool CaptureFile::read_pcapng_block() {
    if (!load_bytes(kBlockHeadBytes)) {
        return false;
    }
    const auto type = read_number<std::uint32_t>(loaded_bytes(kBlockHeadBytes), 0);
    if (type == kPcapngSectionBlock && !read_byte_order()) {
        return false;
    }
    const auto size = read_number<std::uint32_t>(loaded_bytes(kBlockHeadBytes), sizeof type);
    if (size < kBlockHeadBytes + kBlockTailBytes || size % 4 != 0 || size > kMaxBlockBytes) {
        return set_read_error("the size of a block is invalid");
    }
    if (!load_bytes(size)) {
        return false;
    }
    const Bytes body = loaded_bytes(size - kBlockTailBytes).subspan(kBlockHeadBytes);
    at_ += size;
    switch (type) {
    case kPcapngInterfaceBlock:
        read_interface_block(body);
        break;
    case kPcapngOldPacketBlock:
    case kPcapngSimplePacketBlock:
    case kPcapngPacketBlock:
        read_packet_block(type, body);
        break;
    case kSessionStateBlock:
        if (auto state = read_session_state(body)) {
            next_state_ = std::move(state);
        }
        break;
    default:
        break;
    }
    return true;
}

void CaptureFile::read_interface_block(Bytes body) {
    constexpr std::size_t kOptions = 8;
    constexpr unsigned kTimeResolution = 9;
    constexpr unsigned kTimeOffset = 14;
    if (body.size() < kOptions) {
        set_read_error("an interface's block is too short");
        return;
    }
    Interface& interface = interfaces_.emplace_back();
    interface.link = libpcap_link_type(read_number<std::uint16_t>(body, 0));
    interface.snap_length = read_number<std::uint32_t>(body, 4);
    for (Bytes options = body.subspan(kOptions); options.size() > 4;) {
        const unsigned code = read_number<std::uint16_t>(options, 0);
        const std::size_t size = read_number<std::uint16_t>(options, 2);
        options = options.subspan(4);
        if (size > options.size()) {
            break;
        }
        if (code == kTimeResolution && size == 1) {
            interface.units_per_second =
                decode_units_per_second(std::to_integer<unsigned>(options[0]));
        } else if (code == kTimeOffset && size == sizeof(std::int64_t)) {
            interface.time_offset = read_number<std::int64_t>(options, 0);
        }
        options = options.subspan(std::min(options.size(), (size + 3) / 4 * 4));
    }
    if (!std::exchange(has_interfaces_, true)) {
        const auto described = std::as_bytes(std::span{kClientInterfaceDescription});
        is_by_twscope_ =
            std::search(body.begin(), body.end(), described.begin(), described.end()) != body.end();
    }
}

void CaptureFile::read_packet_block(std::uint32_t type, Bytes body) {
    const bool is_simple = type == kPcapngSimplePacketBlock;
    const std::size_t header = is_simple ? 4 : 20;
    if (body.size() < header) {
        set_read_error("a packet's block is too short");
        return;
    }
    const std::size_t index = is_simple                    ? 0
                              : type == kPcapngPacketBlock ? read_number<std::uint32_t>(body, 0)
                                                           : read_number<std::uint16_t>(body, 0);
    if (index >= interfaces_.size()) {
        set_read_error("a packet's interface is not described");
        return;
    }
    const Interface& interface = interfaces_[index];
    const std::size_t sent = read_number<std::uint32_t>(body, header - 4);
    std::size_t size = sent;
    std::int64_t time = 0;
    if (is_simple) { // simple packet blocks store only the size on the wire
        size = std::min({sent, body.size() - header,
                         interface.snap_length == 0 ? sent : std::size_t{interface.snap_length}});
    } else {
        size = read_number<std::uint32_t>(body, 12);
        const std::uint64_t units = std::uint64_t{read_number<std::uint32_t>(body, 4)} << 32U |
                                    read_number<std::uint32_t>(body, 8);
        constexpr std::int64_t kMost = INT64_MAX / 2;
        const auto seconds =
            std::min<std::uint64_t>(units / interface.units_per_second, std::uint64_t{kMost});
        time = time_of(static_cast<std::int64_t>(seconds) +
                           std::clamp(interface.time_offset, -kMost, kMost),
                       units % interface.units_per_second, interface.units_per_second);
    }
    if (size > body.size() - header) {
        set_read_error("a packet is larger than its block");
        return;
    }
    frame_ = {.link = interface.link,
              .time = time,
              .wire_size = sent,
              .bytes = body.subspan(header, size)};
}

bool CaptureFile::read_frame() {
    frame_.reset();
    while (!frame_ && read_error_.empty() &&
           (is_pcapng_ ? read_pcapng_block() : read_pcap_record())) {
    }
    state_ = frame_ ? std::exchange(next_state_, std::nullopt) : std::nullopt;
    return frame_.has_value();
}

bool CaptureFile::read_datagram(CapturedDatagram& datagram) {
    if (reader_.read_next_coalesced_datagram(datagram)) {
        return true;
    }
    while (read_frame()) {
        datagram.state = state_ ? &*state_ : nullptr;
        datagram.time = frame_->time;
        reader_.set_link_type(frame_->link);
        if (reader_.read_frame(frame_->bytes, frame_->wire_size, datagram)) {
            return true;
        }
    }
    return false;
}

} // namespace tw::capture
