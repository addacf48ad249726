#include "proxy/wire/connless.h"

#include "proxy/wire/message_layouts.h"
#include "proxy/wire/text.h"
#include "snapshot/cursor.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace tw::wire {
namespace {

constexpr std::size_t kMarkSize = 4; ///< number of ff bytes before each magic
constexpr std::size_t kMagicSize = kConnlessPrefixSize - kMarkSize;
constexpr std::byte kMarkByte{0xff};

using namespace table;

constexpr auto kGetInfo = layout(MessageField{.name = "token", .type = FieldType::request_token});
constexpr auto kGetInfo64 = layout(MessageField{.name = "token", .type = FieldType::u8});

constexpr MessageField kClients =
    structs_until_end("clients", std::span{kClient}.first(kClient.size() - 1));
constexpr MessageField kExtendedClients = structs_until_end("clients", kClient);

constexpr auto kInfo =
    layout(decimal("token"), text("version"), text("name"), text("map"), text("game_type"),
           decimal("flags"), decimal("num_players"), decimal("max_players"), decimal("num_clients"),
           decimal("max_clients"), kClients);

constexpr auto kInfo64 =
    layout(decimal("token"), text("version"), text("name"), text("map"), text("game_type"),
           decimal("flags"), decimal("num_players"), decimal("max_players"), decimal("num_clients"),
           decimal("max_clients"), "offset", kClients);

constexpr auto kInfoExtended =
    layout(decimal("token"), text("version"), text("name"), text("map"), decimal("map_crc"),
           decimal("map_size"), text("game_type"), decimal("flags"), decimal("num_players"),
           decimal("max_players"), decimal("num_clients"), decimal("max_clients"), text("reserved"),
           kExtendedClients);

constexpr auto kInfoExtendedMore =
    layout(decimal("token"), decimal("packet_no"), text("reserved"), kExtendedClients);

constexpr auto kList = layout(MessageField{.name = "servers", .type = FieldType::server_addresses});
constexpr auto kCount = layout(port("count"));
constexpr auto kHeartbeat = layout(port("alt_port"));

// In 0.7, connless packets encode their fields like messages. The message sv_server_info contains
// the same fields as a connless server info, except for the token and the players.
constexpr auto kSevenGetInfo = layout("token");

constexpr auto kSevenInfo = [] {
    std::array<MessageField, kServerInfo.size() + 2> fields;
    fields.front() = integer("token");
    std::ranges::copy(kServerInfo, fields.begin() + 1);
    fields.back() = structs_until_end("clients", kSevenClient);
    return fields;
}();

// Sorted: packets that exist in 0.6 only, then packets of both dialects, then those of 0.7 only.
constexpr ConnlessSpec kTable[] = {
    {"gie3", "get_info", kGetInfo},
    {"inf3", "info", kInfo},
    {"fstd", "get_info_64", kGetInfo64},
    {"dtsf", "info_64", kInfo64},
    {"iext", "info_extended", kInfoExtended},
    {"iex+", "info_extended_more", kInfoExtendedMore},
    {"chal", "register_challenge", {}},
    {"req2", "get_list", {}},
    {"lis2", "list", kList},
    {"cou2", "get_count", {}},
    {"siz2", "count", kCount},
    {"bea2", "heartbeat", kHeartbeat},
    {"fw??", "fw_check", {}},
    {"fw!!", "fw_response", {}},
    {"fwok", "fw_ok", {}},
    {"fwer", "fw_error", {}},
    {"gie3", "get_info", kSevenGetInfo},
    {"inf3", "info", kSevenInfo},
};
constexpr std::size_t kNumSixOnly = 7;
constexpr std::size_t kNumSevenOnly = 2;

} // namespace

std::span<const ConnlessSpec> connless_table(Dialect dialect) {
    constexpr std::span<const ConnlessSpec> kAll{kTable};
    return dialect == Dialect::six ? kAll.first(kAll.size() - kNumSevenOnly)
                                   : kAll.subspan(kNumSixOnly);
}

const ConnlessSpec* find_connless(std::span<const std::byte> payload, Dialect dialect) {
    if (payload.size() < kConnlessPrefixSize ||
        !std::all_of(payload.begin(), payload.begin() + kMarkSize,
                     [](std::byte byte) { return byte == kMarkByte; })) {
        return nullptr;
    }
    const std::string_view magic = as_text(payload.subspan(kMarkSize, kMagicSize));
    const auto table = connless_table(dialect);
    const auto found = std::find_if(table.begin(), table.end(), [magic](const ConnlessSpec& spec) {
        return spec.magic == magic;
    });
    return found == table.end() ? nullptr : &*found;
}

std::optional<std::string_view> find_server_version(std::span<const std::byte> payload,
                                                    Dialect dialect) {
    const ConnlessSpec* const spec = find_connless(payload, dialect);
    // Every kind of server info begins with the token (a text in 0.6) and the version.
    if (spec == nullptr || spec->fields.size() < 2 || spec->fields[1].name != "version") {
        return std::nullopt;
    }
    snapshot::Cursor in{payload.subspan(kConnlessPrefixSize)};
    if (dialect == Dialect::six) {
        static_cast<void>(in.string());
    } else {
        static_cast<void>(in.var_int());
    }
    const std::string_view version = in.string();
    return in.failed() ? std::nullopt : std::optional{version};
}

void decode_connless(const ConnlessSpec& spec, const Packet& packet, DecodedFields& out) {
    const std::size_t skipped = std::min(packet.payload.size(), kConnlessPrefixSize);
    FieldDecoder{packet.payload.subspan(skipped), packet.connless_extra, out, packet.dialect}
        .decode_all(spec.fields);
}

namespace {

constexpr std::size_t kHead = kConnlessHeaderSize + kConnlessPrefixSize;
constexpr std::uint32_t kPlainTokenMask = 0xff;

/// Returns the magic of a connless 0.6 packet; empty if the datagram is not such a packet.
std::string_view magic_of(std::span<const std::byte> datagram) {
    constexpr std::string_view kMarkText = "\xff\xff\xff\xff";
    const std::string_view text = as_text(datagram);
    return text.size() > kHead && text.substr(kConnlessHeaderSize, kMarkText.size()) == kMarkText
               ? text.substr(kConnlessHeaderSize + kMarkText.size(), kMarkText.size())
               : std::string_view{};
}

/// Returns the token in an info answer. In 0.6 this is a text of decimal digits.
std::string_view token_text_of(std::span<const std::byte> answer) {
    const std::string_view rest = as_text(answer).substr(kHead);
    return rest.substr(0, rest.find('\0'));
}

/// The text that a server writes for a request's token into an answer with the given magic.
class TokenText {
  public:
    TokenText(std::string_view magic, const InfoRequest& request) noexcept {
        // In an "inf3", servers write only the token's low bits.
        const std::uint32_t token =
            magic == "inf3" ? request.token & kPlainTokenMask : request.token;
        end_ = std::to_chars(digits_.data(), digits_.data() + digits_.size(), token).ptr;
    }

    [[nodiscard]] std::string_view text() const noexcept {
        return {digits_.data(), static_cast<std::size_t>(end_ - digits_.data())};
    }

  private:
    std::array<char, 10> digits_{};
    char* end_;
};

} // namespace

std::optional<InfoRequest> read_info_request(std::span<const std::byte> datagram) {
    if (datagram.size() != kHead + 1 || magic_of(datagram) != "gie3") {
        return std::nullopt;
    }
    const auto byte = [&](std::size_t i) { return std::to_integer<std::uint32_t>(datagram[i]); };
    const std::string_view header = as_text(datagram.first(kConnlessHeaderSize));
    if (header == "\xff\xff\xff\xff\xff\xff") {
        return InfoRequest{.kind = InfoRequestKind::plain, .token = byte(kHead)};
    }
    const bool is_extended = header.starts_with("xe") && byte(4) == 0 && byte(5) == 0;
    if (!is_extended) {
        return std::nullopt;
    }
    return InfoRequest{.kind = InfoRequestKind::extended,
                       .token = byte(2) << 16U | byte(3) << 8U | byte(kHead)};
}

std::optional<InfoPart> classify_info_part(std::span<const std::byte> datagram,
                                           const InfoRequest& request) {
    const std::string_view magic = magic_of(datagram);
    const bool is_first =
        magic == "inf3" || (magic == "iext" && request.kind == InfoRequestKind::extended);
    const bool is_more = magic == "iex+" && request.kind == InfoRequestKind::extended;
    if ((!is_first && !is_more) || datagram.size() > kMaxDatagramSize ||
        token_text_of(datagram) != TokenText{magic, request}.text()) {
        return std::nullopt;
    }
    return is_first ? InfoPart::first : InfoPart::more;
}

std::size_t write_info_part(std::span<const std::byte> part, const InfoRequest& request,
                            std::span<std::byte> out) {
    const std::string_view magic = magic_of(part);
    if (magic.empty()) {
        return 0;
    }
    const TokenText token{magic, request};
    const auto rest = part.subspan(kHead + token_text_of(part).size());
    const std::size_t size = kHead + token.text().size() + rest.size();
    if (size > std::min(out.size(), kMaxDatagramSize)) {
        return 0;
    }
    auto end = std::ranges::copy(part.first(kHead), out.begin()).out;
    end = std::ranges::copy(std::as_bytes(std::span{token.text()}), end).out;
    std::ranges::copy(rest, end);
    return size;
}

} // namespace tw::wire
