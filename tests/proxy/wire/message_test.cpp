// Covers: proxy/wire/secrets.cpp
// Covers: proxy/wire/message.cpp
#include "proxy/wire/message.h"
#include "proxy/wire/secrets.h"
#include "snapshot/names.h"
#include "tests/proxy/wire/fields_text.h"
#include "tests/support/message_builder.h"

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

namespace tw::wire::test {
namespace {

namespace json = boost::json;
using snapshot::Dialect;
using tw::test::MessageBuilder;

const MessageSpec& message_named(std::string_view name, Dialect dialect = Dialect::six) {
    const auto table = message_table();
    const auto found = std::ranges::find_if(table, [&](const MessageSpec& spec) {
        return spec.name == name && spec.dialect == dialect;
    });
    REQUIRE(found != table.end());
    return *found;
}

std::string decode_fields_text(std::string_view name, const MessageBuilder& body,
                               Dialect dialect = Dialect::six) {
    DecodedFields fields;
    // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): nothing lies behind a copy
    const Bytes exact{body.bytes()};
    decode_fields(message_named(name, dialect), exact, fields);
    CHECK(is_balanced(fields));
    return to_text(fields);
}

MessageBuilder body_of_numbers(std::initializer_list<std::int32_t> values) {
    MessageBuilder out;
    for (const auto value : values) {
        out.number(value);
    }
    return out;
}

json::value json_value_of(const FieldValue& value) {
    switch (value.kind) {
    case FieldValue::Kind::integer:
    case FieldValue::Kind::boolean:
        return value.integer;
    case FieldValue::Kind::string:
        return json::string{reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size()};
    default:
        return json::string{to_hex(value.bytes)};
    }
}

/// Returns the fields in the form of the vectors: arrays as lists, objects as lists of their ints.
json::object json_fields_of(const DecodedFields& fields) {
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
            list->push_back(json_value_of(value));
        } else {
            out[value.name] = json_value_of(value);
        }
    }
    return out;
}

bool is_decoded_cleanly(const DecodedFields& fields) {
    return !fields.error && fields.trailing.empty() &&
           std::ranges::none_of(fields.values, &FieldValue::out_of_range);
}

/// Whether is_certainly_valid() knows all types of the message's fields.
bool has_plain_fields(const MessageSpec& spec) {
    return std::ranges::all_of(spec.fields, [](const MessageField& field) {
        return field.type <= FieldType::raw || field.object == "player_input";
    });
}

} // namespace

TEST_CASE("messages decode as the reference encoded them") {
    DecodedFields fields;
    for (const Dialect dialect : {Dialect::six, Dialect::seven}) {
        for (const auto& row :
             dialect == Dialect::six ? vectors("messages") : seven_vectors("messages")) {
            const auto wire = hex_at(row, "bytes");
            const std::string name{row.at("name").as_string()};
            CAPTURE(name);
            const auto head = decode_message_header(wire, dialect).value();
            REQUIRE(head.spec != nullptr);
            CHECK(head.spec->name == name);
            CHECK(head.system == head.spec->system);
            decode_fields(*head.spec, head.body, fields);
            CAPTURE(to_text(fields));
            CHECK((is_certainly_valid(*head.spec, head.body) || dialect == Dialect::seven ||
                   !has_plain_fields(*head.spec)));
            CHECK(is_decoded_cleanly(fields));
            CHECK(is_balanced(fields));
            json::object got = json_fields_of(fields);
            const json::object& wanted = row.at("fields").as_object();
            if (dialect == Dialect::six && name == "sv_tune_params") {
                CHECK(got.size() == 33);
                continue;
            }
            if (got.contains("laser_damage")) { // one more int, which the vectors do not have
                CHECK(got.at("laser_damage") == wanted.at("player_collision"));
                continue;
            }
            for (const auto& pair : wanted) {
                const std::string key{pair.key()};
                CAPTURE(key);
                REQUIRE(got.contains(key));
                if (name != "input" || key != "data") { // the ints of an object have names
                    CHECK(json::serialize(got.at(key)) == json::serialize(pair.value()));
                }
                got.erase(key);
            }
            if (name == "input") {
                CHECK(std::ranges::count(fields.values, FieldValue::Kind::integer,
                                         &FieldValue::kind) >= 13);
            } else if (name != "sv_tune_params") { // DDNet's own fields come after the vectors'
                got.erase("more");
                CHECK(json::serialize(got) == "{}");
            }
        }
    }
}

TEST_CASE("a message cut at any byte is an error inside it, never more values than it had") {
    DecodedFields whole;
    DecodedFields fields;
    for (const Dialect dialect : {Dialect::six, Dialect::seven}) {
        for (const auto& row :
             dialect == Dialect::six ? vectors("messages") : seven_vectors("messages")) {
            const auto wire = hex_at(row, "bytes");
            CAPTURE(row.at("name").as_string());
            const auto full = decode_message_header(wire, dialect).value();
            decode_fields(*full.spec, full.body, whole);
            for (std::size_t size = 0; size < wire.size(); ++size) {
                CAPTURE(size);
                const auto cut = prefix(wire, size);
                const auto head = decode_message_header(cut, dialect);
                CHECK(head.has_value() == (size >= full.header_size));
                if (!head) {
                    CHECK(head.error().code == WireErrc::message_id_invalid);
                    continue;
                }
                decode_fields(*head->spec, head->body, fields);
                CHECK(is_balanced(fields));
                CHECK((is_decoded_cleanly(fields) || !is_certainly_valid(*head->spec, head->body)));
                CHECK(fields.values.size() <= whole.values.size());
                CHECK(fields.trailing.empty());
                if (fields.error) {
                    CHECK(fields.error->offset <= head->body.size());
                } else if (dialect == Dialect::six) {
                    // Only optional fields may be missing without an error. The last field may have
                    // a default.
                    const auto& declared = full.spec->fields;
                    REQUIRE_FALSE(declared.empty());
                    CHECK(declared[std::min(fields.values.size(), declared.size() - 1)].optional);
                }
            }
        }
    }
}

TEST_CASE("message headers are decoded") {
    struct Row {
        std::string_view name, hex;
        bool valid, system;
        int number;
        std::size_t header_size;
        std::string_view message;
    };

    const Row rows[] = {
        {"classic system", "2d", true, true, 22, 1, "ping"},
        {"classic game", "2440", true, false, 18, 1, "cl_set_team"},
        {"overlong id", "ad00", true, true, 22, 2, "ping"},
        {"unknown game id", "8001", true, false, 32, 2, ""},
        {"unknown system id", "b701", true, true, 59, 2, ""},
        {"largest id", "bfff0f", true, true, 65535, 3, ""},
        {"id 65536", "808010", false, false, 0, 0, ""},
        {"negative", "40", false, false, 0, 0, ""},
        {"most negative", "ffffffff0f", false, false, 0, 0, ""},
        {"empty", "", false, false, 0, 0, ""},
        {"cut varint", "80", false, false, 0, 0, ""},
        {"UUID", "015f4d5db739473711b04e07a1ff23c970", true, true, 0, 17, "reconnect"},
        {"UUID of a game message, system bit", "01da46b81da06030c39abbdd2945e8edb400", true, true,
         0, 17, "sv_map_info"},
        {"UUID of a system message, game bit", "005f4d5db739473711b04e07a1ff23c970", true, false, 0,
         17, "reconnect"},
        {"unknown UUID", "00e95d6aa495d43869bb5f7f42ed4d6420aa", true, false, 0, 17, ""},
        {"UUID cut", "015f4d5db739473711b04e07a1ff23c9", false, false, 0, 0, ""},
        {"no UUID", "00", false, false, 0, 0, ""},
    };
    for (const auto& row : rows) {
        CAPTURE(row.name);
        const auto wire = from_hex(row.hex);
        const auto head = decode_message_header(wire, Dialect::six);
        REQUIRE(head.has_value() == row.valid);
        if (!head) {
            CHECK(head.error().code == WireErrc::message_id_invalid);
            continue;
        }
        CHECK(head->system == row.system);
        CHECK(head->number == row.number);
        CHECK(head->uuid.has_value() == (row.number == 0));
        CHECK(head->header_size == row.header_size);
        CHECK(head->body.size() == wire.size() - row.header_size);
        CHECK((head->spec == nullptr ? std::string_view{} : head->spec->name) == row.message);
    }
}

TEST_CASE("unusual values are kept, and invalid ones are errors with an offset") {
    const auto input = body_of_numbers({1000, 1010, 40, -1, 200, -50, 0, 1, 0, 1, 2, 0, 0});

    struct Row {
        std::string_view name, message;
        MessageBuilder body;
        std::string_view text;
    };

    const Row rows[] = {
        {"missing int", "map_change", MessageBuilder{}.string("ctf1").number(5),
         "name=\"ctf1\" crc=5 truncated@6"},
        {"no string at the end", "sv_motd", {}, "string_unterminated@0"},
        {"string without NUL", "sv_motd", MessageBuilder{}.text("abc"), "string_unterminated@0"},
        {"empty string", "sv_motd", MessageBuilder{}.string(""), "message=\"\""},
        {"bytes behind the last field", "cl_set_team", body_of_numbers({-1, 1, 2}), "team=-1 +2"},
        {"surplus of a message without fields", "ping", body_of_numbers({1}), " +1"},
        {"optional string left out", "info", MessageBuilder{}.string("0.6"), "version=\"0.6\""},
        {"optional string without NUL", "info", MessageBuilder{}.string("0.6").text("x"),
         "version=\"0.6\" string_unterminated@4"},
        {"optional int left out", "rcon_auth_status", body_of_numbers({1}), "authed=1"},
        {"default of a missing int", "sv_race_finish", body_of_numbers({1, 2, 3, 1}),
         "client_id=1 time=2 diff=3 record_personal=yes record_server=no"},
        {"a boolean of 7", "cl_say", MessageBuilder{}.number(7).string("x"),
         "team=7! message=\"x\""},
        {"raw longer than the message", "map_data", body_of_numbers({0, 1, 2, 3, 4}),
         "last=0 crc=1 chunk=2 size=3 length_out_of_range@4"},
        {"raw of negative length", "snap_single", body_of_numbers({1, 1, 0, -1}),
         "tick=1 delta_tick=1 crc=0 part_size=-1 length_out_of_range@4"},
        {"raw of the largest length", "snap_single", body_of_numbers({1, 1, 0, INT32_MAX}),
         "tick=1 delta_tick=1 crc=0 part_size=2147483647 length_out_of_range@8"},
        {"empty raw", "snap_single", body_of_numbers({1, 1, 0, 0}),
         "tick=1 delta_tick=1 crc=0 part_size=0 data=x"},
        {"UUID cut", "what_is", MessageBuilder{}.text("0123456789abcde"), "length_out_of_range@0"},
        {"no teams", "sv_teams_state", {}, "teams[ ]"},
        {"a team that cannot be", "sv_teams_state", body_of_numbers({0, 128, 129}),
         "teams[ 0 128 129! ]"},
        {"teams cut", "sv_teams_state", MessageBuilder{}.number(1).byte(0x80),
         "teams[ 1 ] truncated@1"},
        {"maps", "maplist_add", MessageBuilder{}.string("dm1").string(""),
         "names[ \"dm1\"* \"\"* ]"},
        {"map without NUL", "maplist_add", MessageBuilder{}.string("dm1").text("dm"),
         "names[ \"dm1\"* ] string_unterminated@4"},
        {"no tunings", "sv_tune_params", {}, ""},
        {"two tunings", "sv_tune_params", body_of_numbers({1, 2}),
         "ground_control_speed=1 ground_control_accel=2"},
        {"no projectiles", "sv_extra_projectile", body_of_numbers({0}), "num=0 projectiles[ ]"},
        {"fewer than no projectiles", "sv_extra_projectile", body_of_numbers({-1}),
         "num=-1 length_out_of_range@1"},
        {"more projectiles than data", "sv_extra_projectile", body_of_numbers({1, 1, 2, 3, 4, 5}),
         "num=1 length_out_of_range@1"},
        {"2^31 projectiles", "sv_extra_projectile", body_of_numbers({INT32_MAX, 1, 2, 3, 4, 5}),
         "num=2147483647 length_out_of_range@5"},
    };
    for (const auto& row : rows) {
        CAPTURE(row.name);
        CHECK(decode_fields_text(row.message, row.body) == row.text);
    }
    const Row of_seven[] = {
        {"fewer options than none", "sv_vote_option_list_add", body_of_numbers({-1}),
         "num_options=-1 length_out_of_range@1"},
        {"more options than data", "sv_vote_option_list_add",
         MessageBuilder{}.number(INT32_MAX).string("a"),
         "num_options=2147483647 length_out_of_range@5"},
        {"options cut", "sv_vote_option_list_add", MessageBuilder{}.number(2).string("a"),
         "num_options=2 descriptions[ \"a\" ] string_unterminated@3"},
        {"parts of a skin cut", "cl_skin_change", MessageBuilder{}.string("aaaa").string("bbbb"),
         "skin_part_names[ \"aaaa\" \"bbbb\" ] string_unterminated@10"},
        {"input of negative length", "input", body_of_numbers({1, 2, -4}),
         "ack_tick=1 intended_tick=2 size=-4 length_out_of_range@3"},
    };
    for (const auto& row : of_seven) {
        CAPTURE(row.name);
        CHECK(decode_fields_text(row.message, row.body, Dialect::seven) == row.text);
    }
}

TEST_CASE("inputs are shown as player_input, however many ints there are") {
    const std::string head = "ack_tick=1 intended_tick=2 size=";
    CHECK(
        decode_fields_text("input", body_of_numbers({1, 2, 40, -1, 2, 3, 0, 5, 0, 7, 8, 9, 10})) ==
        head + "40 data{ direction=-1 target_x=2 target_y=3 jump=0 fire=5 hook=0 player_flags=7 "
               "wanted_weapon=8 next_weapon=9 prev_weapon=10 }");
    CHECK(decode_fields_text("input",
                             body_of_numbers({1, 2, 48, -1, 2, 3, 0, 5, 0, 7, 8, 9, 10, 11, 12})) ==
          head + "48 data{ direction=-1 target_x=2 target_y=3 jump=0 fire=5 hook=0 player_flags=7 "
                 "wanted_weapon=8 next_weapon=9 prev_weapon=10 more[ 11 12 ] }");
    CHECK(decode_fields_text("input", body_of_numbers({1, 2, 8, -1, 2})) ==
          head + "8 data{ direction=-1 target_x=2 }");
    CHECK(decode_fields_text("input", body_of_numbers({1, 2, 7, -1, 2})) ==
          head + "7 data{ direction=-1 } +1");
    CHECK(decode_fields_text("input", body_of_numbers({1, 2, 0})) == head + "0 data{ }");
    CHECK(decode_fields_text("input", body_of_numbers({1, 2, -4})) ==
          head + "-4 length_out_of_range@3");
    CHECK(decode_fields_text("input", body_of_numbers({1, 2, 40, -1})) ==
          head + "40 data{ direction=-1 } truncated@4");
    CHECK(decode_fields_text("input", body_of_numbers({1, 2, INT32_MAX, -1})) ==
          head + "2147483647 data{ direction=-1 } truncated@8");
}

TEST_CASE("projectiles are shown as objects, tunings beyond the known ones as more") {
    CHECK(decode_fields_text("sv_extra_projectile",
                             body_of_numbers({2, 1, 2, 3, 4, 1, 6, 7, 8, 9, 10, 2, 12})) ==
          "num=2 projectiles[ { x=1 y=2 vel_x=3 vel_y=4 type=1 start_tick=6 } { x=7 y=8 vel_x=9 "
          "vel_y=10 type=2 start_tick=12 } ]");
    MessageBuilder body;
    for (std::int32_t i = 0; i < 49; ++i) {
        body.number(i);
    }
    const auto text = decode_fields_text("sv_tune_params", body);
    const std::string end = "ground_elasticity_x=45 ground_elasticity_y=46 more[ 47 48 ]";
    CHECK(text.substr(text.size() - end.size()) == end);
}

TEST_CASE("DDNet's tunings of 0.7 are named, with the laser's damage where it was not left out") {
    struct Row {
        std::int32_t ints;
        std::string_view thirtieth;
        std::string_view last;
    };

    const Row rows[] = {
        {32, "player_collision", "player_hooking"}, // the parameters of vanilla
        {44, "player_collision", "hammer_hit_fire_delay"},
        {45, "laser_damage", "hammer_hit_fire_delay"}, // the parameters of DDNet 16.4
        {46, "player_collision", "ground_elasticity_y"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.ints);
        MessageBuilder body;
        for (std::int32_t i = 0; i < row.ints; ++i) {
            body.number(i * 1000); // takes one or more bytes
        }
        DecodedFields fields;
        decode_fields(message_named("sv_tune_params", Dialect::seven), body.bytes(), fields);
        CHECK_FALSE(fields.error);
        CHECK(fields.trailing.empty());
        REQUIRE(fields.values.size() == static_cast<std::size_t>(row.ints));
        CHECK(fields.values[30].name == row.thirtieth);
        CHECK(fields.values[30].integer == 30'000);
        CHECK(fields.values.back().name == row.last);
        CHECK(fields.values.back().integer == (row.ints - 1) * 1000);
    }
}

TEST_CASE("values know where they stood and what their ints are called") {
    DecodedFields fields;
    const auto body = body_of_numbers({300, 2, -1, 0});
    decode_fields(message_named("sv_kill_msg"), body.bytes(), fields);
    REQUIRE(fields.values.size() == 4);
    CHECK(fields.values[0].out_of_range);
    CHECK(fields.values[1].offset == 2);
    CHECK(fields.values[3].offset == 4);
    REQUIRE(fields.values[2].names != nullptr);
    CHECK(fields.values[2].names->name == "kill_weapon");
    CHECK(fields.values[3].names == nullptr);
}

TEST_CASE("names of values belong to one message") {
    DecodedFields fields;
    const auto chat = body_of_numbers({0, -1});
    decode_fields(message_named("sv_chat"), chat.bytes(), fields);
    REQUIRE(fields.values.size() == 2);
    REQUIRE(fields.values[0].names != nullptr);
    CHECK(fields.values[0].names->find(0) == "all");
    CHECK(fields.values[0].names->find(1) == "team");
    CHECK(fields.values[0].names->find(2) == "whisper_sent");
    CHECK(fields.values[0].names->find(3) == "whisper_received");
    const auto rcon = body_of_numbers({1});
    decode_fields(message_named("rcon_type"), rcon.bytes(), fields);
    REQUIRE(fields.values.size() == 1);
    REQUIRE(fields.values[0].names != nullptr);
    CHECK(fields.values[0].names->flags);
    CHECK(fields.values[0].names->values.front().name == "username_required");
}

TEST_CASE("secrets are marked by the table") {
    struct Row {
        std::string_view message;
        MessageBuilder body;
        std::string_view text;
    };

    const Row rows[] = {
        {"info", MessageBuilder{}.string("0.6").string("pw"), "version=\"0.6\" password=\"pw\"*"},
        {"rcon_auth", MessageBuilder{}.string("me").string("pw").number(1),
         "name=\"me\"* password=\"pw\"* request_commands=1"},
        {"rcon_cmd", MessageBuilder{}.string("sv_rcon_password x"),
         "command=\"sv_rcon_password x\"*"},
        {"rcon_line", MessageBuilder{}.string("x"), "line=\"x\"*"},
        {"rcon_cmd_add", MessageBuilder{}.string("say").string("?").string("r"),
         "name=\"say\" help=\"?\"* params=\"r\"*"},
        {"rcon_cmd_rem", MessageBuilder{}.string("say"), "name=\"say\""},
        {"rcon_cmd_group_start", MessageBuilder{}.number(300), "count=300"},
        {"maplist_add", MessageBuilder{}.string("a").string("b"), "names[ \"a\"* \"b\"* ]"},
        {"sv_moderator_alert", MessageBuilder{}.string("x"), "message=\"x\"*"},
        {"sv_server_alert", MessageBuilder{}.string("x"), "message=\"x\""},
        {"sv_save_code",
         MessageBuilder{}
             .number(1)
             .string("")
             .string("me")
             .string("ger")
             .string("a b c")
             .string("code")
             .string("me"),
         "state=1 error=\"\" save_requester=\"me\" server_name=\"ger\" "
         "generated_code=\"a b c\"* code=\"code\"* team_members=\"me\""},
        {"sv_chat", MessageBuilder{}.number(1).number(3).string("team"),
         "team=1 client_id=3 message=\"team\""},
        {"sv_chat", MessageBuilder{}.number(2).number(3).string("psst"),
         "team=2 client_id=3 message=\"psst\"*"},
        {"sv_chat", MessageBuilder{}.number(3).number(3).string("psst"),
         "team=3 client_id=3 message=\"psst\"*"},
        {"sv_chat", MessageBuilder{}.number(0).number(-1).string("Use '/load a' to continue"),
         "team=0 client_id=-1 message=\"Use '/load a' to continue\"*"},
        {"sv_chat", MessageBuilder{}.number(0).number(-1).string("[\u2192 you] psst"),
         "team=0 client_id=-1 message=\"[\u2192 you] psst\"*"},
        {"sv_chat", MessageBuilder{}.number(0).number(-1).string("[\u2190 me] psst"),
         "team=0 client_id=-1 message=\"[\u2190 me] psst\"*"},
        {"sv_chat", MessageBuilder{}.number(0).number(-1).string(" \u2192 you: psst"),
         "team=0 client_id=-1 message=\" \u2192 you: psst\"*"},
        {"sv_chat", MessageBuilder{}.number(0).number(-1).string("\u2190 me: psst"),
         "team=0 client_id=-1 message=\"\u2190 me: psst\"*"},
        {"sv_chat", MessageBuilder{}.number(0).number(-1).string("'\u2192 x' entered the game"),
         "team=0 client_id=-1 message=\"'\u2192 x' entered the game\""},
        {"sv_chat", MessageBuilder{}.number(0).number(4).string("[\u2192 all] look"),
         "team=0 client_id=4 message=\"[\u2192 all] look\""},
        {"sv_chat", MessageBuilder{}.number(0).number(4).string("what is /load?"),
         "team=0 client_id=4 message=\"what is /load?\""},
        {"cl_say", MessageBuilder{}.number(0).string("/timeout abc"),
         "team=no message=\"/timeout abc\"*"},
        {"cl_say", MessageBuilder{}.number(0).string("/pause"), "team=no message=\"/pause\""},
    };
    for (const auto& row : rows) {
        CHECK(decode_fields_text(row.message, row.body) == row.text);
    }
    const auto chat = [](int mode, std::string_view text) {
        return MessageBuilder{}.number(mode).number(-1).number(-1).string(text);
    };
    const auto say = [](int mode, std::string_view text) {
        return MessageBuilder{}.number(mode).number(-1).string(text);
    };
    const Row of_seven[] = {
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
    for (const auto& row : of_seven) {
        CHECK(decode_fields_text(row.message, row.body, Dialect::seven) == row.text);
    }
}

TEST_CASE("the remote console's fields are secret except command names and numbers") {
    constexpr std::string_view kShownTexts[] = {"rcon_cmd_add.name", "rcon_cmd_rem.name"};
    int secret = 0;
    for (const auto& spec : message_table()) {
        CAPTURE(spec.name);
        const bool console = spec.name.starts_with("rcon_") || spec.name.starts_with("maplist_");
        CHECK((!console || spec.secrecy == Secrecy::secret));
        secret += spec.secrecy == Secrecy::secret ? 1 : 0;
        for (const auto& field : spec.fields) {
            const bool text = field.type == FieldType::string || field.element == FieldType::string;
            const std::string path = std::string{spec.name} + '.' + std::string{field.name};
            const bool listed = std::find(std::begin(kShownTexts), std::end(kShownTexts), path) !=
                                std::end(kShownTexts);
            CAPTURE(path);
            if (spec.secrecy == Secrecy::secret) {
                CHECK(field.always_shown == (!text || listed));
            } else {
                CHECK_FALSE(field.always_shown);
            }
        }
    }
    CHECK(secret == 26); // 11 of the messages are of 0.7
}

TEST_CASE("random bytes are decoded within limits") {
    std::mt19937 random{6};
    DecodedFields fields;
    for (int round = 0; round < 200; ++round) {
        Bytes body(random() % 200);
        for (auto& byte : body) {
            // Small values are more frequent, so that lengths and counts are sometimes valid.
            const auto value = random();
            byte = static_cast<std::byte>((value & 0x100U) != 0 ? value & 0x0FU : value & 0xFFU);
        }
        for (const auto& spec : message_table()) {
            decode_fields(spec, body, fields);
            CHECK(is_balanced(fields));
            CHECK(fields.values.size() <= 2 * body.size() + 16);
            if (!fields.error && !fields.trailing.empty()) {
                CHECK(fields.trailing.data() + fields.trailing.size() == body.data() + body.size());
            }
            CHECK((is_decoded_cleanly(fields) || !is_certainly_valid(spec, body)));
        }
    }
}

TEST_CASE("decoding again needs no more memory") {
    DecodedFields fields;
    const auto body = body_of_numbers({1, 2, 40, -1, 2, 3, 0, 5, 0, 7, 8, 9, 10});
    const auto& spec = message_named("input");
    decode_fields(spec, body.bytes(), fields);
    const auto* const where = fields.values.data();
    const auto room = fields.values.capacity();
    for (int i = 0; i < 10; ++i) {
        decode_fields(spec, body.bytes(), fields);
    }
    CHECK(fields.values.data() == where);
    CHECK(fields.values.capacity() == room);
}

} // namespace tw::wire::test

namespace tw::wire {
namespace {

using tw::test::MessageBuilder;

constexpr snapshot::names::Names kMood("mood", 0, "calm", "angry");
constexpr std::array kTileFields{
    MessageField{.name = "x"},
    MessageField{.name = "on", .type = FieldType::boolean, .min = 0, .max = 1},
    MessageField{.name = "mood", .names = &kMood},
    MessageField{
        .name = "why", .type = FieldType::string, .optional = true, .secrecy = Secrecy::secret}};

MessageSpec make_tile_message() {
    MessageSpec message{.direction = MessageDirection::s2c, .name = "tile", .fields = kTileFields};
    message.uuid[0] = 0xab;
    return message;
}

MessageBuilder begin_message(const MessageSpec& message) {
    return MessageBuilder{
        MessageSpec{.number = message.number, .system = message.system, .uuid = message.uuid}};
}

} // namespace

TEST_CASE("a mod's message is decoded as it was described") {
    MessageSet set;
    REQUIRE(set.add(make_tile_message()));
    const auto bytes =
        begin_message(make_tile_message()).number(7).number(1).number(1).string("so").bytes();
    const auto unknown = decode_message_header(bytes, snapshot::Dialect::six).value();
    CHECK(unknown.spec == nullptr);
    for (const auto dialect : {snapshot::Dialect::six, snapshot::Dialect::seven}) {
        const auto head = decode_message_header(bytes, dialect, set).value();
        REQUIRE(head.spec == set.custom().data());
        DecodedFields fields;
        decode_fields(*head.spec, head.body, fields);
        REQUIRE(fields.values.size() == 4);
        CHECK(fields.values[0].name == "x");
        CHECK(fields.values[0].integer == 7);
        CHECK(fields.values[1].kind == FieldValue::Kind::boolean);
        CHECK(fields.values[2].names->find(1) == "angry");
        CHECK(fields.values[3].secrecy == Secrecy::secret);
        CHECK_FALSE(fields.error.has_value());
        CHECK(is_processed_by_receivers(*head.spec, false, Direction::s2c, false));
        CHECK_FALSE(is_processed_by_receivers(*head.spec, false, Direction::c2s, false));
    }
    const auto odd = begin_message(make_tile_message()).number(7).number(2).number(1).bytes();
    CHECK_FALSE(is_certainly_valid(set.custom()[0],
                                   decode_message_header(odd, snapshot::Dialect::six, set)->body));
}

TEST_CASE("a mod may reuse a message number unless twscope interprets that message") {
    struct Row {
        std::string_view name;
        std::uint16_t number;
        bool system;
        snapshot::Dialect dialect;
        bool taken;
    };

    const Row rows[] = {
        {"an unused number", 60, false, snapshot::Dialect::six, true},
        {"beyond all numbers", 65535, true, snapshot::Dialect::seven, true},
        {"one that is only named", 26, false, snapshot::Dialect::six, true},
        {"chat", 3, false, snapshot::Dialect::six, false},
        {"of the system", 9, true, snapshot::Dialect::six, false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        MessageSet set;
        MessageSpec message{.number = row.number, .system = row.system, .name = "own"};
        message.dialect = row.dialect;
        CHECK(set.add(message) == row.taken);
        CHECK_FALSE(set.add(message)); // the same message cannot be added twice
        const auto head =
            decode_message_header(begin_message(message).bytes(), row.dialect, set).value();
        CHECK((head.spec != nullptr && head.spec->name == "own") == row.taken);
    }
}

TEST_CASE("a set of messages has a limit") {
    MessageSet set;
    MessageSpec message{.number = 100, .name = "own"};
    while (set.add(message)) {
        ++message.number;
    }
    CHECK(set.custom().size() == MessageSet::kMaxCustom);
    CHECK(MessageSet::standard().custom().empty());
}

} // namespace tw::wire

namespace tw::test {

TEST_CASE("encoding a message reverses decoding it") {
    const auto* const chat = wire::find_message(false, 3, snapshot::Dialect::six);
    const auto* const game = wire::find_message(false, 21, snapshot::Dialect::seven);
    REQUIRE(chat != nullptr);
    REQUIRE(game != nullptr);
    const auto table = wire::message_table();
    const auto race = std::ranges::find_if(table, [](const wire::MessageSpec& spec) {
        return spec.name == "sv_race_finish" && spec.number == 0;
    });
    REQUIRE(race != table.end());

    struct Row {
        std::string_view name;
        snapshot::Dialect dialect;
        std::vector<std::byte> bytes;
    };

    const Row rows[] = {
        {"numbers and a text", snapshot::Dialect::six,
         MessageBuilder{*chat}.number(0).number(-1).string("hello").bytes()},
        {"an empty text", snapshot::Dialect::six,
         MessageBuilder{*chat}.number(0).number(127).string("").bytes()},
        {"a UUID", snapshot::Dialect::six,
         MessageBuilder{*race}.number(5).number(1234).number(-7).number(1).number(0).bytes()},
        {"an array to the end", snapshot::Dialect::seven,
         MessageBuilder{*game}.number(9).number(1).number(2).number(70000).bytes()},
        {"an empty array", snapshot::Dialect::seven, MessageBuilder{*game}.number(0).bytes()},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const auto head = wire::decode_message_header(row.bytes, row.dialect).value();
        REQUIRE(head.spec != nullptr);
        wire::DecodedFields fields;
        wire::decode_fields(*head.spec, head.body, fields);
        CHECK_FALSE(fields.error);
        CHECK(wire::encode_message(*head.spec, fields.values) == row.bytes);
    }
}

} // namespace tw::test
