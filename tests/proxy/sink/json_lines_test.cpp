// Each segment begins with the lines that are needed to read it alone.
// Covers: proxy/sink/json_buffer.cpp, proxy/sink/json_items.cpp
#include "proxy/sink/json_lines.h"
#include "tests/proxy/sink/sample_records.h"
#include "tests/support/json_records.h"
#include "tests/support/session_script.h"
#include "tests/support/text.h"

#include <doctest/doctest.h>

using namespace tw;
using test::contains;
using test::keys_of;
using test::write_json;

namespace {

/// A message with one string field.
boost::json::value message_with_text(std::string_view text, wire::Secrecy secrecy,
                                     const sink::JsonOptions& options = {}) {
    const wire::FieldValue value{.kind = wire::FieldValue::Kind::string,
                                 .secrecy = secrecy,
                                 .name = "text",
                                 .bytes = test::as_bytes(text)};
    const record::MessageRecord message{.name = "m", .values = {&value, 1}};
    return write_json(&message, options).at("fields").at("text");
}

/// A session without tokens, and the JSON lines of its records.
struct PlainSession {
    explicit PlainSession(const sink::JsonOptions& options = {}) : json{options, output} {
        session.open_session(0);
        pass_datagram(wire::Direction::c2s,
                      wire::encode_control({.kind = wire::ControlKind::connect}));
        pass_datagram(wire::Direction::s2c,
                      wire::encode_control({.kind = wire::ControlKind::connectaccept}));
    }

    void pass_datagram(wire::Direction direction, const test::Bytes& datagram) {
        session.on_datagram(0, direction, datagram, *workspace);
        json.flush();
    }

    sink::TextOutput output;
    sink::JsonLines json;
    test::FakeMaps maps;
    std::unique_ptr<inspect::DecodeBuffers> workspace = std::make_unique<inspect::DecodeBuffers>();
    inspect::Session session{1, "client", "server", {}, maps, json};
};

/// A script, and the JSON lines of its records.
struct JsonScript {
    sink::TextOutput output;
    sink::JsonLines json{{}, output};
    test::SessionScript script;

    explicit JsonScript(inspect::Options options = {}) : script{std::move(options), json} {}

    /// Returns the fields of a message of the client, which becomes one record.
    boost::json::value fields_of(const test::MessageBuilder& message) {
        json.flush();
        output.text.clear();
        script.send(wire::Direction::c2s, message);
        json.flush();
        const auto records = test::parse_lines(output.text);
        REQUIRE(records.size() == 1);
        return records.front().at("fields");
    }
};

} // namespace

TEST_CASE("every record begins with the common keys") {
    const test::SampleRecords sample;
    record::SummaryRecord summary = sample.summary;
    summary.head = sample.head;
    record::ImpairmentRecord impairment = sample.impairment;
    impairment.head = sample.head;

    struct Row {
        record::Record record;
        std::string keys; ///< the keys after the common ones
    };

    const Row rows[] = {
        {&sample.session, "event client server protocol reason "},
        {&sample.message, "name system vital seq size fields names "},
        {&sample.unknown, "name system vital size id raw "},
        {&sample.unknown_uuid, "name system vital size uuid raw "},
        {&sample.control, "name layer size fields "},
        {&sample.connless, "server_name name layer size fields "},
        {&sample.map, "name crc size sha256 source width height again "},
        {&sample.snapshot, "tick delta_tick crc_wanted crc_got ok num_items bytes parts full items "
                           "removed "},
        {&sample.finding, "id severity tick delta_tick offset part item field crc_wanted crc_got "
                          "since_tick lost value limit expected confirmed ddnet_code name what "
                          "detail hex at other_session left_out "},
        {&summary, "c2s s2c snapshots ack_lag_ticks input_margin_ms map_changes gap_lost findings "
                   "impaired worlds "},
        {&impairment, "settings seed c2s s2c "},
    };
    for (const Row& row : rows) {
        const auto line = write_json(row.record);
        CAPTURE(std::string{line.at("type").as_string()});
        CHECK(keys_of(line) == "v t type session dir " + row.keys);
        CHECK(line.at("v").as_int64() == 1);
        CHECK(line.at("t").as_string() == "2026-01-01T00:00:00.123456Z");
        CHECK(line.at("session").as_int64() == 3);
        CHECK(line.at("dir").as_string() == "s2c");
    }
}

TEST_CASE("a world names its map, once that is known") {
    struct Row {
        std::string_view name;
        std::optional<std::string_view> announced; ///< nullopt: no map is known
        boost::json::value expected;               ///< null: the key is absent
    };

    const Row rows[] = {
        {"no map is known", std::nullopt, nullptr},
        {"a map without a name, of a session that another process had", "", nullptr},
        {"a name", "Sunny Side Up", "Sunny Side Up"},
        {"a hostile name", "\"}\n\xff", "\"}\n\xef\xbf\xbd"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const record::MapRecord map{.name = row.announced.value_or("")};
        const record::WorldRecord world{.server = "a:1", .map = row.announced ? &map : nullptr};
        const auto line = write_json(&world);
        const boost::json::value* const found = line.as_object().if_contains("map");
        CHECK((found == nullptr ? boost::json::value{} : *found) == row.expected);
    }
}

TEST_CASE("the summary of a run counts its sessions") {
    const test::SampleRecords sample;
    const auto line = write_json(&sample.summary);
    CHECK(line.at("session").as_int64() == 0);
    CHECK(line.as_object().contains("sessions"));
}

TEST_CASE("the possible causes of a finding are counted, and the likeliest are listed") {
    const test::SampleRecords sample;
    const std::array<record::CauseCandidate, 2> candidates{
        {{.item = {9, 2, "character"}, .field = "x", .value = 5, .expected = 4},
         {.item = {40, 7, {}}}}};
    record::FindingRecord finding = sample.finding;
    finding.candidates = record::CauseCandidateSummary{3, candidates};
    CHECK(write_json(&finding).at("candidates") ==
          boost::json::parse(
              R"({"count":3,"likeliest":[{"item":{"type":"character","type_id":9,"id":2},)"
              R"("field":"x","value":5,"expected":4},{"item":{"type":"","type_id":40,"id":7}}]})"));
}

TEST_CASE("values in records are unchanged") {
    const test::SampleRecords sample;
    const auto finding = write_json(&sample.finding);
    CHECK(finding.at("id").as_string() == "snapshot.crc_mismatch");
    CHECK(finding.at("severity").as_string() == "error");
    CHECK(finding.at("hex").as_string() == "dead");
    CHECK(keys_of(finding.at("item")) == "type type_id id ");
    CHECK(keys_of(finding.at("at")) == "x y tile game index front tele speedup switch tune ");
    const auto map = write_json(&sample.map);
    CHECK(map.at("crc").as_string() == "00ff12ab");
    CHECK(map.at("sha256").as_string().size() == 64);
    const auto snapshot = write_json(&sample.snapshot);
    const auto& character = snapshot.at("items").at(0);
    CHECK(character.at("type").as_string() == "character");
    CHECK(character.at("player").as_string() == "nameless tee");
    CHECK(character.at("at").at("tile") == boost::json::parse("[1,1]"));
    const auto& unknown = snapshot.at("items").at(5);
    CHECK(unknown.at("type").as_string().empty());
    CHECK(unknown.at("data") == boost::json::parse("[123,-5]"));
    const auto summary = write_json(&sample.summary);
    CHECK(summary.at("findings") == boost::json::parse(R"({"snapshot.crc_mismatch":1})"));
    CHECK(summary.at("snapshots").at("items").at("mean").to_number<double>() == 3.5);
    const auto connless = write_json(&sample.connless);
    CHECK(connless.at("fields").at("clients").at(1).at("name").as_string() == "bob");
    const auto input = write_json(&sample.input);
    CHECK(input.at("fields").at("data").at("more") == boost::json::parse("[11,12]"));
}

TEST_CASE("times are UTC with microseconds, also before 1970 and past the calendar") {
    struct Row {
        record::Timestamp time;
        std::string text;
    };

    const Row rows[] = {
        {0, "1970-01-01T00:00:00.000000Z"},
        {999'999'999, "1970-01-01T00:00:00.999999Z"},
        {1'700'000'000'000'001'000, "2023-11-14T22:13:20.000001Z"},
        {INT64_MAX, "2262-04-11T23:47:16.854775Z"},
        {-1, "1970-01-01T00:00:00.999999Z"},
        {INT64_MIN, "1970-01-01T00:00:00.145224Z"},
    };
    for (const Row& row : rows) {
        const record::SessionRecord record{.head = {.time = row.time}};
        CHECK(write_json(&record).at("t").as_string() == row.text);
    }
}

TEST_CASE("secrets are redacted unless asked for") {
    const test::SampleRecords sample;
    CHECK(write_json(&sample.input).at("fields").at("password").as_string() == "[redacted]");
    CHECK(
        write_json(&sample.input, {.show_secrets = true}).at("fields").at("password").as_string() ==
        "hunter2");
    CHECK(message_with_text("open", wire::Secrecy::open).as_string() == "open");
}

TEST_CASE("no password gets into the records of a session") {
    struct Row {
        std::string_view name;
        test::MessageBuilder message;
        wire::Direction direction = wire::Direction::c2s;
    };

    using test::message;
    constexpr auto kS2c = wire::Direction::s2c;
    const Row rows[] = {
        {"info", message("info").string("0.6 626fce9a778df4d4").string("hunter2")},
        {"info with more", message("info").string("0.6").string("hunter2").string("hunter2")},
        {"info cut short", message("info").string("0.6").text("hunter2")},
        {"rcon_auth", message("rcon_auth").string("").string("hunter2").number(1)},
        {"rcon_auth cut short", message("rcon_auth").string("").text("hunter2")},
        {"rcon_cmd", message("rcon_cmd").string("sv_password hunter2")},
        {"rcon_cmd cut short", message("rcon_cmd").text("sv_password hunter2")},
        {"timeout code", message("cl_say").number(0).string("/timeout hunter2")},
        {"timeout code cut short", message("cl_say").number(0).text("/timeout hunter2")},
        {"an unknown command", message("cl_say").number(0).string("/pin hunter2")},
        {"in team chat", message("cl_say").number(1).string(" /LOGIN2 me hunter2")},
        {"behind a harmless command", message("cl_say").number(0).string("/team 1;pin hunter2")},
        {"without the space", message("cl_say").number(0).string("/pin:hunter2")},
        {"with more", message("cl_say").number(0).string("/pin 1").string("hunter2")},
        {"for no team", message("cl_say").number(7).string("/pin hunter2")},
        {"passed on by a server without the command",
         message("sv_chat").number(0).number(3).string("/pin hunter2"), kS2c},
        {"told by the server", message("sv_chat").number(0).number(-1).string("PIN: hunter2"),
         kS2c},
        {"in a broadcast", message("sv_broadcast").string("Your code is hunter2"), kS2c},
        {"rcon_auth by name", message("rcon_auth").string("hunter2").string("").number(1)},
        {"rcon_auth with more",
         message("rcon_auth").string("").string("").number(1).text("hunter2")},
        {"rcon_line", message("rcon_line").string("Value: hunter2"), kS2c},
        {"rcon_line cut short", message("rcon_line").text("Value: hunter2"), kS2c},
        {"rcon_line with more", message("rcon_line").string("").string("hunter2"), kS2c},
        {"rcon_auth_status with more",
         message("rcon_auth_status").number(1).number(1).string("hunter2"), kS2c},
        {"rcon_cmd_add", message("rcon_cmd_add").string("say").string("hunter2").string("hunter2"),
         kS2c},
        {"rcon_cmd_rem with more", message("rcon_cmd_rem").string("say").string("hunter2"), kS2c},
        {"maplist_add", message("maplist_add").string("a").string("hunter2"), kS2c},
        {"sv_moderator_alert", message("sv_moderator_alert").string("hunter2"), kS2c},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        PlainSession plain;
        test::SessionScript peers; // used only to build packets
        plain.pass_datagram(row.direction, peers.pack(row.direction, {test::vital(row.message)}));
        plain.session.close_session(0, "shutdown", *plain.workspace);
        plain.json.flush();
        const std::string& text = plain.output.text;
        CHECK(plain.session.totals().directions[wire::index_of(row.direction)].vital == 1);
        CHECK_FALSE(contains(text, "hunter2"));
        CHECK_FALSE(contains(text, "68756e74657232")); // the password as hex
    }
}

TEST_CASE("arguments are shown for commands that the server describes as harmless or the operator "
          "lists") {
    using test::message;
    constexpr auto kS2c = wire::Direction::s2c;
    const wire::CommandNames listed{{"jail_code"}};
    JsonScript session{{.shown_commands = &listed}};
    test::SessionScript& script = session.script;
    script.join_ddnet();
    const auto say = [&](std::string_view line) {
        const auto fields = session.fields_of(message("cl_say").number(0).string(line));
        return std::string{fields.at("message").as_string()};
    };
    const auto announce = [&](std::string_view name, std::string_view format) {
        script.send(kS2c, message("sv_command_info").string(name).string(format).string("Help"));
    };
    CHECK(say("/class medic") == "/class [redacted]");
    announce("class", "s[class name]");
    announce("pin", "s[pin]");
    announce("timeout", "s[harmless]");
    announce("all", "");
    CHECK(say("/Class medic") == "/Class medic");
    CHECK(say("/pin 4711") == "/pin [redacted]");
    CHECK(say("/timeout 4711") == "/timeout [redacted]");
    CHECK(say("/other 4711") == "/other [redacted]");
    CHECK(say("/jail_code 4711") == "/jail_code 4711");
    announce("class", "s[pass]"); // a new description of the same command
    CHECK(say("/class medic") == "/class [redacted]");
    announce("class", "");
    script.send(kS2c, message("sv_command_info_remove").string("Class"));
    CHECK(say("/class medic") == "/class [redacted]");
    announce("class", "");
    script.join_ddnet(); // another connection, perhaps to another mod
    CHECK(say("/class medic") == "/class [redacted]");
}

TEST_CASE("commands of 0.7 are redacted like chat") {
    JsonScript session;
    test::SessionScript& script = session.script;
    script.join_seven();
    const auto command = [&](std::string_view name, std::string_view arguments) {
        const auto fields =
            session.fields_of(script.message_of("cl_command").string(name).string(arguments));
        return std::string{fields.at("name").as_string()} + '|' +
               std::string{fields.at("arguments").as_string()};
    };
    CHECK(command("pin", "4711") == "pin|[redacted]");
    CHECK(command("pin 4711", "") == "pin [redacted]|");
    CHECK(command("class", "medic") == "class|[redacted]");
    script.send(wire::Direction::s2c,
                script.message_of("sv_command_info").string("class").string("s[which]").string(""));
    CHECK(command("class", "medic") == "class|medic");
    CHECK(command("team", "3;pin 4711") == "team|3;pin [redacted]");
}

TEST_CASE("undecodable bytes are redacted unless secrets are shown") {
    const auto text = test::MessageBuilder{}.text("hunter2").bytes();
    const auto datagram = [&](std::initializer_list<int> head, std::size_t padding) {
        test::Bytes bytes;
        for (const int value : head) {
            bytes.push_back(static_cast<std::byte>(value));
        }
        bytes.insert(bytes.end(), text.begin(), text.end());
        bytes.resize(bytes.size() + padding);
        return bytes;
    };

    struct Row {
        std::string_view name;
        test::Bytes datagram;
        std::string_view finding;
    };

    const Row rows[] = {
        {"too long for anybody", datagram({0, 0, 1}, 1400), "packet.too_long"},
        {"compressed, they say", datagram({0x80, 0, 1}, 0), "packet.huffman_truncated"},
        {"behind the last chunk", datagram({0, 0, 1, 0x40, 1, 1, 29}, 0), "packet.trailing_bytes"},
        {"without a message id", datagram({0, 0, 1, 0x40, 9, 1, 1, 2}, 0), "message.id_invalid"},
    };
    for (const Row& row : rows) {
        for (const bool show : {false, true}) {
            CAPTURE(row.name);
            CAPTURE(show);
            PlainSession plain{{.show_secrets = show}};
            plain.pass_datagram(wire::Direction::c2s, row.datagram);
            CHECK(contains(plain.output.text, row.finding));
            CHECK(contains(plain.output.text, "68756e74657232") == show);
        }
    }
}

TEST_CASE("any bytes become valid JSON and UTF-8") {
    struct Row {
        std::string_view name;
        std::string_view text;
        std::string_view shown;
    };

    using namespace std::string_view_literals;
    const Row rows[] = {
        {"quotes", "\"\\/"sv, "\"\\/"sv},
        {"control characters", "\0\x01\n\x1b[31m\x7f"sv, "\0\x01\n\x1b[31m\x7f"sv},
        {"umlauts and faces", "\xc3\xa4\xf0\x9f\x98\x80"sv, "\xc3\xa4\xf0\x9f\x98\x80"sv},
        {"a lone lead byte", "a\xc3"sv, "a\xef\xbf\xbd"sv},
        {"a lone trail byte", "\x80z"sv, "\xef\xbf\xbdz"sv},
        {"an overlong form", "\xc0\x80"sv, "\xef\xbf\xbd\xef\xbf\xbd"sv},
        {"a surrogate", "\xed\xa0\x80"sv, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"sv},
        {"what a terminal obeys", "\xc2\x9b\xd8\x9c\xe2\x80\xae\xe2\x80\xa8"sv,
         "\xc2\x9b\xd8\x9c\xe2\x80\xae\xe2\x80\xa8"sv},
        {"past the last", "\xf4\x90\x80\x80"sv,
         "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"sv},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(message_with_text(row.text, wire::Secrecy::open).as_string() == row.shown);
    }
    sink::TextOutput output;
    sink::JsonLines json{{}, output};
    const record::SessionRecord session{.event = record::SessionEvent::close,
                                        .reason = "\x1b[2J\x7f\xc2\x9b"sv};
    json.on_record(&session);
    json.flush();
    for (const char c : output.text) {
        CHECK((c == '\n' || (static_cast<unsigned char>(c) >= 0x20)));
    }
    CHECK(contains(output.text, R"("\u001b[2J\u007f\u009b")"));
}

using namespace tw::test;

namespace {

/// Stores the text of each segment.
class SegmentTexts final : public sink::Output {
  public:
    std::uint32_t current = 1;
    std::vector<std::string> texts{2};
    std::uint32_t arrived = 1;

    void write(std::string_view block) override { write_to_segment(current, block); }

    [[nodiscard]] std::uint32_t current_segment() const override { return current; }

    void write_to_segment(std::uint32_t segment, std::string_view block) override {
        texts.resize(std::max<std::size_t>(texts.size(), segment + 1));
        texts[segment] += block;
    }

    void advance_to_segment(std::uint32_t segment) override { arrived = segment; }
};

/// Returns a description of each line, such as "snapshot1 full, " or "session1 open again, ".
std::string line_kinds(const std::string& text) {
    std::string all;
    for (const auto& line : test::parse_lines(text)) {
        const auto& record = line.as_object();
        all += std::string{record.at("type").as_string()} +
               std::to_string(record.at("session").as_int64());
        if (record.contains("event")) {
            all += ' ' + std::string{record.at("event").as_string()};
        }
        all += record.contains("full") ? " full" : "";
        all += record.contains("again") ? " again, " : ", ";
    }
    return all;
}

} // namespace

TEST_CASE(
    "a segment begins with the open sessions and maps, and their next snapshots list all items") {
    SampleRecords sample;
    SegmentTexts output;
    sink::JsonLines lines{{}, output};
    sample.map.again = false;
    sample.snapshot.previous = sample.snapshot.items;
    sample.snapshot.ordinal = 1;
    const auto write = [&lines](auto& record, std::uint32_t session) {
        record.head.session = session;
        lines.on_record(&record);
    };
    const auto event = [&](std::uint32_t session, record::SessionEvent what,
                           std::string_view reason = {}) {
        sample.session.event = what;
        sample.session.reason = reason;
        write(sample.session, session);
    };
    const auto snapshot = [&](std::uint32_t session) { write(sample.snapshot, session); };
    using Event = record::SessionEvent;
    for (const std::uint32_t session : {1U, 2U, 3U}) {
        event(session, Event::open);
        event(session, Event::established);
        write(sample.map, session);
    }
    snapshot(1);
    snapshot(1);
    event(2, Event::close, "idle");
    event(3, Event::close, record::kReconnected);
    event(3, Event::established);
    CHECK(output.texts[1].empty());
    output.current = 2;
    snapshot(1);
    CHECK(output.arrived == 2);
    snapshot(1);
    snapshot(3);
    lines.flush();
    CHECK(line_kinds(output.texts[1]) ==
          "session1 open, session1 established, map1, session2 open, session2 established, map2, "
          "session3 open, session3 established, map3, snapshot1 full, snapshot1, session2 close, "
          "session3 close, session3 established, ");
    CHECK(line_kinds(output.texts[2]) ==
          "session1 open again, session1 established again, map1 again, session3 open again, "
          "session3 established again, snapshot1 full, snapshot1, snapshot3 full, ");
    // The repeated record is the one of the previous segment.
    const std::string again = output.texts[2].substr(0, output.texts[2].find('\n'));
    const std::string before = output.texts[1].substr(0, output.texts[1].find('\n'));
    CHECK(again == before.substr(0, before.size() - 1) + ",\"again\":true}");
}

TEST_CASE("flushing without records advances to the current segment") {
    SegmentTexts output;
    sink::JsonLines lines{{}, output};
    output.current = 2;
    lines.flush();
    CHECK(output.arrived == 2);
}
