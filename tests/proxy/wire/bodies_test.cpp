#include "proxy/wire/bodies.h"
#include "tests/support/message_builder.h"
#include "tests/support/text.h"

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using wire::Dialect;
using wire::MessageId;

namespace {

using Bytes = std::vector<std::byte>;

/// The values of a typed body, in the order of the message table.
struct FlatFields {
    std::vector<std::int64_t> numbers;
    std::vector<std::span<const std::byte>> texts;
};

std::optional<FlatFields> flatten_snapshot(MessageId id, std::span<const std::byte> body) {
    const auto read = wire::decode_snapshot(id, body);
    if (!read) {
        return std::nullopt;
    }
    FlatFields flat{{read->tick, read->distance}, {}};
    if (id == MessageId::snap) {
        flat.numbers.insert(flat.numbers.end(), {read->num_parts, read->part});
    }
    if (id != MessageId::snap_empty) {
        flat.numbers.insert(flat.numbers.end(), {read->crc, read->part_size});
        flat.texts = {read->data};
        CHECK(read->data.data() == body.data() + read->data_offset);
    }
    return flat;
}

struct TypedMessage {
    MessageId id;
    Dialect dialect = Dialect::six;
    bool is_whole = true; ///< the typed body has all fields of the message
};

/// Decodes the typed body of a message; nullopt if the body is malformed.
std::optional<FlatFields> flatten_typed_body(const TypedMessage& message,
                                             std::span<const std::byte> body) {
    const auto flatten = [](const auto& read, const auto& flat) {
        return read ? std::optional<FlatFields>{flat(*read)} : std::nullopt;
    };
    switch (message.id) {
    case MessageId::map_change:
        return flatten(wire::decode_map_change(body, message.dialect), [&](const auto& read) {
            return message.dialect == Dialect::six
                       ? FlatFields{{read.crc, read.size}, {test::as_bytes(read.name)}}
                       : FlatFields{{read.crc, read.size, read.chunks_per_request, read.chunk_size},
                                    {test::as_bytes(read.name), read.sha256}};
        });
    case MessageId::map_details:
        return flatten(wire::decode_map_details(body), [](const auto& read) {
            return FlatFields{{read.crc, read.size}, {test::as_bytes(read.name), read.sha256}};
        });
    case MessageId::map_data:
        return flatten(wire::decode_map_data(body, message.dialect), [](const auto& read) {
            return FlatFields{{read.last, read.crc, read.chunk, read.size}, {read.data}};
        });
    case MessageId::input:
        return flatten(wire::decode_input(body), [](const auto& read) {
            return FlatFields{{read.ack_tick, read.intended_tick}, {}};
        });
    case MessageId::input_timing:
        return flatten(wire::decode_input_timing(body), [](const auto& read) {
            return FlatFields{{read.input_pred_tick, read.time_left}, {}};
        });
    case MessageId::client_version:
        return flatten(wire::decode_client_version(body), [](const auto& read) {
            return FlatFields{{read.ddnet_version}, {read.connection_id}};
        });
    case MessageId::sv_client_info:
        return flatten(wire::decode_client_info(body), [](const auto& read) {
            return FlatFields{{read.client_id, read.local, read.team}, {test::as_bytes(read.name)}};
        });
    case MessageId::sv_team:
        return flatten(wire::decode_team(body), [](const auto& read) {
            return FlatFields{{read.client_id, read.team}, {}};
        });
    case MessageId::sv_client_drop:
        return flatten(wire::decode_client_drop(body), [](const auto& read) {
            return FlatFields{{read.client_id}, {}};
        });
    default:
        return flatten_snapshot(message.id, body);
    }
}

constexpr TypedMessage kTyped[] = {
    {MessageId::snap},
    {MessageId::snap_single},
    {MessageId::snap_empty},
    {MessageId::map_change},
    {MessageId::map_details, Dialect::six, false},
    {MessageId::map_data},
    {MessageId::input, Dialect::six, false},
    {MessageId::input_timing},
    {MessageId::client_version, Dialect::six, false},
    {MessageId::map_change, Dialect::seven},
    {MessageId::input, Dialect::seven, false},
    {MessageId::sv_client_info, Dialect::seven, false},
    {MessageId::sv_team, Dialect::seven, false},
    {MessageId::sv_client_drop, Dialect::seven, false},
};

const wire::MessageSpec& spec_of(const TypedMessage& message) {
    const auto table = wire::message_table();
    return *std::ranges::find_if(table, [&](const auto& spec) {
        return spec.id == message.id && spec.dialect == message.dialect;
    });
}

/// Returns a body with the layout of the message table and random values.
Bytes random_body(const wire::MessageSpec& spec, std::mt19937& random) {
    test::MessageBuilder builder;
    std::int32_t previous = 0;
    for (const wire::MessageField& field : spec.fields) {
        switch (field.type) {
        case wire::FieldType::boolean:
        case wire::FieldType::tick:
        case wire::FieldType::array: // typed bodies have no arrays, and what follows is not read
            builder.number(static_cast<std::int32_t>(random() % 2));
            break;
        case wire::FieldType::uuid:
            builder.raw(Bytes(16, static_cast<std::byte>(random())));
            break;
        case wire::FieldType::integer: {
            const std::string_view name = field.name;
            const bool length = name == "size" || name == "part_size";
            previous =
                length && spec.id != MessageId::map_change && spec.id != MessageId::map_details
                    ? static_cast<std::int32_t>(random() % 40)
                    : static_cast<std::int32_t>(random());
            builder.number(previous);
            break;
        }
        case wire::FieldType::string:
            builder.string(std::string(random() % 10, 'x'));
            break;
        case wire::FieldType::raw:
            builder.raw(
                Bytes(static_cast<std::size_t>(previous), static_cast<std::byte>(random())));
            break;
        case wire::FieldType::sha256:
            builder.raw(Bytes(32, static_cast<std::byte>(random())));
            break;
        case wire::FieldType::object:
            builder.raw(Bytes(10));
            break;
        default:
            FAIL("a type that no typed body has");
        }
    }
    return builder.bytes();
}

} // namespace

TEST_CASE("typed bodies have the values of the table's fields") {
    std::mt19937 random{3}; // NOLINT(bugprone-random-generator-seed): repeatable
    wire::DecodedFields fields;
    for (const TypedMessage& message : kTyped) {
        const wire::MessageSpec& spec = spec_of(message);
        CAPTURE(spec.name);
        for (int round = 0; round < 50; ++round) {
            const Bytes body = random_body(spec, random);
            const auto flat = flatten_typed_body(message, body).value();
            wire::decode_fields(spec, body, fields);
            std::size_t number = 0;
            std::size_t text = 0;
            for (const wire::FieldValue& value : fields.values) {
                using Kind = wire::FieldValue::Kind;
                if ((value.kind == Kind::integer || value.kind == Kind::boolean) &&
                    number < flat.numbers.size()) {
                    CHECK(value.integer == flat.numbers[number++]);
                } else if ((value.kind == Kind::string || value.kind == Kind::raw ||
                            value.kind == Kind::uuid) &&
                           text < flat.texts.size()) {
                    const auto got = flat.texts[text++];
                    CHECK(
                        std::equal(got.begin(), got.end(), value.bytes.begin(), value.bytes.end()));
                }
            }
            CHECK(number == flat.numbers.size());
            CHECK(text == flat.texts.size());
        }
    }
}

TEST_CASE("a truncated body gives no typed body") {
    std::mt19937 random{4}; // NOLINT(bugprone-random-generator-seed): repeatable
    for (const TypedMessage& message : kTyped) {
        const wire::MessageSpec& spec = spec_of(message);
        CAPTURE(spec.name);
        const Bytes body = random_body(spec, random);
        const auto whole = [&](std::size_t size) {
            return flatten_typed_body(message, std::span{body}.first(size)).has_value();
        };
        REQUIRE(whole(body.size()));
        std::size_t least = body.size();
        while (least > 0 && whole(least - 1)) {
            --least;
        }
        CHECK(least > 0);
        CHECK((least == body.size() || !message.is_whole));
        // In 0.7, a map change may end before its hash, but not inside it.
        const bool has_hash =
            message.id == MessageId::map_change && message.dialect == Dialect::seven;
        for (std::size_t size = 0; size < least; ++size) {
            CHECK(whole(size) == (has_hash && size + 32 == body.size()));
        }
    }
}

TEST_CASE("the map data of 0.7 is the whole body") {
    const Bytes chunk(1384, std::byte{1});
    const auto data = wire::decode_map_data(chunk, Dialect::seven).value();
    CHECK_FALSE(data.numbered);
    CHECK(data.data.size() == 1384);
}

TEST_CASE("chat of client -1 to all is the server's own") {
    struct Row {
        Dialect dialect;
        int audience, client;
        bool found;
    };

    for (const Row& row : {Row{Dialect::six, 0, -1, true}, Row{Dialect::six, 1, -1, false},
                           Row{Dialect::six, 0, 3, false}, Row{Dialect::seven, 1, -1, true},
                           Row{Dialect::seven, 1, 3, false}, Row{Dialect::seven, 3, -1, false}}) {
        test::MessageBuilder chat;
        chat.number(row.audience).number(row.client);
        CHECK_FALSE(wire::find_server_chat(chat.bytes(), row.dialect));
        if (row.dialect == Dialect::seven) {
            chat.number(-1);
        }
        chat.string("hello");
        CHECK(wire::find_server_chat(chat.bytes(), row.dialect).value_or("none") ==
              (row.found ? "hello" : "none"));
        CHECK_FALSE(wire::find_server_chat({}, row.dialect));
    }
}

TEST_CASE("a length beyond the body gives no typed body") {
    for (const std::int32_t size : {-1, 4, 1'000'000, INT32_MAX, INT32_MIN}) {
        CAPTURE(size);
        const Bytes map =
            test::MessageBuilder{}.number(0).number(1).number(0).number(size).text("abc").bytes();
        CHECK_FALSE(wire::decode_map_data(map, Dialect::six));
        const Bytes snap =
            test::MessageBuilder{}.number(9).number(-1).number(1).number(size).text("abc").bytes();
        CHECK_FALSE(wire::decode_snapshot(MessageId::snap_single, snap));
    }
}
