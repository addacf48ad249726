#include "proxy/capture/pcapng.h"

#include "map/text.h"
#include "proxy/base/numbers.h"
#include "proxy/record/terminal_text.h"

#include <array>
#include <cstring>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tw::capture {

namespace {

constexpr std::uint8_t kTimeToLive = 64;
constexpr std::size_t kUdpHeader = 8;
constexpr std::size_t kIpv4Header = 20;

/// The bytes of an address in network byte order.
class AddressBytes {
  public:
    explicit AddressBytes(const boost::asio::ip::address& address)
        : size_{address.is_v4() ? std::size_t{4} : std::size_t{16}} {
        if (address.is_v4()) {
            std::ranges::copy(address.to_v4().to_bytes(), bytes_.begin());
        } else {
            bytes_ = address.to_v6().to_bytes();
        }
    }

    [[nodiscard]] std::span<const std::byte> bytes() const { return padded_bytes().first(size_); }

    /// Returns 16 bytes; the bytes after an IPv4 address are zero.
    [[nodiscard]] std::span<const std::byte> padded_bytes() const {
        return std::as_bytes(std::span{bytes_});
    }

  private:
    std::array<std::uint8_t, 16> bytes_{};
    std::size_t size_;
};

/// Returns the sum of the bytes as 16-bit words, for an internet checksum.
std::uint64_t word_sum(std::span<const std::byte> bytes) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        sum += std::to_integer<std::uint32_t>(bytes[i]) << (i % 2 == 0 ? 8U : 0U);
    }
    return sum;
}

std::uint16_t checksum_of(std::uint64_t sum) {
    while (sum > UINT16_MAX) {
        sum = (sum & UINT16_MAX) + (sum >> 16U);
    }
    return static_cast<std::uint16_t>(~sum);
}

void put8(std::uint32_t value, std::vector<std::byte>& out) {
    out.push_back(static_cast<std::byte>(value));
}

void put16(std::uint32_t value, std::vector<std::byte>& out) {
    put8(value >> 8U, out);
    put8(value, out);
}

void set16(std::size_t at, std::uint16_t value, std::vector<std::byte>& out) {
    out[at] = static_cast<std::byte>(value >> 8U);
    out[at + 1] = static_cast<std::byte>(value);
}

/// Appends an Ethernet header with addresses that no device has.
void append_ethernet_header(bool is_v6, std::vector<std::byte>& out) {
    for (const std::uint32_t end : {1U, 2U}) {
        for (const std::uint32_t byte : {2U, 0U, 0U, 0U, 0U, end}) {
            put8(byte, out);
        }
    }
    put16(is_v6 ? 0x86dd : 0x0800, out);
}

void put_bytes(std::span<const std::byte> bytes, std::vector<std::byte>& out) {
    out.insert(out.end(), bytes.begin(), bytes.end());
}

} // namespace

std::string to_string(const CaptureEndpoint& endpoint) {
    const std::string address = endpoint.address.to_string();
    return (endpoint.address.is_v6() ? '[' + address + ']' : address) + ':' +
           std::to_string(endpoint.port);
}

std::optional<CaptureEndpoint> parse_endpoint(std::string_view text) {
    const auto colon = text.rfind(':');
    if (colon == std::string_view::npos) {
        return std::nullopt;
    }
    std::string host{text.substr(0, colon)};
    const bool is_v6 = host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (is_v6) {
        host = host.substr(1, host.size() - 2);
    }
    boost::system::error_code error;
    const auto address = boost::asio::ip::make_address(host, error);
    const auto port = base::parse_number<std::uint16_t>(text.substr(colon + 1));
    return !error && port && address.is_v6() == is_v6
               ? std::optional{CaptureEndpoint{address, *port}}
               : std::nullopt;
}

boost::asio::ip::address address_from_bytes(std::span<const std::byte> bytes) {
    using boost::asio::ip::address_v4;
    using boost::asio::ip::address_v6;
    const auto copy = [bytes](auto raw) {
        std::memcpy(raw.data(), bytes.data(), raw.size());
        return raw;
    };
    if (bytes.size() == sizeof(address_v4::bytes_type)) {
        return address_v4{copy(address_v4::bytes_type{})};
    }
    return address_v6{copy(address_v6::bytes_type{})};
}

void convert_to_same_family(CaptureEndpoint& one, CaptureEndpoint& other) {
    for (auto* const address : {&one.address, &other.address}) {
        if (address->is_v4() && (one.address.is_v6() || other.address.is_v6())) {
            *address = make_address_v6(boost::asio::ip::v4_mapped, address->to_v4());
        }
    }
}

std::uint16_t udp_checksum(const CaptureEndpoint& from, const CaptureEndpoint& to,
                           std::span<const std::byte> segment) {
    return checksum_of(word_sum(AddressBytes{from.address}.bytes()) +
                       word_sum(AddressBytes{to.address}.bytes()) + kIpProtocolUdp +
                       segment.size() + word_sum(segment));
}

void make_udp_frame(const CaptureEndpoint& from, const CaptureEndpoint& to,
                    std::span<const std::byte> payload, std::vector<std::byte>& out) {
    CaptureEndpoint source = from;
    CaptureEndpoint destination = to;
    convert_to_same_family(source, destination);
    const bool is_v6 = source.address.is_v6();
    const auto length = static_cast<std::uint32_t>(kUdpHeader + payload.size());
    out.clear();
    append_ethernet_header(is_v6, out);
    const std::size_t packet = out.size();
    if (is_v6) {
        put16(0x6000, out);
        put16(0, out);
        put16(length, out);
        put8(kIpProtocolUdp, out);
        put8(kTimeToLive, out);
    } else {
        put16(0x4500, out);
        put16(kIpv4Header + length, out);
        put16(0, out);
        put16(0x4000, out); // flags: do not fragment
        put8(kTimeToLive, out);
        put8(kIpProtocolUdp, out);
        put16(0, out);
    }
    const std::size_t addresses = out.size();
    put_bytes(AddressBytes{source.address}.bytes(), out);
    put_bytes(AddressBytes{destination.address}.bytes(), out);
    if (!is_v6) {
        set16(addresses - 2, checksum_of(word_sum(std::span{out}.subspan(packet))), out);
    }
    const std::size_t udp = out.size();
    put16(source.port, out);
    put16(destination.port, out);
    put16(length, out);
    put16(0, out);
    put_bytes(payload, out);
    const std::uint16_t sum = udp_checksum(source, destination, std::span{out}.subspan(udp));
    set16(udp + 6, sum == 0 ? UINT16_MAX : sum, out);
}

namespace {

constexpr std::uint32_t kUnknownLength = 0xffffffff;

constexpr std::uint16_t kCommentOption = 1;
constexpr std::uint16_t kInterfaceNameOption = 2;
constexpr std::uint16_t kInterfaceDescriptionOption = 3;
constexpr std::uint16_t kInterfaceResolutionOption = 9;
constexpr std::uint16_t kSectionProgramOption = 4;
constexpr std::uint16_t kPacketFlagsOption = 2;

void put_padding(std::vector<std::byte>& out, std::size_t size) {
    out.resize(out.size() + (4 - size % 4) % 4);
}

} // namespace

void PcapngEncoder::put16(std::uint32_t value, Bytes& out) const {
    const std::array bytes{static_cast<std::byte>(value), static_cast<std::byte>(value >> 8U)};
    out.push_back(bytes[big_endian_ ? 1 : 0]);
    out.push_back(bytes[big_endian_ ? 0 : 1]);
}

void PcapngEncoder::put32(std::uint32_t value, Bytes& out) const {
    put16(big_endian_ ? value >> 16U : value, out);
    put16(big_endian_ ? value : value >> 16U, out);
}

void PcapngEncoder::put_option(std::uint16_t code, std::span<const std::byte> value,
                               Bytes& out) const {
    put16(code, out);
    put16(static_cast<std::uint32_t>(value.size()), out);
    out.insert(out.end(), value.begin(), value.end());
    put_padding(out, value.size());
}

void PcapngEncoder::put_option(std::uint16_t code, std::string_view text, Bytes& out) const {
    if (!text.empty()) {
        put_option(code, std::as_bytes(std::span{map::truncate_utf8(text, kMaxCommentBytes)}), out);
    }
}

std::size_t PcapngEncoder::begin_block(std::uint32_t type, Bytes& out) const {
    const std::size_t at = out.size();
    put32(type, out);
    put32(0, out); // end_block() sets the length
    return at;
}

void PcapngEncoder::end_block(std::size_t begin, Bytes& out) const {
    const auto size = static_cast<std::uint32_t>(out.size() - begin + 4);
    put32(size, out);
    std::copy(out.end() - 4, out.end(), out.begin() + static_cast<std::ptrdiff_t>(begin) + 4);
}

void PcapngEncoder::append_section(std::string_view program, Bytes& out,
                                   std::string_view comment) const {
    const std::size_t at = begin_block(kPcapngSectionBlock, out);
    put32(kPcapngByteOrderMagic, out);
    put16(1, out);
    put16(0, out);
    put32(kUnknownLength, out);
    put32(kUnknownLength, out);
    put_option(kCommentOption, comment, out);
    put_option(kSectionProgramOption, program, out);
    if (!program.empty() || !comment.empty()) {
        put32(0, out);
    }
    end_block(at, out);
}

void PcapngEncoder::append_interface(const PcapngInterface& interface, Bytes& out) const {
    const std::size_t at = begin_block(kPcapngInterfaceBlock, out);
    put16(interface.link, out);
    put16(0, out);
    put32(kSnapLength, out);
    put_option(kInterfaceNameOption, interface.name, out);
    put_option(kInterfaceDescriptionOption, interface.description, out);
    const std::array resolution{static_cast<std::byte>(interface.resolution)};
    put_option(kInterfaceResolutionOption, std::span<const std::byte>{resolution}, out);
    put32(0, out);
    end_block(at, out);
}

void PcapngEncoder::append_packet(const PcapngPacket& packet, Bytes& out) const {
    const std::size_t at = begin_block(kPcapngPacketBlock, out);
    put32(packet.interface, out);
    put32(static_cast<std::uint32_t>(packet.time >> 32U), out);
    put32(static_cast<std::uint32_t>(packet.time), out);
    put32(static_cast<std::uint32_t>(packet.frame.size()), out);
    put32(static_cast<std::uint32_t>(packet.frame.size()), out);
    out.insert(out.end(), packet.frame.begin(), packet.frame.end());
    put_padding(out, packet.frame.size());
    const std::size_t options = out.size();
    for (const std::string& comment : packet.comments) {
        put_option(kCommentOption, comment, out);
    }
    if (packet.direction != PcapngPacket::Direction::unknown) {
        put16(kPacketFlagsOption, out);
        put16(sizeof(std::uint32_t), out);
        put32(static_cast<std::uint32_t>(packet.direction), out);
    }
    if (out.size() != options) {
        put32(0, out);
    }
    end_block(at, out);
}

void PcapngEncoder::append_statistics(std::uint32_t interface, std::uint64_t time,
                                      std::span<const std::string> comments, Bytes& out) const {
    const std::size_t at = begin_block(kPcapngStatisticsBlock, out);
    put32(interface, out);
    put32(static_cast<std::uint32_t>(time >> 32U), out);
    put32(static_cast<std::uint32_t>(time), out);
    for (const std::string& comment : comments) {
        put_option(kCommentOption, comment, out);
    }
    put32(0, out);
    end_block(at, out);
}

void PcapngEncoder::append_block(std::uint32_t type, std::span<const std::byte> body,
                                 Bytes& out) const {
    const std::size_t at = begin_block(type, out);
    out.insert(out.end(), body.begin(), body.end());
    put_padding(out, body.size());
    end_block(at, out);
}

std::optional<PcapngBlock> PcapngBlock::read(std::string_view head) {
    constexpr std::uint32_t kSmallest = 12;
    PcapngBlock block;
    if (head.size() < kHeaderBytes) {
        return std::nullopt;
    }
    std::memcpy(&block.type, head.data(), sizeof block.type);
    std::memcpy(&block.size, head.data() + sizeof block.type, sizeof block.size);
    return block.size >= kSmallest && block.size % 4 == 0 ? std::optional{block} : std::nullopt;
}

std::optional<PcapngBlock> BlockIterator::next() {
    const auto block = PcapngBlock::read(text_.substr(at_));
    if (!block || block->size > text_.size() - at_) {
        return std::nullopt;
    }
    at_ += block->size;
    return block;
}

namespace {

constexpr std::uint8_t kVersion = 1;
/// The first bytes of a state block's body. They identify the block, because other programs may use
/// the same block type.
constexpr std::array<std::uint8_t, 8> kMagic{'t', 'w', 's', 'c', 'o', 'p', 'e', kVersion};
constexpr std::size_t kEnds = kMagic.size() + 4;
constexpr std::size_t kEndpoint = 1 + 16 + 2;
constexpr std::size_t kHead = kEnds + 2 * kEndpoint;

void put_endpoint(const CaptureEndpoint& endpoint, std::vector<std::byte>& out) {
    put8(endpoint.address.is_v6() ? 6 : 4, out);
    put_bytes(AddressBytes{endpoint.address}.padded_bytes(), out);
    put16(endpoint.port, out);
}

/// Reads an address and port; nullopt if the address family is unknown.
std::optional<CaptureEndpoint> read_endpoint(std::span<const std::byte> bytes) {
    const auto family = std::to_integer<std::uint8_t>(bytes[0]);
    if (family != 4 && family != 6) {
        return std::nullopt;
    }
    return CaptureEndpoint{
        .address = address_from_bytes(bytes.subspan(1, family == 4 ? 4 : 16)),
        .port = static_cast<std::uint16_t>(std::to_integer<unsigned>(bytes[17]) << 8U |
                                           std::to_integer<unsigned>(bytes[18]))};
}

} // namespace

void append_session_state(const StoredSessionState& state, std::vector<std::byte>& out) {
    if (state.bytes.size() > kMaxStateBytes) {
        return;
    }
    std::vector<std::byte> body;
    body.reserve(kHead + state.bytes.size());
    put_bytes(std::as_bytes(std::span{kMagic}), body);
    for (const unsigned shift : {0U, 8U, 16U, 24U}) {
        body.push_back(static_cast<std::byte>(state.bytes.size() >> shift));
    }
    put_endpoint(state.client, body);
    put_endpoint(state.server, body);
    put_bytes(state.bytes, body);
    PcapngEncoder{}.append_block(kSessionStateBlock, body, out);
}

std::optional<StoredSessionState> read_session_state(std::span<const std::byte> body) {
    if (body.size() < kHead ||
        !std::ranges::equal(body.first(kMagic.size()), std::as_bytes(std::span{kMagic}))) {
        return std::nullopt;
    }
    std::size_t size = 0;
    for (const std::size_t i : {3U, 2U, 1U, 0U}) {
        size = size << 8U | std::to_integer<std::size_t>(body[kMagic.size() + i]);
    }
    const auto client = read_endpoint(body.subspan(kEnds));
    const auto server = read_endpoint(body.subspan(kEnds + kEndpoint));
    if (!client || !server || size > kMaxStateBytes || size > body.size() - kHead) {
        return std::nullopt;
    }
    const auto bytes = body.subspan(kHead, size);
    return StoredSessionState{*client, *server, {bytes.begin(), bytes.end()}};
}

namespace {

constexpr std::uint32_t kClients = 0;
constexpr std::uint32_t kServer = 1;

/// Returns a substitute address, from a network for tests (RFC 2544), for a session whose address
/// is unknown or hidden.
CaptureEndpoint test_endpoint(std::uint32_t session) {
    constexpr std::uint32_t kNetwork = 198U << 24U | 18U << 16U;
    constexpr std::uint16_t kPort = 49152;
    return {.address = boost::asio::ip::address_v4{kNetwork | (session & 0xffffU)},
            .port = static_cast<std::uint16_t>(kPort + (session >> 16U) % 16384)};
}

} // namespace

CaptureEncoder::Bytes CaptureEncoder::encode_start(std::string_view comment) {
    Bytes head;
    const PcapngEncoder encoder;
    encoder.append_section("twscope", head, comment);
    encoder.append_interface({.name = "clients", .description = kClientInterfaceDescription}, head);
    encoder.append_interface({.name = "server", .description = "between twscope and the server"},
                             head);
    return head;
}

void CaptureEncoder::on_record(const record::Record& record) {
    std::visit(
        [this](const auto* concrete) {
            if constexpr (requires { handle_record(*concrete); }) {
                handle_record(*concrete);
            }
        },
        record);
}

void CaptureEncoder::handle_record(const record::SessionRecord& record) {
    const std::uint32_t session = record.head.session;
    switch (record.event) {
    case record::SessionEvent::open:
        current_session_ = nullptr;
        sessions_[session] = {
            .client = parse_endpoint(record.client).value_or(test_endpoint(session)),
            .server = parse_endpoint(record.server).value_or(test_endpoint(0)),
            .summary = fmt::format("session {}: {} to {}", session, record.client, record.server),
            .opened_in_file = file_number_};
        closed_sessions_.erase(session);
        forget_oldest_session();
        break;
    case record::SessionEvent::established:
        closed_sessions_.erase(session);
        add_comment(session, fmt::format("session {}: established, {}", session, record.protocol),
                    true);
        break;
    case record::SessionEvent::close:
        if (sessions_.contains(session)) {
            closed_sessions_.insert(session);
        }
        add_comment(session,
                    fmt::format("session {}: closed: {}", session,
                                record::escape_for_terminal(record.reason)),
                    true);
        break;
    }
}

void CaptureEncoder::forget_oldest_session() {
    if (sessions_.size() <= kMaxSessions) {
        return;
    }
    const std::uint32_t oldest =
        closed_sessions_.empty() ? sessions_.begin()->first : *closed_sessions_.begin();
    sessions_.erase(oldest);
    closed_sessions_.erase(oldest);
}

void CaptureEncoder::handle_record(const record::FindingRecord& record) {
    add_comment(record.head.session, record::describe_finding(record), false);
}

void CaptureEncoder::add_comment(std::uint32_t session, std::string text, bool is_about_session) {
    if (comments_.size() < kMaxComments) {
        comments_.push_back(
            {.session = session, .is_about_session = is_about_session, .text = std::move(text)});
    } else {
        ++num_omitted_comments_;
    }
}

void CaptureEncoder::defer_comments_to_next_datagram() {
    for (Comment& comment : comments_) {
        const auto found = sessions_.find(comment.session);
        if (found != sessions_.end() &&
            found->second.deferred_comments.size() < kMaxDeferredComments) {
            found->second.deferred_comments.push_back(std::move(comment.text));
        }
    }
    comments_.clear();
    num_omitted_comments_ = 0;
}

void CaptureEncoder::skip_datagram() {
    std::erase_if(comments_, [](const Comment& comment) { return !comment.is_about_session; });
    defer_comments_to_next_datagram();
}

std::vector<std::string> CaptureEncoder::take_comments(DescribedSession* entry) {
    constexpr std::string_view kName = "twscope: ";
    std::vector<std::string> texts;
    if (entry != nullptr) {
        if (std::exchange(entry->described_in_file, file_number_) != file_number_) {
            texts.push_back(
                fmt::format("{}{}{}", kName, entry->summary,
                            entry->opened_in_file == file_number_ ? "" : ", from before"));
        }
        for (const std::string& text : std::exchange(entry->deferred_comments, {})) {
            texts.push_back(fmt::format("{}{}", kName, text));
        }
    }
    for (const Comment& comment : comments_) {
        texts.push_back(fmt::format("{}{}", kName, comment.text));
    }
    if (const auto omitted = std::exchange(num_omitted_comments_, 0); omitted != 0) {
        texts.push_back(fmt::format("{}{} more", kName, omitted));
    }
    comments_.clear();
    return texts;
}

void CaptureEncoder::set_session_state_source(SessionStateSource states, record::Timestamp every) {
    state_source_ = std::move(states);
    state_interval_ = every;
}

bool CaptureEncoder::is_state_due(const DescribedSession& entry) const {
    return entry.state_stored_in_file != file_number_ ||
           (state_interval_ != 0 && head_.time - entry.state_time >= state_interval_);
}

void CaptureEncoder::on_datagram(const record::RecordHeader& head,
                                 std::span<const std::byte> datagram) {
    head_ = head;
    datagram_ = datagram;
    state_.clear();
    const auto found = sessions_.find(head.session);
    current_session_ = found == sessions_.end() ? nullptr : &found->second;
    if (current_session_ != nullptr && state_source_ && state_budget_.has_bytes_left() &&
        is_state_due(*current_session_)) {
        current_session_->state_stored_in_file = file_number_;
        current_session_->state_time = head.time;
        state_ = state_source_();
        state_budget_.spend_state_bytes(state_.size());
    }
    state_budget_.add_datagram_bytes(datagram.size());
}

bool CaptureEncoder::end_datagram(Bytes& out) {
    if (datagram_.size() > kMaxFramePayload) {
        return false;
    }
    const bool to_server = head_.direction == wire::Direction::c2s;
    CaptureEndpoint client =
        current_session_ != nullptr ? current_session_->client : test_endpoint(head_.session);
    CaptureEndpoint server =
        current_session_ != nullptr ? current_session_->server : test_endpoint(0);
    convert_to_same_family(client, server);
    if (current_session_ != nullptr && !state_.empty()) {
        append_session_state({client, server, std::exchange(state_, {})}, out);
    }
    make_udp_frame(to_server ? client : server, to_server ? server : client, datagram_, frame_);
    const auto comments = take_comments(current_session_);
    using Direction = PcapngPacket::Direction;
    encoder_.append_packet({.interface = to_server ? kClients : kServer,
                            .time = static_cast<std::uint64_t>(head_.time),
                            .frame = frame_,
                            .direction = to_server ? Direction::inbound : Direction::outbound,
                            .comments = comments},
                           out);
    return true;
}

std::string CaptureEncoder::describe_session(std::uint32_t session) const {
    const auto found = sessions_.find(session);
    return found == sessions_.end() ? std::string{} : found->second.summary;
}

void CaptureEncoder::append_remaining_comments(record::Timestamp time, Bytes& out) {
    if (!comments_.empty()) {
        encoder_.append_statistics(kClients, static_cast<std::uint64_t>(time),
                                   take_comments(nullptr), out);
    }
}

std::uint64_t complete_blocks_size(int descriptor) {
    struct stat found {};

    if (::fstat(descriptor, &found) != 0 || !S_ISREG(found.st_mode)) {
        return 0;
    }
    constexpr std::size_t kPiece = std::size_t{1} << 16U;
    const auto size = static_cast<std::uint64_t>(found.st_size);
    std::string piece;
    std::uint64_t begin = 0; // file offset at which `piece` begins
    for (std::uint64_t at = 0;;) {
        if (at + PcapngBlock::kHeaderBytes > begin + piece.size()) {
            piece.resize(kPiece);
            const ssize_t read =
                ::pread(descriptor, piece.data(), piece.size(), static_cast<off_t>(at));
            piece.resize(static_cast<std::size_t>(std::max<ssize_t>(read, 0)));
            begin = at;
        }
        const auto block = PcapngBlock::read(std::string_view{piece}.substr(at - begin));
        if (!block || block->size > size - at) {
            return at;
        }
        at += block->size;
    }
}

} // namespace tw::capture
