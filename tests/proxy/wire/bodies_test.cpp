#include "proxy/wire/bodies.h"
#include "tests/support/message_builder.h"

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using wire::MessageId;

namespace {

using Bytes = std::vector<std::byte>;

/// The values of a typed body, in the order of the message table.
struct Flat {
    std::vector<std::int64_t> numbers;
    std::vector<std::span<const std::byte>> texts;
};

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span{text});
}

std::optional<Flat> flat_snapshot(MessageId id, std::span<const std::byte> body) {
    const auto read = wire::decode_snapshot(id, body);
    if (!read) {
        return std::nullopt;
    }
    Flat flat{{read->tick, read->distance}, {}};
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

/// Decodes the typed body of a message; nullopt if the body is malformed.
std::optional<Flat> read_typed(MessageId id, std::span<const std::byte> body) {
    switch (id) {
    case MessageId::snap:
    case MessageId::snap_single:
    case MessageId::snap_empty:
        return flat_snapshot(id, body);
    case MessageId::map_change:
        if (const auto read = wire::decode_map_change(body, wire::Dialect::six)) {
            return Flat{{read->crc, read->size}, {bytes_of(read->name)}};
        }
        return std::nullopt;
    case MessageId::map_details:
        if (const auto read = wire::decode_map_details(body)) {
            return Flat{{read->crc, read->size}, {bytes_of(read->name), read->sha256}};
        }
        return std::nullopt;
    case MessageId::map_data:
        if (const auto read = wire::decode_map_data(body, wire::Dialect::six)) {
            return Flat{{read->last, read->crc, read->chunk, read->size}, {read->data}};
        }
        return std::nullopt;
    case MessageId::input:
        if (const auto read = wire::decode_input(body)) {
            return Flat{{read->ack_tick, read->intended_tick}, {}};
        }
        return std::nullopt;
    case MessageId::input_timing:
        if (const auto read = wire::decode_input_timing(body)) {
            return Flat{{read->input_pred_tick, read->time_left}, {}};
        }
        return std::nullopt;
    default:
        FAIL("no typed body");
        return std::nullopt;
    }
}

constexpr MessageId kTyped[] = {
    MessageId::snap,        MessageId::snap_single, MessageId::snap_empty, MessageId::map_change,
    MessageId::map_details, MessageId::map_data,    MessageId::input,      MessageId::input_timing};

const wire::MessageSpec& spec_of(MessageId id) {
    const auto table = wire::message_table();
    return *std::ranges::find_if(table, [id](const auto& spec) { return spec.id == id; });
}

/// Returns a body with the layout of the message table and random values.
Bytes random_body(const wire::MessageSpec& spec, std::mt19937& random) {
    test::MessageBuilder builder;
    std::int32_t previous = 0;
    for (const wire::MessageField& field : spec.fields) {
        switch (field.type) {
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

TEST_CASE("typed bodies say what the fields of the table say") {
    std::mt19937 random{3}; // NOLINT(bugprone-random-generator-seed): repeatable
    wire::DecodedFields fields;
    for (const MessageId id : kTyped) {
        const wire::MessageSpec& spec = spec_of(id);
        CAPTURE(spec.name);
        for (int round = 0; round < 50; ++round) {
            const Bytes body = random_body(spec, random);
            const auto flat = read_typed(id, body);
            REQUIRE(flat);
            wire::decode_fields(spec, body, fields);
            std::size_t number = 0;
            std::size_t text = 0;
            for (const wire::FieldValue& value : fields.values) {
                using Kind = wire::FieldValue::Kind;
                if (value.kind == Kind::integer && number < flat->numbers.size()) {
                    CHECK(value.integer == flat->numbers[number++]);
                } else if ((value.kind == Kind::string || value.kind == Kind::raw) &&
                           text < flat->texts.size()) {
                    const auto got = flat->texts[text++];
                    CHECK(
                        std::equal(got.begin(), got.end(), value.bytes.begin(), value.bytes.end()));
                }
            }
            CHECK(number == flat->numbers.size());
            CHECK(text == flat->texts.size());
        }
    }
}

TEST_CASE("a typed body that is cut anywhere is none") {
    std::mt19937 random{4}; // NOLINT(bugprone-random-generator-seed): repeatable
    for (const MessageId id : kTyped) {
        const wire::MessageSpec& spec = spec_of(id);
        CAPTURE(spec.name);
        const Bytes body = random_body(spec, random);
        // The fields after the ticks of an input, and the URL of a map, are optional.
        const auto whole = [&](std::size_t size) {
            return read_typed(id, std::span{body}.first(size)).has_value();
        };
        REQUIRE(whole(body.size()));
        std::size_t least = body.size();
        while (least > 0 && whole(least - 1)) {
            --least;
        }
        CHECK(least > 0);
        if (id != MessageId::input && id != MessageId::map_details) {
            CHECK(least == body.size());
        }
        for (std::size_t size = 0; size < least; ++size) {
            CHECK_FALSE(whole(size));
        }
    }
}

TEST_CASE("a line of the server's own is chat to all of client -1") {
    const auto line_of = [](int team, int client) {
        const auto chat = test::MessageBuilder{}.number(team).number(client).string("hello");
        return std::string{
            wire::find_server_chat(chat.bytes(), wire::Dialect::six).value_or("none")};
    };
    CHECK(line_of(0, -1) == "hello");
    CHECK(line_of(1, -1) == "none");
    CHECK(line_of(0, 3) == "none");
    CHECK_FALSE(
        wire::find_server_chat(test::MessageBuilder{}.number(0).bytes(), wire::Dialect::six));
    CHECK_FALSE(wire::find_server_chat({}, wire::Dialect::six));
}

TEST_CASE("a length beyond the body makes no typed body") {
    for (const std::int32_t size : {-1, 4, 1'000'000, INT32_MAX, INT32_MIN}) {
        CAPTURE(size);
        const Bytes map =
            test::MessageBuilder{}.number(0).number(1).number(0).number(size).text("abc").bytes();
        CHECK_FALSE(wire::decode_map_data(map, wire::Dialect::six));
        const Bytes snap =
            test::MessageBuilder{}.number(9).number(-1).number(1).number(size).text("abc").bytes();
        CHECK_FALSE(wire::decode_snapshot(MessageId::snap_single, snap));
    }
}
