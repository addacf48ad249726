#include "proxy/replay/replay_client.h"
#include "proxy/wire/packet.h"
#include "tests/support/message_builder.h"
#include "tests/support/snapshot_messages.h"

#include <limits>

#include <doctest/doctest.h>

using namespace tw;
using replay::ClientEnding;
using replay::ReplayClient;
using test::message;
using test::MessageBuilder;
using wire::Dialect;
using Strings = std::vector<std::string>;

namespace {

constexpr record::Timestamp kSecond = 1'000'000'000;
constexpr wire::Token kToken{1, 2, 3, 4};
constexpr wire::Token kServer{9, 8, 7, 6};

/// Returns a script that sends a chat message, and an input half a second later.
replay::ClientScript sample_script() {
    replay::ClientScript script{.session = 1};
    const auto add = [&script](replay::ScriptStep step, std::span<const std::byte> bytes) {
        step.offset = script.bytes.size();
        step.size = bytes.size();
        script.bytes.insert(script.bytes.end(), bytes.begin(), bytes.end());
        script.steps.push_back(step);
    };
    using Kind = replay::ScriptStep::Kind;
    const auto pressed = MessageBuilder{}.number(4).number(1);
    add({.time = kSecond / 2, .kind = Kind::input, .lead_ticks = 7}, pressed.bytes());
    add({.time = kSecond, .kind = Kind::message, .vital = true},
        message("cl_say").number(0).string("hello").bytes());
    add({.time = 3 * kSecond / 2, .kind = Kind::input, .lead_ticks = 3}, pressed.bytes());
    return script;
}

/// A client, and a server that the test controls.
class ClientAndServer {
  public:
    explicit ClientAndServer(ReplayClient::Options options = {}, Dialect dialect = Dialect::six)
        : script{dialect == Dialect::six
                     ? sample_script()
                     : replay::ClientScript{.session = 1, .dialect = Dialect::seven}},
          client{script, with_token(std::move(options)), kSecond, counts} {}

    static ReplayClient::Options with_token(ReplayClient::Options options) {
        options.token = kToken;
        return options;
    }

    /// Returns the start of a message of the client's dialect.
    [[nodiscard]] MessageBuilder message(std::string_view name) const {
        const auto table = wire::message_table();
        const auto found = std::ranges::find_if(table, [&](const auto& spec) {
            return spec.name == name && spec.dialect == script.dialect;
        });
        REQUIRE(found != table.end());
        return MessageBuilder{*found};
    }

    /// Returns what the client sends at this time; see read_sent_names().
    Strings advance_to(record::Timestamp time) {
        client.on_time(time);
        return read_sent_names();
    }

    /// Returns the names of the messages and control packets that the client sends; of control
    /// packets of 0.7, also the sizes.
    Strings read_sent_names() {
        Strings names;
        for (const auto& datagram : client.take_datagrams()) {
            wire::PacketScratch scratch;
            const bool is_six = script.dialect == Dialect::six;
            const auto packet = is_six ? wire::decode_packet(datagram, wire::Protocol::six, scratch)
                                       : wire::decode_seven_packet(datagram, scratch);
            REQUIRE(packet);
            if (packet->kind == wire::PacketKind::control) {
                const auto control = is_six ? wire::decode_control(*packet, kToken)
                                            : wire::decode_seven_control(*packet);
                token = is_six ? control.token : packet->header_token;
                names.push_back(std::string{wire::control_name(control.kind)} +
                                (is_six ? "" : " " + std::to_string(datagram.size())));
            } else {
                token = is_six ? token : packet->header_token;
                read_chunks(*packet, names);
            }
        }
        client.on_packet(acked, false); // the server acknowledges everything
        return names;
    }

    void close_connection(std::optional<wire::Token> with, std::string_view reason) {
        client.on_control({}, {.kind = wire::ControlKind::close, .token = with, .reason = reason});
    }

    void accept_connection(bool with_token = true) {
        wire::Control accept;
        accept.kind = wire::ControlKind::connectaccept;
        if (with_token) {
            accept.has_token_magic = true;
            accept.token = kToken;
        }
        client.on_control({}, accept);
    }

    /// Passes a control packet of 0.7 to the client.
    void pass_seven_control(wire::ControlKind kind, wire::Token header,
                            std::optional<wire::Token> own = std::nullopt,
                            std::string_view reason = {}) {
        wire::Packet packet;
        packet.kind = wire::PacketKind::control;
        packet.dialect = Dialect::seven;
        packet.header_token = header;
        client.on_control(packet, {.kind = kind, .token = own, .reason = reason});
    }

    void send_to_client(const MessageBuilder& told, bool vital = true) {
        send_to_client(told.bytes(), vital);
    }

    void send_to_client(const test::Bytes& told, bool vital = true) {
        const auto head = wire::decode_message_header(told, script.dialect);
        REQUIRE(head);
        client.on_chunk({.vital = vital,
                         .sequence = static_cast<std::uint16_t>((vital ? ++sequence : 0) %
                                                                wire::kSequenceModulus),
                         .payload = told},
                        wire::VitalClass::next, &*head);
    }

    void send_map(std::string_view name) {
        send_to_client(message("map_change").string(name).number(1).number(2));
    }

    Strings enter_game() {
        Strings all = advance_to(kSecond);
        const auto note = [&all, this] {
            const Strings more = read_sent_names();
            all.insert(all.end(), more.begin(), more.end());
        };
        accept_connection();
        note();
        send_map("dm1");
        note();
        send_to_client(message("con_ready"));
        note();
        send_to_client(message("sv_ready_to_enter"));
        note();
        return all;
    }

    replay::ClientScript script;
    replay::ClientCounts counts;
    ReplayClient client;
    std::optional<wire::Token> token; ///< token of the last control packet; of 0.7, of any packet
    std::optional<wire::InputBody> input;
    std::uint16_t acked = 0;
    std::uint16_t sequence = 0;

  private:
    void read_chunks(const wire::Packet& packet, Strings& names) {
        wire::ChunkReader chunks{packet.payload, packet.num_chunks, script.dialect};
        while (const auto chunk = chunks.next()) {
            const auto head = wire::decode_message_header(chunk->payload, script.dialect);
            REQUIRE(head);
            REQUIRE(head->spec != nullptr);
            if (script.dialect == Dialect::seven) {
                wire::DecodedFields fields;
                wire::decode_fields(*head->spec, head->body, fields);
                CHECK_FALSE(fields.error);
                CHECK(fields.trailing.empty());
            }
            names.emplace_back(head->spec->name);
            acked = chunk->vital ? chunk->sequence : acked;
            if (head->spec->id == wire::MessageId::input) {
                input = wire::decode_input(head->body);
            }
        }
        CHECK_FALSE(chunks.error());
        CHECK((script.dialect == Dialect::six || chunks.rest().empty()));
    }
};

} // namespace

TEST_CASE("a client of 0.7 exchanges tokens, joins with the messages of 0.7, and closes") {
    ClientAndServer pair{{.duration = 4 * kSecond}, Dialect::seven};
    CHECK(pair.advance_to(kSecond) == Strings{"token 520"}); // is padded
    CHECK(pair.token == wire::kTokenUnknown);
    CHECK(pair.advance_to(kSecond + kSecond / 4).empty());
    CHECK(pair.advance_to(kSecond + kSecond / 2) == Strings{"token 520"});
    pair.pass_seven_control(wire::ControlKind::token, kToken, kServer);
    CHECK(pair.read_sent_names() == Strings{"connect 520"});
    CHECK(pair.token == kServer);
    CHECK(pair.advance_to(2 * kSecond) == Strings{"connect 520"});
    pair.pass_seven_control(wire::ControlKind::accept, kToken);
    CHECK(pair.read_sent_names() == Strings{"info"});
    CHECK(pair.token == kServer);
    pair.pass_seven_control(wire::ControlKind::accept, kToken); // vanilla servers repeat the accept
    pair.send_to_client(
        pair.message("map_change").string("dm1").number(1).number(2).number(3).number(4));
    pair.send_to_client(pair.message("con_ready"));
    pair.send_to_client(pair.message("sv_ready_to_enter"));
    CHECK(pair.read_sent_names() == Strings{"ready", "cl_start_info", "enter_game"});
    CHECK(pair.client.was_in_game());
    pair.send_to_client(pair.message("ping"));
    CHECK(pair.read_sent_names() == Strings{"ping_reply"});
    pair.client.on_verified_snapshot(4000);
    const Strings idle = pair.advance_to(3 * kSecond + kSecond / 2);
    CHECK(std::ranges::count(idle, "input") == 1);
    CHECK(pair.advance_to(5 * kSecond).back() == "close 8");
    CHECK(pair.client.ending() == ClientEnding::finished);
}

TEST_CASE("a 0.7 packet without the client's own token is ignored") {
    constexpr wire::Token kForged{5, 5, 5, 5};
    ClientAndServer pair{{}, Dialect::seven};
    pair.advance_to(kSecond);
    pair.pass_seven_control(wire::ControlKind::token, kForged, kServer);
    pair.pass_seven_control(wire::ControlKind::accept, kToken); // comes before any token
    pair.pass_seven_control(wire::ControlKind::close, kForged, std::nullopt, "go away");
    CHECK(pair.read_sent_names().empty());
    CHECK(pair.client.ending() == ClientEnding::none);
    pair.accept_connection(false); // an answer of a 0.6 server
    CHECK(pair.read_sent_names().empty());
    pair.pass_seven_control(wire::ControlKind::close, kToken, std::nullopt, "This server is full");
    CHECK(pair.client.ending() == ClientEnding::refused);
    CHECK(pair.client.close_reason() == "This server is full");
}

TEST_CASE(
    "a client joins, sends inputs by the server's ticks and the script's messages, and leaves") {
    ClientAndServer pair;
    CHECK(pair.advance_to(kSecond / 2).empty()); // the next step is not due yet
    CHECK(pair.enter_game() ==
          Strings{"connect", "accept", "info", "ready", "cl_start_info", "enter_game"});
    CHECK(pair.client.was_in_game());
    pair.client.on_verified_snapshot(4000);
    pair.client.on_verified_snapshot(3998); // a late snapshot
    pair.advance_to(kSecond + kSecond / 2);
    REQUIRE(pair.input);
    CHECK(pair.input->ack_tick == 4000);
    CHECK(pair.input->intended_tick == 4007);
    const Strings said = pair.advance_to(2 * kSecond);
    CHECK(std::ranges::count(said, "cl_say") == 1);
    pair.client.on_verified_snapshot(4050);
    const Strings last = pair.advance_to(5 * kSecond / 2);
    CHECK(pair.input->ack_tick == 4050);
    CHECK(pair.input->intended_tick == 4053);
    CHECK(last.back() == "close");
    CHECK(pair.token == kToken);
    CHECK(pair.client.ending() == ClientEnding::finished);
    CHECK(pair.counts.inputs == 2);
    CHECK(pair.counts.messages == 1);
    CHECK(pair.advance_to(10 * kSecond).empty());
}

TEST_CASE("the token is requested again until it arrives or the timeout ends") {
    ClientAndServer pair{{.timeout = 2 * kSecond}};
    CHECK(pair.advance_to(kSecond) == Strings{"connect"});
    CHECK(pair.token == wire::kTokenUnknown);
    CHECK(pair.advance_to(kSecond + kSecond / 4).empty());
    CHECK(pair.advance_to(kSecond + kSecond / 2) == Strings{"connect"});
    CHECK(pair.advance_to(3 * kSecond).empty());
    CHECK(pair.client.ending() == ClientEnding::unanswered);
    pair.accept_connection(); // the accept comes too late
    CHECK(pair.client.ending() == ClientEnding::unanswered);
}

TEST_CASE("a run stopped early distinguishes a refused client from an unanswered one") {
    const ReplayClient::Options options{.duration = 2 * kSecond, .timeout = 10 * kSecond};
    ClientAndServer silent{options};
    silent.advance_to(kSecond);
    CHECK(silent.advance_to(3 * kSecond).empty());
    CHECK(silent.client.ending() == ClientEnding::unanswered);
    ClientAndServer stalling{options};
    stalling.advance_to(kSecond);
    stalling.accept_connection();
    CHECK(stalling.advance_to(3 * kSecond).back() == "close");
    CHECK(stalling.client.ending() == ClientEnding::refused);
}

TEST_CASE("a tokenless server's secret tick is acknowledged, then the real map is joined") {
    constexpr snapshot::Tick kSecret = 0x6b8b4567;
    ClientAndServer pair;
    CHECK(pair.advance_to(kSecond) == Strings{"connect"});
    pair.accept_connection(false);
    CHECK(pair.read_sent_names() == Strings{"accept", "info"});
    CHECK_FALSE(pair.token);
    pair.send_map("dummy");
    pair.send_to_client(message("con_ready"));
    for (int i = 0; i < 3; ++i) {
        pair.send_to_client(test::snap_empty(kSecret, snapshot::kNoBase));
    }
    CHECK(pair.read_sent_names() ==
          Strings{"ready", "cl_start_info", "enter_game", "input", "input", "input"});
    REQUIRE(pair.input);
    CHECK(pair.input->ack_tick == kSecret);
    CHECK_FALSE(pair.client.was_in_game());
    pair.send_map("real");
    pair.send_to_client(message("con_ready"));
    pair.send_to_client(message("sv_ready_to_enter"));
    CHECK(pair.read_sent_names() == Strings{"ready", "cl_start_info", "enter_game"});
    CHECK(pair.client.was_in_game());
}

TEST_CASE("a server's close needs the connection's token") {
    struct Row {
        std::string_view name;
        std::optional<wire::Token> token;
        ClientEnding ending;
    };

    for (const Row& row : {Row{"the token", kToken, ClientEnding::closed},
                           Row{"another", wire::Token{9, 9, 9, 9}, ClientEnding::none},
                           Row{"none", std::nullopt, ClientEnding::none}}) {
        CAPTURE(row.name);
        ClientAndServer pair;
        pair.enter_game();
        pair.close_connection(row.token, "enough");
        CHECK(pair.client.ending() == row.ending);
        CHECK(pair.client.close_reason() == (row.ending == ClientEnding::none ? "" : "enough"));
    }
    ClientAndServer pair;
    pair.advance_to(kSecond);
    pair.close_connection(std::nullopt, "This server is full");
    CHECK(pair.client.ending() == ClientEnding::refused);
}

TEST_CASE("unusable snapshots make the client request a full one") {
    ClientAndServer pair;
    pair.enter_game();
    pair.client.on_verified_snapshot(4000);
    pair.client.on_unknown_base();
    pair.advance_to(kSecond + kSecond / 4);
    REQUIRE(pair.input);
    CHECK(pair.input->ack_tick == -1);
    pair.client.on_verified_snapshot(4010);
    for (int i = 0; i < 11; ++i) {
        pair.client.on_wrong_snapshot();
    }
    pair.advance_to(kSecond + kSecond / 3);
    CHECK(pair.input->ack_tick == -1);
}

TEST_CASE("hostile ticks and constant map changes do no harm") {
    ClientAndServer pair{{.duration = 10 * kSecond}};
    pair.enter_game();
    pair.client.on_verified_snapshot(std::numeric_limits<std::int32_t>::max());
    pair.advance_to(kSecond + kSecond / 2);
    REQUIRE(pair.input);
    CHECK(pair.input->intended_tick == std::numeric_limits<std::int32_t>::max());
    for (int i = 0; i < 5000; ++i) {
        pair.send_map("dm1");
    }
    CHECK(pair.read_sent_names().size() == 511);
    // Inputs that were due meanwhile are not sent.
    CHECK(pair.advance_to(3 * kSecond).size() <= 512);
    CHECK(pair.counts.inputs == 1);
    CHECK(pair.counts.skipped_inputs == 0);
    pair.send_to_client(message("sv_ready_to_enter"));
    pair.advance_to(3 * kSecond + 1);
    CHECK(pair.counts.skipped_inputs == 1);
    CHECK(pair.counts.messages == 1);
    pair.advance_to(12 * kSecond);
    CHECK(pair.client.has_ended());
}

TEST_CASE("a client leaves a server that stops answering or never lets it in") {
    ClientAndServer silent{{.timeout = 2 * kSecond}};
    silent.enter_game();
    CHECK(silent.advance_to(4 * kSecond).back() == "close");
    CHECK(silent.client.ending() == ClientEnding::silent);

    ClientAndServer stalling{{.timeout = 2 * kSecond}};
    stalling.advance_to(kSecond);
    stalling.accept_connection();
    for (record::Timestamp time = kSecond; time < 9 * kSecond; time += kSecond / 2) {
        stalling.client.on_packet(2, false);
        stalling.advance_to(time);
    }
    CHECK(stalling.client.ending() == ClientEnding::refused);
}

TEST_CASE("pings are answered and measured") {
    ClientAndServer pair;
    pair.enter_game();
    pair.send_to_client(message("ping"), false);
    CHECK(pair.read_sent_names() == Strings{"ping_reply"});
    pair.client.on_verified_snapshot(10);
    const Strings asked = pair.advance_to(kSecond + 1);
    CHECK(std::ranges::count(asked, "ping") == 1);
    pair.client.on_time(kSecond + 5'000'001);
    pair.send_to_client(message("ping_reply"), false);
    pair.send_to_client(message("ping_reply"), false); // the client did not send a ping
    CHECK(pair.counts.round_trip_us.count == 1);
    CHECK(pair.counts.round_trip_us.max == 5000);
}

namespace {

struct SentChunk {
    std::uint16_t sequence;
    bool vital;
    bool resend;
    std::size_t size;

    friend bool operator==(const SentChunk&, const SentChunk&) = default;
};

struct SentPackets {
    std::size_t packets = 0;
    std::size_t controls = 0;
    bool asks = false;
    std::uint16_t ack = 0;
    std::vector<SentChunk> chunks;
};

/// Sends all packets, and reads them as their receiver does.
SentPackets send(replay::PacketSender& outbox, record::Timestamp now) {
    outbox.flush(now);
    SentPackets read;
    for (const auto& datagram : outbox.take_packets()) {
        CHECK(datagram.size() <= wire::kMaxDatagramSize);
        wire::PacketScratch scratch;
        const auto packet = wire::decode_packet(datagram, wire::Protocol::six, scratch);
        REQUIRE(packet);
        ++read.packets;
        read.asks = read.asks || packet->resend;
        read.ack = packet->ack;
        if (packet->kind == wire::PacketKind::control) {
            ++read.controls;
            continue;
        }
        wire::ChunkReader chunks{packet->payload, packet->num_chunks, Dialect::six};
        while (const auto chunk = chunks.next()) {
            read.chunks.push_back(
                {chunk->sequence, chunk->vital, chunk->resend, chunk->payload.size()});
        }
        CHECK(chunks.rest().size() == wire::kTokenSize);
    }
    return read;
}

const std::vector<std::byte> kMessage(10, std::byte{7});

} // namespace

TEST_CASE("vital messages are numbered from 1 and sent again until they are acknowledged") {
    replay::ClientCounts counts;
    replay::PacketSender outbox{Dialect::six, counts};
    outbox.token = kToken;
    record::Timestamp now = 5 * kSecond;
    for (int i = 0; i < 3; ++i) {
        CHECK(outbox.add_vital_message(kMessage, now));
    }
    outbox.add_nonvital_message(kMessage);
    CHECK(send(outbox, now).chunks == std::vector<SentChunk>{{1, true, false, 10},
                                                             {2, true, false, 10},
                                                             {3, true, false, 10},
                                                             {0, false, false, 10}});
    now += kSecond;
    outbox.on_ack(1);
    outbox.on_time(now); // resends only the oldest chunk
    CHECK(send(outbox, now).chunks == std::vector<SentChunk>{{2, true, true, 10}});
    outbox.on_resend_request(now);
    outbox.on_resend_request(now); // a second request at the same time is ignored
    CHECK(send(outbox, now).chunks ==
          std::vector<SentChunk>{{2, true, true, 10}, {3, true, true, 10}});
    CHECK(counts.resent_chunks == 3);
    CHECK(outbox.oldest_unacknowledged_since() == 5 * kSecond);
    outbox.on_ack(900); // acknowledges a chunk that was not sent
    CHECK(outbox.oldest_unacknowledged_since());
    outbox.on_ack(3);
    CHECK_FALSE(outbox.oldest_unacknowledged_since());
}

TEST_CASE("at most half of the sequences may be unacknowledged") {
    replay::ClientCounts counts;
    replay::PacketSender outbox{Dialect::six, counts};
    outbox.token = kToken;
    int taken = 0;
    while (taken < 2000 && outbox.add_vital_message(kMessage, kSecond)) {
        ++taken;
    }
    CHECK(taken == 511);
    CHECK(send(outbox, kSecond).chunks.size() == 511);
    // The sequence numbers wrap around.
    for (int round = 0; round < 3; ++round) {
        outbox.on_ack(static_cast<std::uint16_t>((511 * (round + 1)) % wire::kSequenceModulus));
        CHECK_FALSE(outbox.oldest_unacknowledged_since());
        for (int i = 0; i < 511; ++i) {
            CHECK(outbox.add_vital_message(kMessage, kSecond));
        }
        CHECK(send(outbox, kSecond).chunks.back().sequence ==
              (511 * (round + 2)) % wire::kSequenceModulus);
    }
}

TEST_CASE("packets stay below the size limit, acknowledge, and request a resend once") {
    replay::ClientCounts counts;
    replay::PacketSender outbox{Dialect::six, counts};
    outbox.token = kToken;
    const std::vector<std::byte> large(1000, std::byte{1});
    for (int i = 0; i < 5; ++i) {
        outbox.add_nonvital_message(large);
    }
    for (int i = 0; i < 300; ++i) {
        outbox.add_nonvital_message({});
    }
    outbox.acknowledged_sequence = 77;
    outbox.requests_resend = true;
    const SentPackets first = send(outbox, kSecond);
    CHECK(first.chunks.size() == 305);
    CHECK(first.packets >= 6);
    CHECK(first.ack == 77);
    CHECK(first.asks);
    outbox.add_nonvital_message(kMessage);
    CHECK_FALSE(send(outbox, kSecond).asks);
    outbox.requests_resend = true; // with nothing else to send
    const SentPackets asked = send(outbox, kSecond);
    CHECK(asked.asks);
    CHECK(asked.packets == 1);
}

TEST_CASE("after a second without packets, a keepalive is sent") {
    replay::ClientCounts counts;
    replay::PacketSender outbox{Dialect::six, counts};
    outbox.add_nonvital_message(kMessage);
    outbox.flush(kSecond);
    CHECK(outbox.take_packets().size() == 1);
    outbox.on_time(kSecond + kSecond / 2);
    outbox.flush(kSecond + kSecond / 2);
    CHECK(outbox.take_packets().empty());
    outbox.on_time(2 * kSecond);
    CHECK(send(outbox, 2 * kSecond).controls == 1);
}
