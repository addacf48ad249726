#include "proxy/replay/client_messages.h"

#include "snapshot/varint.h"

#include <algorithm>
#include <span>

namespace tw::replay {

namespace {

using wire::Dialect;

constexpr std::int32_t kInputInts = 10;
/// Clients say their version in 20 bytes; what is captured may be anything.
constexpr std::size_t kMostInfo = 64;
constexpr int kSkinParts = 6;

struct Numbers {
    std::uint16_t ping;
    std::uint16_t ping_reply;
    std::string_view version; ///< of the network
};

const Numbers& numbers_of(Dialect dialect) {
    static constexpr Numbers kSix{.ping = 22, .ping_reply = 23, .version = "0.6 626fce9a778df4d4"};
    static constexpr Numbers kSeven{
        .ping = 26, .ping_reply = 27, .version = "0.7 802f1be60a05665f"};
    return dialect == Dialect::six ? kSix : kSeven;
}

void append_text(Bytes& out, std::string_view text) {
    const auto bytes = std::as_bytes(std::span{text});
    out.insert(out.end(), bytes.begin(), bytes.end());
    out.push_back(std::byte{0});
}

Bytes begin_system(std::int32_t number) {
    Bytes bytes;
    snapshot::encode_varint(number * 2 + 1, bytes);
    return bytes;
}

/// 0.6: one skin and its colours. 0.7: six parts, whether each has a colour, and which.
void append_skin(Bytes& out, Dialect dialect) {
    if (dialect == Dialect::six) {
        append_text(out, "default");
        for (int each = 0; each < 3; ++each) {
            snapshot::encode_varint(0, out);
        }
        return;
    }
    for (const std::string_view part : {"standard", "", "", "standard", "standard", "standard"}) {
        append_text(out, part);
    }
    for (int each = 0; each < 2 * kSkinParts; ++each) {
        snapshot::encode_varint(0, out);
    }
}

} // namespace

Bytes begin_message(wire::MessageId id, Dialect dialect) {
    const auto table = wire::message_table();
    const auto found = std::find_if(table.begin(), table.end(), [&](const wire::MessageSpec& spec) {
        return spec.id == id && spec.dialect == dialect;
    });
    Bytes bytes;
    snapshot::encode_varint(found->number * 2 + (found->system ? 1 : 0), bytes);
    return bytes;
}

Bytes info_message(const ClientScript& script, std::string_view password) {
    Bytes bytes = begin_message(wire::MessageId::info, script.dialect);
    if (script.info.empty() || script.info.size() > kMostInfo) {
        append_text(bytes, numbers_of(script.dialect).version);
    } else {
        bytes.insert(bytes.end(), script.info.begin(), script.info.end());
    }
    append_text(bytes, password);
    if (script.dialect == Dialect::seven) {
        snapshot::encode_varint(script.client_version, bytes);
    }
    return bytes;
}

Bytes start_info_message(const ClientScript& script) {
    if (!script.start_info.empty()) {
        return script.start_info;
    }
    Bytes bytes = begin_message(wire::MessageId::cl_start_info, script.dialect);
    append_text(bytes, "twscope");
    append_text(bytes, "");
    snapshot::encode_varint(-1, bytes);
    append_skin(bytes, script.dialect);
    return bytes;
}

Bytes nothing_pressed() {
    Bytes bytes;
    snapshot::encode_varint(kInputInts * 4, bytes);
    for (int each = 0; each < kInputInts; ++each) {
        snapshot::encode_varint(each == 1 ? 1 : 0, bytes); // aims to the right
    }
    return bytes;
}

Bytes ping_message(Dialect dialect) {
    return begin_system(numbers_of(dialect).ping);
}

Bytes ping_reply_message(Dialect dialect) {
    return begin_system(numbers_of(dialect).ping_reply);
}

bool is_ping(const wire::MessageHead& head) {
    return head.system && !head.uuid && head.number == numbers_of(head.dialect).ping;
}

bool is_ping_reply(const wire::MessageHead& head) {
    return head.system && !head.uuid && head.number == numbers_of(head.dialect).ping_reply;
}

} // namespace tw::replay
