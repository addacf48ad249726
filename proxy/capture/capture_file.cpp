#include "proxy/capture/capture_file.h"

#include "proxy/sink/byte_source.h"
#include "proxy/sink/pcapng.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include <pcap/pcap.h>

namespace tw::capture {

namespace {

constexpr std::uint32_t kInterfaceBlock = 1;
constexpr std::uint32_t kSimplePacketBlock = 3;
constexpr std::uint32_t kPacketBlock = 6;
constexpr std::size_t kHead = 8;         ///< size of a block's type and length
constexpr std::size_t kSectionHead = 12; ///< size of a section's type, length and byte-order mark
constexpr std::size_t kSmallest = 12;    ///< size of a block without a body

std::uint32_t in_other_order(std::uint32_t value) {
    return value << 24U | (value & 0xff00U) << 8U | (value >> 8U & 0xff00U) | value >> 24U;
}

std::uint32_t number_at(std::span<const std::byte> bytes, std::size_t at, bool is_swapped) {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return is_swapped ? in_other_order(value) : value;
}

/// Reverses the byte order of a block's fields. Skips fields after the end of the block.
class FieldSwapper {
  public:
    explicit FieldSwapper(std::span<std::byte> block) : block_{block} {}

    void turn(std::size_t at, std::size_t size) {
        if (at + size <= block_.size()) {
            std::ranges::reverse(block_.subspan(at, size));
        }
    }

    void swap_numbers(std::size_t from, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            turn(from + 4 * i, 4);
        }
    }

    /// Reverses the byte order of options' codes and sizes, and of the value of if_tsoffset.
    /// twscope reads no other value with several bytes. `is_swapped`: the byte order before the
    /// call differs from this machine's.
    void swap_options(std::size_t at, bool is_swapped) {
        constexpr unsigned kTimeOffset = 14; // the code of the option if_tsoffset
        while (at + 4 <= block_.size()) {
            const std::uint32_t both = number_at(block_, at, false);
            std::uint16_t code = 0;
            std::uint16_t size = 0;
            std::memcpy(&code, block_.data() + at, sizeof code);
            std::memcpy(&size, block_.data() + at + sizeof code, sizeof size);
            if (is_swapped) {
                code = static_cast<std::uint16_t>(code << 8U | code >> 8U);
                size = static_cast<std::uint16_t>(size << 8U | size >> 8U);
            }
            turn(at, 2);
            turn(at + 2, 2);
            if (both == 0) {
                return;
            }
            if (code == kTimeOffset) {
                turn(at + 4, size);
            }
            at += 4 + (std::size_t{size} + 3) / 4 * 4;
        }
    }

  private:
    std::span<std::byte> block_;
};

/// Reverses the byte order of a block's fields. `is_swapped`: the byte order before the call
/// differs from this machine's.
void swap_block(std::span<std::byte> block, std::uint32_t type, bool is_swapped) {
    FieldSwapper swapper{block.first(block.size() - 4)};
    swapper.swap_numbers(0, 2);
    switch (type) {
    case sink::kPcapngSection: // fields: version and length
        swapper.turn(8, 4);
        swapper.turn(12, 2);
        swapper.turn(14, 2);
        swapper.turn(16, 8);
        break;
    case kInterfaceBlock: // fields: link type and snap length
        swapper.turn(8, 2);
        swapper.turn(12, 4);
        swapper.swap_options(16, is_swapped);
        break;
    case kPacketBlock: // fields: interface, time and sizes
        swapper.swap_numbers(8, 5);
        break;
    case kSimplePacketBlock:
        swapper.swap_numbers(8, 1);
        break;
    default: // twscope does not read the fields of other blocks
        break;
    }
    std::ranges::reverse(block.last(4));
}

} // namespace

std::optional<ByteOrderConverter::BlockHead>
ByteOrderConverter::read_block_head(std::span<const std::byte> bytes) {
    if (bytes.size() < kHead) {
        return std::nullopt;
    }
    const bool section = number_at(bytes, 0, false) == sink::kPcapngSection;
    if (section && bytes.size() < kSectionHead) {
        return std::nullopt;
    }
    if (section) {
        const bool its_order = number_at(bytes, kHead, false) != sink::kPcapngByteOrder;
        is_swapped_ = begun_ ? is_swapped_ : its_order;
        begun_ = true;
        needs_conversion_ = its_order != is_swapped_;
    }
    const bool its_order = is_swapped_ != needs_conversion_;
    const BlockHead head{.type = number_at(bytes, 0, its_order),
                         .size = number_at(bytes, sizeof head.type, its_order)};
    is_pcapng_ = begun_ && head.size >= kSmallest && head.size % 4 == 0 && head.size <= kMaxBlock;
    return is_pcapng_ ? std::optional{head} : std::nullopt;
}

std::size_t ByteOrderConverter::pass_through_size(std::span<const std::byte> bytes) {
    std::size_t at = 0;
    while (at < bytes.size()) {
        const std::size_t here = std::min<std::uint64_t>(left_, bytes.size() - at);
        at += here;
        left_ -= here;
        if (at == bytes.size()) {
            break;
        }
        const auto head = read_block_head(bytes.subspan(at));
        if (!head || needs_conversion_) {
            break;
        }
        left_ = head->size;
    }
    return is_pcapng_ ? at : bytes.size();
}

void ByteOrderConverter::convert_blocks() {
    std::size_t at = 0;
    while (at < held_.size()) {
        const std::size_t passes = pass_through_size(std::span{held_}.subspan(at));
        ready_.insert(ready_.end(), held_.begin() + static_cast<std::ptrdiff_t>(at),
                      held_.begin() + static_cast<std::ptrdiff_t>(at + passes));
        at += passes;
        const std::span<std::byte> rest = std::span{held_}.subspan(at);
        const auto head = is_pcapng_ ? read_block_head(rest) : std::nullopt;
        if (!head || !needs_conversion_ || head->size > rest.size()) {
            break;
        }
        swap_block(rest.first(head->size), head->type, is_swapped_ != needs_conversion_);
        ready_.insert(ready_.end(), rest.begin(),
                      rest.begin() + static_cast<std::ptrdiff_t>(head->size));
        at += head->size;
    }
    held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(at));
}

std::size_t ByteOrderConverter::read(std::span<std::byte> room, const Read& source) {
    while (true) {
        if (num_passed_on_ < ready_.size()) {
            const std::size_t size = std::min(room.size(), ready_.size() - num_passed_on_);
            std::copy_n(ready_.begin() + static_cast<std::ptrdiff_t>(num_passed_on_), size,
                        room.begin());
            num_passed_on_ += size;
            return size;
        }
        ready_.clear();
        num_passed_on_ = 0;
        convert_blocks();
        if (!ready_.empty()) {
            continue;
        }
        const std::size_t size = source(room);
        if (size == 0 && !held_.empty()) { // the last block is truncated and stays unchanged
            ready_.swap(held_);
            is_pcapng_ = false;
            continue;
        }
        if (size == 0 || !is_pcapng_) {
            return size;
        }
        const auto bytes = room.first(size);
        const std::size_t passes = held_.empty() ? pass_through_size(bytes) : 0;
        held_.insert(held_.end(), bytes.begin() + static_cast<std::ptrdiff_t>(passes), bytes.end());
        if (passes != 0) {
            return passes;
        }
    }
}

namespace {

constexpr std::uint32_t kInterface = 1;
constexpr std::size_t kPage = 4096; ///< more than the bytes in a state's block apart from the state
constexpr std::uint32_t kMaxBlock = std::uint32_t{16} << 20U; ///< libpcap's limit

std::uint32_t swapped(std::uint32_t value) {
    return value << 24U | (value & 0xff00U) << 8U | (value >> 8U & 0xff00U) | value >> 24U;
}

/// Returns true for the block types that libpcap returns as packets: old, simple and enhanced
/// packets.
bool is_packet(std::uint32_t type) {
    return type == 2 || type == 3 || type == 6;
}

CaptureEndpoint endpoint_of(const sink::FrameEndpoint& frame) {
    using boost::asio::ip::address_v4;
    using boost::asio::ip::address_v6;
    CaptureEndpoint endpoint{.address = {}, .port = frame.port};
    if (frame.is_v6) {
        endpoint.address = address_v6{frame.address};
    } else {
        address_v4::bytes_type four{};
        std::copy_n(frame.address.begin(), four.size(), four.begin());
        endpoint.address = address_v4{four};
    }
    return endpoint;
}

} // namespace

std::uint32_t StateBlockReader::number_at(std::size_t at) const {
    std::uint32_t value = 0;
    std::memcpy(&value, head_.data() + at, sizeof value);
    return is_swapped_ ? swapped(value) : value;
}

void StateBlockReader::on_bytes(std::span<const std::byte> bytes) {
    while (!bytes.empty() && !is_not_pcapng_) {
        if (left_ != 0) {
            const auto here = bytes.first(std::min<std::uint64_t>(left_, bytes.size()));
            if (stores_body_) {
                body_.insert(body_.end(), here.begin(), here.end());
            }
            left_ -= here.size();
            bytes = bytes.subspan(here.size());
            if (left_ == 0) {
                end_block();
            }
            continue;
        }
        const bool section = head_size_ >= kHead && number_at(0) == sink::kPcapngSection;
        const std::size_t wanted = (section ? kSectionHead : kHead) - head_size_;
        const auto here = bytes.first(std::min(wanted, bytes.size()));
        std::ranges::copy(here, head_.begin() + static_cast<std::ptrdiff_t>(head_size_));
        head_size_ += here.size();
        bytes = bytes.subspan(here.size());
        if (here.size() == wanted && (section || number_at(0) != sink::kPcapngSection)) {
            begin_block();
        }
    }
}

void StateBlockReader::begin_block() {
    const std::uint32_t type = number_at(0);
    if (type == sink::kPcapngSection) {
        begun_ = true;
        is_swapped_ = false;
        is_swapped_ = number_at(kHead) != sink::kPcapngByteOrder;
    }
    const std::uint32_t size = number_at(sizeof type);
    constexpr std::uint32_t kLengthBehind = 4;
    if (!begun_ || size < kSectionHead || size % 4 != 0 || size > kMaxBlock ||
        size < head_size_ + kLengthBehind) {
        is_not_pcapng_ = true;
        return;
    }
    left_ = size - head_size_;
    interface_ = type == kInterface && !interface_seen_;
    interface_seen_ = interface_seen_ || interface_;
    stores_body_ = (interface_ && size <= kPage) ||
                   (type == sink::kStateBlock && size <= sink::kMaxStateBytes + kPage);
    packets_ += is_packet(type) ? 1U : 0U;
    head_size_ = 0;
}

void StateBlockReader::end_block() {
    if (!std::exchange(stores_body_, false)) {
        return;
    }
    const std::vector<std::byte> body = std::exchange(body_, {});
    if (interface_) {
        check_interface(body);
        return;
    }
    const auto state = sink::read_session_state(std::span{body}.first(body.size() - 4));
    if (!state) {
        return;
    }
    if (found_.empty() || found_.back().packet != packets_) {
        found_.emplace_back().packet = packets_;
    }
    found_.back().state = {.client = endpoint_of(state->client),
                           .server = endpoint_of(state->server),
                           .bytes = {state->bytes.begin(), state->bytes.end()}};
}

/// Finds out whether twscope wrote the file, from the description in the interface's options.
void StateBlockReader::check_interface(std::span<const std::byte> body) {
    const auto described = std::as_bytes(std::span{sink::kClientsDescription});
    is_by_twscope_ =
        std::search(body.begin(), body.end(), described.begin(), described.end()) != body.end();
}

const CapturedState* StateBlockReader::state_before(std::uint64_t packet) {
    due_.reset();
    while (!found_.empty() && found_.front().packet <= packet) {
        if (found_.front().packet == packet) {
            due_ = std::move(found_.front().state);
        }
        found_.pop_front();
    }
    return due_ ? &*due_ : nullptr;
}

constexpr std::string_view kStandardInput = "-";

/// The stream of bytes that libpcap reads. Decompresses the file if necessary.
struct CaptureStream {
    explicit CaptureStream(const std::string& path) {
        if (path != kStandardInput) {
            file.emplace(path);
        }
    }

    /// The file, which is read from its start; nullopt for standard input, some of whose bytes may
    /// already have been read.
    std::optional<sink::ByteSource> file;
    ByteOrderConverter order;
    StateBlockReader states;
};

namespace {

ssize_t read_stream(void* cookie, char* room, std::size_t size) {
    auto& stream = *static_cast<CaptureStream*>(cookie);
    const std::size_t read = stream.order.read(
        std::as_writable_bytes(std::span{room, size}), [&](std::span<std::byte> bytes) {
            // NOLINTNEXTLINE(*-reinterpret-cast): the source reads chars
            char* const text = reinterpret_cast<char*>(bytes.data());
            return stream.file ? stream.file->read({text, bytes.size()})
                               : std::fread(text, 1, bytes.size(), stdin);
        });
    if (read == 0 && stream.file && stream.file->file_end() != sink::FileEnd::whole) {
        errno = stream.file->compressed() ? EIO : errno;
        return -1;
    }
    if (read == 0 && !stream.file && std::ferror(stdin) != 0) {
        return -1;
    }
    stream.states.on_bytes(std::as_bytes(std::span{room, read}));
    return static_cast<ssize_t>(read);
}

/// Opens a file for libpcap. Returns null if it cannot be opened. Closing the file destroys the
/// stream.
std::pair<std::FILE*, CaptureStream*> open_stream(const std::string& path) {
    try {
        auto stream = std::make_unique<CaptureStream>(path);
        constexpr cookie_io_functions_t kReadOnly{
            .read = read_stream, .write = nullptr, .seek = nullptr, .close = [](void* cookie) {
                delete static_cast<CaptureStream*>(cookie); // NOLINT(*-owning-memory): made below
                return 0;
            }};
        std::FILE* const file = ::fopencookie(stream.get(), "r", kReadOnly);
        if (file != nullptr && path == kStandardInput) {
            // Without a buffer, because reading ahead would wait for more data.
            std::setvbuf(file, nullptr, _IONBF, 0);
        }
        return {file, file == nullptr ? nullptr : stream.release()};
    } catch (const std::system_error&) {
        return {}; // the caller lets libpcap open the file by name and report the error
    }
}

/// Explains the error of libpcap for a file whose interfaces have different link types. Returns
/// other errors unchanged.
std::string explain_error(std::string_view why) {
    if (why.starts_with("an interface has a type ")) {
        return "its interfaces have different link types, which libpcap cannot read; record with "
               "-i any or to separate files, or extract one of them with tshark and editcap "
               "(docs/decode.md)";
    }
    if (why.starts_with("an interface has a snapshot length ")) {
        return "its interfaces have different snapshot lengths, which libpcap cannot read; rewrite "
               "it with: editcap -F pcap FILE ALIKE.pcap";
    }
    return std::string{why};
}

} // namespace

bool looks_like_capture(std::span<const std::byte> begin) {
    // The magic numbers of formats that libpcap reads: pcapng, and the variants of pcap.
    constexpr std::array<std::uint32_t, 6> kMagics{sink::kPcapngSection, 0xa1b2c3d4, 0xa1b23c4d,
                                                   0xa1b2cd34,           0xa1b234cd, 0xa12b3c4d};
    if (begin.size() < kCaptureMagicSize) {
        return false;
    }
    std::uint32_t big = 0;
    std::uint32_t little = 0;
    for (std::size_t i = 0; i < kCaptureMagicSize; ++i) {
        big = big << 8U | std::to_integer<std::uint32_t>(begin[i]);
        little |= std::to_integer<std::uint32_t>(begin[i]) << 8U * i;
    }
    return std::ranges::any_of(
        kMagics, [&](std::uint32_t magic) { return magic == big || magic == little; });
}

void CaptureFile::PcapCloser::operator()(pcap* handle) const {
    pcap_close(handle);
}

CaptureFile::CaptureFile(const std::string& path) {
    std::array<char, PCAP_ERRBUF_SIZE> error{};
    if (const auto [file, stream] = open_stream(path); file != nullptr) {
        handle_.reset(pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO,
                                                               error.data()));
        stream_ = stream;
        if (!handle_) {
            std::fclose(file);
        }
    } else {
        handle_.reset(pcap_open_offline_with_tstamp_precision(
            path.c_str(), PCAP_TSTAMP_PRECISION_NANO, error.data()));
    }
    if (!handle_) {
        // Only some messages of libpcap name the file.
        std::string message{error.data()};
        if (!message.starts_with(path)) {
            message.insert(0, path + ": ");
        }
        throw CaptureError{message +
                           " (expected a pcap or pcapng file; demos must be plain files)"};
    }
    const int link = pcap_datalink(handle_.get());
    if (!FrameReader::supports_link_type(link)) {
        throw CaptureError{path + ": " + FrameReader::describe_unsupported_link(link)};
    }
    reader_.emplace(link);
}

CaptureFile::~CaptureFile() = default;

bool CaptureFile::read_datagram(CapturedDatagram& datagram) {
    if (reader_->read_next_merged(datagram)) {
        return true;
    }
    while (true) {
        pcap_pkthdr* header = nullptr;
        const u_char* data = nullptr;
        const int status = pcap_next_ex(handle_.get(), &header, &data);
        if (status != 1) {
            if (status == PCAP_ERROR) {
                store_read_error();
            }
            return false;
        }
        // The handle has nanosecond precision, so the field named tv_usec counts nanoseconds.
        datagram.state = stream_ == nullptr ? nullptr : stream_->states.state_before(packets_);
        ++packets_;
        datagram.time = FrameReader::limited_time(header->ts.tv_sec, header->ts.tv_usec);
        if (reader_->read_frame(std::as_bytes(std::span{data, header->caplen}), header->len,
                                datagram)) {
            return true;
        }
    }
}

/// Returns true if twscope recorded the first interface. libpcap has already read that interface's
/// block, which contains the link type.
bool CaptureFile::is_by_twscope() const {
    return stream_ != nullptr && stream_->states.is_by_twscope();
}

void CaptureFile::store_read_error() {
    const sink::FileEnd end =
        stream_ == nullptr || !stream_->file ? sink::FileEnd::whole : stream_->file->file_end();
    // libpcap has no error code for a truncated file.
    const std::string_view why = pcap_geterr(handle_.get());
    if (end == sink::FileEnd::damaged) {
        read_error_ = "its compressed data is damaged";
    } else if (end == sink::FileEnd::too_wide) {
        read_error_ = "it was compressed with a window of more than 128 MiB";
    } else if (end == sink::FileEnd::within_frame || why.starts_with("truncated dump file") ||
               why.starts_with("truncated pcapng dump file")) {
        ended_early_ = true;
    } else {
        read_error_ = explain_error(why);
    }
}

} // namespace tw::capture
