// Covers: proxy/wire/messages_seven.cpp
#include "proxy/wire/bodies.h"
#include "proxy/wire/connless.h"
#include "proxy/wire/message.h"
#include "snapshot/names.h"
#include "tests/proxy/wire/fields_text.h"
#include "tests/proxy/wire/vectors.h"
#include "tests/support/message_builder.h"
#include "tests/support/test_data.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include <doctest/doctest.h>

namespace tw::wire {
namespace {

namespace json = boost::json;
using test::Bytes;
using tw::test::MessageBuilder;

const json::object& reference() {
    static const json::object all = [] {
        std::ifstream file{tw::test::test_data("spec/gamenet-0.7.json")};
        const std::string text{std::istreambuf_iterator<char>{file}, {}};
        return json::parse(text).as_object();
    }();
    return all;
}

std::string text_at(const json::object& object, std::string_view key) {
    const auto* const found = object.if_contains(key);
    return found == nullptr ? "" : std::string{found->as_string()};
}

const MessageSpec& message_named(std::string_view name) {
    const auto table = message_table();
    const auto found = std::ranges::find_if(table, [name](const MessageSpec& spec) {
        return spec.dialect == Dialect::seven && spec.name == name;
    });
    REQUIRE(found != table.end());
    return *found;
}

/// Returns the message table's name of a field's type in the reference.
std::string expected_type(const json::object& field) {
    const std::string type = text_at(field, "type");
    const auto* const count = field.if_contains("count");
    const std::string times = count == nullptr     ? ""
                              : count->is_string() ? text_at(field, "count")
                                                   : "6";
    const std::map<std::string, std::string> kinds{{"int", "int"},
                                                   {"int_range", "int"},
                                                   {"enum", "int"},
                                                   {"flags", "int"},
                                                   {"bool", "bool"},
                                                   {"tick", "tick"},
                                                   {"string", "string"},
                                                   {"string_strict", "string"},
                                                   {"raw[32]", "sha256"},
                                                   {"raw[rest]", "rest"},
                                                   {"raw[part_size]", "raw"},
                                                   {"int[size/4]", "object"}};
    return kinds.at(type) + (times.empty() ? "" : "[" + times + "]");
}

std::string type_of(const MessageField& field) {
    switch (field.type) {
    case FieldType::integer:
        return "int";
    case FieldType::boolean:
        return "bool";
    case FieldType::tick:
        return "tick";
    case FieldType::string:
        return "string";
    case FieldType::sha256:
        return "sha256";
    case FieldType::raw_until_end:
        return "rest";
    case FieldType::raw:
        return "raw";
    case FieldType::object:
        return "object";
    case FieldType::
        integers_until_end: // their number depends on the id; there are no fields after them
        return "int[by id]";
    case FieldType::array: {
        MessageField element = field;
        element.type = field.element;
        return type_of(element) +
               (field.count == 0 ? "[num_options]" : "[" + std::to_string(field.count) + "]");
    }
    default:
        return "?";
    }
}

std::int64_t integer_at(const json::object& object, std::string_view key, std::int64_t otherwise) {
    const auto* const found = object.if_contains(key);
    return found == nullptr ? otherwise : found->as_int64();
}

/// Returns the number of fields that DDNet adds after those of the reference.
std::size_t surplus_of(std::string_view message) {
    constexpr std::size_t kTunings = 15; // DDNet's own tunings and the surplus ints
    return message == "sv_tune_params"                                       ? kTunings
           : message == "enter_game" || message == "sv_vote_option_list_add" ? 1
                                                                             : 0;
}

void check_message(const MessageSpec& spec, const json::object& wanted, bool system) {
    CAPTURE(spec.name);
    CHECK(spec.name == text_at(wanted, "name"));
    CHECK(spec.system == system);
    CHECK(spec.dialect == Dialect::seven);
    CHECK(spec.number == integer_at(wanted, "id", 0));
    CHECK(spec.vital == wanted.at("vital").as_bool());
    const std::string direction = text_at(wanted, "direction");
    CHECK((spec.direction == MessageDirection::c2s) == (direction == "c2s"));
    CHECK((spec.direction == MessageDirection::s2c) == (direction == "s2c"));
    CHECK((spec.direction == MessageDirection::both) == (direction == "both"));
    CHECK(find_message(system, spec.number, Dialect::seven) == &spec);
    const auto* const fields = wanted.if_contains("fields");
    const json::array none;
    const json::array& list = fields == nullptr ? none : fields->as_array();
    REQUIRE(spec.fields.size() == list.size() + surplus_of(spec.name));
    for (std::size_t i = 0; i < list.size(); ++i) {
        const MessageField& field = spec.fields[i];
        const json::object& row = list[i].as_object();
        CAPTURE(field.name);
        CHECK(field.name == text_at(row, "name"));
        CHECK(type_of(field) == expected_type(row));
        CHECK(field.min == integer_at(row, "min", INT32_MIN));
        CHECK(field.max == integer_at(row, "max", INT32_MAX));
        if (row.contains("flags")) {
            REQUIRE(field.names != nullptr);
            CHECK(field.names->name == text_at(row, "flags"));
        }
    }
    if (surplus_of(spec.name) != 0) {
        CHECK(spec.fields.back().optional);
    }
}

json::value value_of(const FieldValue& value) {
    switch (value.kind) {
    case FieldValue::Kind::integer:
    case FieldValue::Kind::boolean:
        return value.integer;
    case FieldValue::Kind::string:
        return json::string{reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size()};
    default:
        return json::string{test::to_hex(value.bytes)};
    }
}

/// Returns the fields in the form of the vectors: arrays as lists, objects as lists of their ints.
json::object fields_of(const DecodedFields& fields) {
    json::object out;
    json::array* list = nullptr;
    for (const FieldValue& value : fields.values) {
        const bool begins = value.kind == FieldValue::Kind::array_begin ||
                            value.kind == FieldValue::Kind::object_begin;
        if (begins) {
            list = &out.emplace(value.name, json::array{}).first->value().as_array();
        } else if (value.kind == FieldValue::Kind::end) {
            list = nullptr;
        } else if (list != nullptr) {
            list->push_back(value_of(value));
        } else {
            out[value.name] = value_of(value);
        }
    }
    return out;
}

} // namespace

TEST_CASE("the messages of 0.7 are the reference's, message by message and field by field") {
    std::vector<const MessageSpec*> own;
    for (const MessageSpec& spec : message_table()) {
        if (spec.dialect == Dialect::seven) {
            own.push_back(&spec);
        }
    }
    const auto& system = reference().at("system_messages").as_array();
    const auto& game = reference().at("game_messages").as_array();
    REQUIRE(own.size() == system.size() + game.size());
    REQUIRE(own.size() == 69);
    for (std::size_t i = 0; i < own.size(); ++i) {
        const bool is_system = i < system.size();
        const auto& wanted = is_system ? system[i] : game[i - system.size()];
        check_message(*own[i], wanted.as_object(), is_system);
    }
    for (const auto number : std::to_array<std::uint16_t>({0, 31, 40, 63, 64, 65535})) {
        CHECK(find_message(true, number, Dialect::seven) == nullptr);
    }
}

TEST_CASE("messages of 0.7 decode to the reference's values") {
    DecodedFields fields;
    for (const auto& row : test::seven_vectors("messages")) {
        const Bytes wire = test::hex_at(row, "bytes");
        const std::string name{row.at("name").as_string()};
        CAPTURE(name);
        const auto head = decode_message_header(wire, Dialect::seven);
        REQUIRE(head);
        REQUIRE(head->spec != nullptr);
        CHECK(head->spec->name == name);
        decode_fields(*head->spec, head->body, fields);
        CAPTURE(test::to_text(fields));
        CHECK_FALSE(fields.error);
        CHECK(fields.trailing.empty());
        CHECK(test::is_balanced(fields));
        json::object got = fields_of(fields);
        const json::object& wanted = row.at("fields").as_object();
        if (got.contains("laser_damage")) { // one more int, which the vectors do not have
            CHECK(got.at("laser_damage") == wanted.at("player_collision"));
            continue;
        }
        for (const auto& pair : wanted) {
            const std::string key{pair.key()};
            const json::value& value = pair.value();
            CAPTURE(key);
            REQUIRE(got.contains(key));
            if (name != "input" || key != "data") { // the ints of an object have names
                CHECK(json::serialize(got.at(key)) == json::serialize(value));
            }
            got.erase(key);
        }
        if (name == "input") {
            CHECK(std::ranges::count_if(fields.values, [](const auto& each) {
                      return each.kind == FieldValue::Kind::integer;
                  }) >= 13);
        } else {
            got.erase("more");
            if (name != "sv_tune_params") { // DDNet's own fields come after those of the vectors
                CHECK(json::serialize(got) == "{}");
            }
        }
    }
}

TEST_CASE("a message of 0.7 cut at any byte is an error inside it, never more values") {
    DecodedFields whole;
    DecodedFields fields;
    for (const auto& row : test::seven_vectors("messages")) {
        const Bytes wire = test::hex_at(row, "bytes");
        CAPTURE(std::string{row.at("name").as_string()});
        const auto full = decode_message_header(wire, Dialect::seven);
        REQUIRE(full);
        decode_fields(*full->spec, full->body, whole);
        for (std::size_t size = full->header_size; size < wire.size(); ++size) {
            CAPTURE(size);
            const Bytes cut = test::prefix(wire, size);
            const auto head = decode_message_header(cut, Dialect::seven);
            REQUIRE(head);
            decode_fields(*head->spec, head->body, fields);
            CHECK(test::is_balanced(fields));
            CHECK(fields.values.size() <= whole.values.size());
            CHECK((!fields.error || fields.error->offset <= head->body.size()));
        }
    }
}

TEST_CASE("DDNet's tunings of 0.7 are named, with the laser's damage where it was not left out") {
    struct Row {
        std::int32_t ints;
        std::string_view thirtieth;
        std::string_view last;
    };

    const Row rows[] = {
        {32, "player_collision", "player_hooking"}, // vanilla
        {44, "player_collision", "hammer_hit_fire_delay"},
        {45, "laser_damage", "hammer_hit_fire_delay"}, // of DDNet 16.4
        {46, "player_collision", "ground_elasticity_y"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.ints);
        MessageBuilder body;
        for (std::int32_t i = 0; i < row.ints; ++i) {
            body.number(i * 1000); // takes one or more bytes
        }
        DecodedFields fields;
        decode_fields(message_named("sv_tune_params"), body.bytes(), fields);
        CHECK_FALSE(fields.error);
        CHECK(fields.trailing.empty());
        REQUIRE(fields.values.size() == static_cast<std::size_t>(row.ints));
        CHECK(fields.values[30].name == row.thirtieth);
        CHECK(fields.values[30].integer == 30'000);
        CHECK(fields.values.back().name == row.last);
        CHECK(fields.values.back().integer == (row.ints - 1) * 1000);
    }
}

TEST_CASE("hostile lengths of 0.7 are refused") {
    struct Row {
        std::string_view name;
        Bytes body;
        std::string_view text;
    };

    const Row rows[] = {
        {"sv_vote_option_list_add", MessageBuilder{}.number(-1).bytes(), "num_options=-1 "},
        {"sv_vote_option_list_add", MessageBuilder{}.number(INT32_MAX).string("a").bytes(),
         "num_options=2147483647 "},
        {"sv_vote_option_list_add", MessageBuilder{}.number(2).string("a").bytes(),
         "num_options=2 descriptions[ \"a\" ]"},
        {"cl_skin_change", MessageBuilder{}.string("aaaa").string("bbbb").bytes(),
         "skin_part_names[ \"aaaa\" \"bbbb\" ]"},
        {"input", MessageBuilder{}.number(1).number(2).number(-4).bytes(),
         "ack_tick=1 intended_tick=2 size=-4"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        DecodedFields fields;
        decode_fields(message_named(row.name), row.body, fields);
        CHECK(fields.error);
        CHECK(test::is_balanced(fields));
        CHECK(test::to_text(fields).starts_with(row.text));
    }
}

TEST_CASE("what nobody but its receiver may see is secret in 0.7, too") {
    struct Row {
        std::string_view name;
        MessageBuilder body;
        std::string_view text;
    };

    const auto chat = [](int mode, std::string_view text) {
        return MessageBuilder{}.number(mode).number(-1).number(-1).string(text);
    };
    const auto say = [](int mode, std::string_view text) {
        return MessageBuilder{}.number(mode).number(-1).string(text);
    };
    const Row rows[] = {
        {"info", MessageBuilder{}.string("0.7").string("pass").number(1797),
         "version=\"0.7\" password=\"pass\"* client_version=1797"},
        {"rcon_auth", MessageBuilder{}.string("pass"), "password=\"pass\"*"},
        {"rcon_cmd", MessageBuilder{}.string("status"), "command=\"status\"*"},
        {"rcon_line", MessageBuilder{}.string("line"), "line=\"line\"*"},
        {"rcon_cmd_add", MessageBuilder{}.string("say").string("h").string("p"),
         "name=\"say\" help=\"h\"* params=\"p\"*"},
        {"maplist_entry_add", MessageBuilder{}.string("dm1"), "name=\"dm1\"*"},
        {"cl_say", say(1, "hello"), "mode=1 target=-1 message=\"hello\""},
        {"cl_say", say(3, "hello"), "mode=3 target=-1 message=\"hello\"*"},
        {"cl_say", say(1, "/timeout 1"), "mode=1 target=-1 message=\"/timeout 1\"*"},
        {"sv_chat", chat(1, "hello"), "mode=1 client_id=-1 target_id=-1 message=\"hello\""},
        {"sv_chat", chat(3, "hello"), "mode=3 client_id=-1 target_id=-1 message=\"hello\"*"},
        {"sv_chat", chat(1, "use /load x"),
         "mode=1 client_id=-1 target_id=-1 message=\"use /load x\"*"},
        {"sv_chat", chat(1, "[\u2190 me] psst"),
         "mode=1 client_id=-1 target_id=-1 message=\"[\u2190 me] psst\"*"},
        {"cl_command", MessageBuilder{}.string("emote").string("happy"),
         "name=\"emote\" arguments=\"happy\""},
        {"cl_command", MessageBuilder{}.string("Timeout").string("code"),
         "name=\"Timeout\" arguments=\"code\"*"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        DecodedFields fields;
        const Bytes body = row.body.bytes();
        decode_fields(message_named(row.name), body, fields);
        CHECK(test::to_text(fields) == row.text);
    }
}

TEST_CASE("what the program acts on in 0.7 is read as its row says") {
    const auto body_of = [](const auto& row) {
        static Bytes wire;
        wire = test::hex_at(row, "bytes");
        return decode_message_header(wire, Dialect::seven)->body;
    };
    int seen = 0;
    for (const auto& row : test::seven_vectors("messages")) {
        const std::string_view name{row.at("name").as_string()};
        const auto& wanted = row.at("fields").as_object();
        if (name == "map_change") {
            const auto body = decode_map_change(body_of(row), Dialect::seven);
            REQUIRE(body);
            CHECK(body->name == text_at(wanted, "name"));
            CHECK(body->crc == wanted.at("crc").as_int64());
            CHECK(body->size == wanted.at("size").as_int64());
            CHECK(body->chunk_size == wanted.at("chunk_size").as_int64());
            CHECK(test::to_hex(body->sha256) == text_at(wanted, "sha256"));
            ++seen;
        } else if (name == "sv_client_info") {
            const auto body = decode_client_info(body_of(row));
            REQUIRE(body);
            CHECK(body->client_id == wanted.at("client_id").as_int64());
            CHECK(body->local == wanted.at("local").as_int64());
            CHECK(body->name == text_at(wanted, "name"));
            ++seen;
        } else if (name == "sv_client_drop") {
            const auto body = decode_client_drop(body_of(row));
            REQUIRE(body);
            CHECK(body->client_id == wanted.at("client_id").as_int64());
            ++seen;
        } else if (name == "input") {
            const auto body = decode_input(body_of(row));
            REQUIRE(body);
            CHECK(body->ack_tick == wanted.at("ack_tick").as_int64());
            ++seen;
        }
    }
    CHECK(seen >= 4);
    // The message may end before its hash, but not inside it.
    MessageBuilder change;
    change.string("dm1").number(1).number(2).number(8).number(1384);
    REQUIRE(decode_map_change(change.bytes(), Dialect::seven));
    CHECK(decode_map_change(change.bytes(), Dialect::seven)->sha256.empty());
    change.raw(Bytes(31));
    CHECK_FALSE(decode_map_change(change.bytes(), Dialect::seven));
    CHECK_FALSE(decode_client_info({}));
    CHECK_FALSE(decode_client_drop({}));
    const Bytes chunk(1384, std::byte{1});
    const auto data = decode_map_data(chunk, Dialect::seven);
    REQUIRE(data);
    CHECK_FALSE(data->numbered);
    CHECK(data->data.size() == 1384);
}

TEST_CASE("a line of a 0.7 server to everybody is found") {
    const auto line = [](int mode, int client, std::string_view text) {
        const Bytes body =
            MessageBuilder{}.number(mode).number(client).number(-1).string(text).bytes();
        return std::string{find_server_chat(body, Dialect::seven).value_or("none")};
    };
    CHECK(line(1, -1, "hello") == "hello");
    CHECK(line(1, 3, "hello") == "none");
    CHECK(line(3, -1, "hello") == "none");
    CHECK_FALSE(find_server_chat({}, Dialect::seven));
}

TEST_CASE("connless packets of 0.7 stand in the table as in the reference") {
    const auto& wanted = reference().at("connless_messages").as_array();
    const auto table = connless_table(Dialect::seven);
    REQUIRE(wanted.size() == table.size());
    for (const auto& value : wanted) {
        const auto& row = value.as_object();
        const auto* spec = find_connless(test::from_hex(text_at(row, "magic")), Dialect::seven);
        REQUIRE(spec != nullptr);
        CAPTURE(spec->name);
        CHECK(spec->magic == text_at(row, "ascii"));
        CHECK(spec->name == text_at(row, "name"));
        const auto& fields = row.at("fields").as_array();
        REQUIRE(spec->fields.size() == fields.size());
        for (std::size_t j = 0; j < fields.size(); ++j) {
            CHECK(spec->fields[j].name == text_at(fields[j].as_object(), "name"));
        }
    }
    CHECK(find_connless(test::from_hex("ffffffff69657874"), Dialect::seven) == nullptr); // DDNet's
}

TEST_CASE("server info of 0.7 lists its players, and tells its version") {
    PacketScratch scratch;
    DecodedFields fields;
    int seen = 0;
    for (const auto& row : test::seven_vectors("packets")) {
        if (row.at("kind").as_string() != "connless") {
            continue;
        }
        const Bytes datagram = test::hex_at(row, "bytes");
        const auto packet = decode_packet(datagram, Protocol::unknown, scratch);
        REQUIRE(packet);
        const auto* const spec = find_connless(packet->payload, Dialect::seven);
        REQUIRE(spec != nullptr);
        decode_connless(*spec, *packet, fields);
        CHECK_FALSE(fields.error);
        CHECK(fields.trailing.empty());
        CHECK(fields.values.front().name == "token");
        if (spec->name == "info") {
            CHECK(find_server_version(packet->payload, Dialect::seven) == "0.7.5");
            CHECK(std::ranges::any_of(
                fields.values, [](const FieldValue& value) { return value.name == "kind"; }));
            ++seen;
        }
        for (std::size_t size = 8; size < packet->payload.size(); ++size) {
            Packet cut = *packet;
            cut.payload = packet->payload.first(size);
            decode_connless(*spec, cut, fields);
            CHECK(test::is_balanced(fields));
        }
    }
    CHECK(seen == 1);
    CHECK_FALSE(find_server_version({}, Dialect::seven));
}

} // namespace tw::wire
