#include "proxy/replay/client_script.h"
#include "proxy/wire/bodies.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/message_builder.h"
#include "tests/support/session_script.h"

#include <algorithm>

#include <doctest/doctest.h>

using namespace tw;
using test::message;
using test::non_vital;
using wire::Direction;

namespace {

constexpr std::string_view kVersion = "0.6 626fce9a778df4d4";

/// A session from which a client's script is made.
struct CapturedClient {
    explicit CapturedClient(replay::ClientScriptExtractor::Options options = {}) : reader{options} {
        observers.add_observer(reader);
    }

    replay::ClientScriptExtractor reader;
    inspect::Observers observers;
    test::SessionScript script{{.observers = &observers}};

    void join() {
        script.join_ddnet();
        script.send(Direction::c2s, message("info").string(kVersion).string("sesame"));
        script.send(Direction::c2s, message("cl_start_info")
                                        .string("anna")
                                        .string("")
                                        .number(-1)
                                        .string("default")
                                        .number(0)
                                        .number(0)
                                        .number(0));
        script.enter_game();
    }

    void send_input(std::int32_t acked, std::int32_t intended) {
        script.send(
            Direction::c2s,
            {non_vital(message("input").number(acked).number(intended).number(4).number(1))});
    }

    void send_chat(std::string_view text) {
        script.send(Direction::c2s, message("cl_say").number(0).string(text));
    }
};

bool contains_text(std::span<const std::byte> bytes, std::string_view text) {
    const auto wanted = std::as_bytes(std::span{text});
    return std::search(bytes.begin(), bytes.end(), wanted.begin(), wanted.end()) != bytes.end();
}

} // namespace

TEST_CASE("a script contains a client's inputs and messages in the game, with ticks as leads") {
    CapturedClient client;
    client.join();
    client.script.snap(100, snapshot::kNoBase, {{{4, 1}, {1, 2, 3, 4}}});
    client.send_input(100, 107);
    client.send_chat("hello");
    client.script.snap(102, 100, {{{4, 1}, {1, 2, 3, 5}}});
    client.send_input(102, 5000);
    client.send_input(102, -2'000'000'000);
    const auto scripts = client.reader.take_scripts();
    REQUIRE(scripts.size() == 1);
    const replay::ClientScript& script = scripts.front();
    CHECK(script.session == 1);
    CHECK(contains_text(script.info_version, kVersion));
    CHECK_FALSE(contains_text(script.info_version, "sesame"));
    CHECK_FALSE(script.start_info_message.empty());
    REQUIRE(script.steps.size() == 4);
    using Kind = replay::ScriptStep::Kind;
    CHECK(script.steps[0].kind == Kind::input);
    CHECK(script.steps[0].lead_ticks == 7);
    CHECK(script.bytes_of(script.steps[0]).size() == 2); // the size, and one int
    CHECK(script.steps[1].kind == Kind::message);
    CHECK(script.steps[1].vital);
    CHECK(contains_text(script.bytes_of(script.steps[1]), "hello"));
    CHECK(script.steps[2].lead_ticks == 50); // a client's tick cannot lengthen a replay
    CHECK(script.steps[3].lead_ticks == 1);
    CHECK(script.steps[0].time > 0);
    CHECK(std::is_sorted(
        script.steps.begin(), script.steps.end(),
        [](const auto& first, const auto& second) { return first.time < second.time; }));
    CHECK(client.reader.take_scripts().empty());
}

TEST_CASE("a script leaves out codes, passwords and the remote console") {
    for (const bool secrets : {false, true}) {
        CAPTURE(secrets);
        CapturedClient client{{.includes_secrets = secrets}};
        client.join();
        client.send_chat("/timeout code");
        client.send_chat("/login sesame");
        client.script.send(Direction::c2s,
                           message("rcon_auth").string("").string("rcon-pass").number(1));
        client.script.send(Direction::c2s, message("rcon_cmd").string("shutdown"));
        client.send_input(-1, 5);
        const auto scripts = client.reader.take_scripts();
        REQUIRE(scripts.size() == 1);
        CHECK(scripts.front().num_withheld_messages == (secrets ? 2U : 4U));
        CHECK(contains_text(scripts.front().bytes, "/timeout code") == secrets);
        CHECK_FALSE(contains_text(scripts.front().bytes, "rcon-pass"));
        CHECK_FALSE(contains_text(scripts.front().bytes, "shutdown"));
    }
}

TEST_CASE("messages that the server does not accept are in no script") {
    CapturedClient client;
    client.join();
    client.send_input(-1, 5);
    const auto packet = client.script.pack_deviating(
        Direction::c2s, {non_vital(message("cl_say").number(0).string("no"))},
        {.behind = test::Bytes(4, std::byte{9})});
    client.script.send_datagram(Direction::c2s, packet); // a wrong token
    client.script.send(Direction::c2s,
                       {non_vital(message("cl_say").number(0).string("not vital"))});
    client.script.send(Direction::c2s, message("sv_motd").string("not a client's"));
    const auto scripts = client.reader.take_scripts();
    REQUIRE(scripts.size() == 1);
    CHECK(scripts.front().steps.size() == 1);
}

TEST_CASE("scripts are limited, and truncation is reported") {
    CapturedClient client{{.max_bytes = 1000}};
    client.join();
    for (int i = 0; i < 100; ++i) {
        client.send_input(-1, 5);
    }
    CHECK(client.reader.is_truncated());
    const auto scripts = client.reader.take_scripts();
    REQUIRE(scripts.size() == 1);
    CHECK(scripts.front().steps.size() < 30);
    CHECK(scripts.front().bytes.size() < 1000);
}

TEST_CASE("every client of a real capture gets a script, in 0.6 and 0.7") {
    struct Row {
        std::string name;
        std::size_t clients;
    };

    for (const Row& row : {Row{"bench-4.pcap.gz", 4}, Row{"teeworlds-0.7.5.pcap.gz", 2}}) {
        CAPTURE(row.name);
        replay::ClientScriptExtractor reader{{}};
        inspect::Observers observers;
        observers.add_observer(reader);
        test::RecordLog log;
        test::TrafficInspector run{{.emits_message_records = false, .observers = &observers}, log};
        run.play(test::read_traffic(row.name));
        const auto scripts = reader.take_scripts();
        CHECK(scripts.size() == row.clients);
        for (const auto& script : scripts) {
            CHECK(script.steps.size() > 100);
            CHECK(script.duration() > 1'000'000'000);
        }
    }
}

TEST_CASE("the messages that a client makes itself are complete in both dialects") {
    for (const wire::Dialect dialect : {wire::Dialect::six, wire::Dialect::seven}) {
        const replay::ClientScript script{.dialect = dialect};
        for (const auto& bytes :
             {replay::make_info_message(script, "sesame"), replay::make_start_info_message(script),
              replay::encode_message_id("ping", dialect),
              replay::encode_message_id("ping_reply", dialect)}) {
            const auto head = wire::decode_message_header(bytes, dialect);
            REQUIRE(head);
            REQUIRE(head->spec != nullptr);
            CAPTURE(head->spec->name);
            wire::DecodedFields fields;
            wire::decode_fields(*head->spec, head->body, fields);
            CHECK_FALSE(fields.error);
            CHECK(fields.trailing.empty());
        }
    }
}
