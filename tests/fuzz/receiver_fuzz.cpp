#include "tests/fuzz/demand.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/strict_sink.h"
#include "tests/support/session_script.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// A script of operations for two peers: each byte chooses an operation, and its arguments follow. The
/// peers send correct packets (tokens, acknowledgements, sequences, Huffman and chunk headers), and the
/// script decides what the network and an attacker do to them. Mutated inputs therefore still reach
/// snapshots, maps and inputs.
namespace {

using namespace tw;
using namespace tw::test;
using tw::fuzz::demand;
using tw::fuzz::Input;
using wire::Direction;

constexpr record::Timestamp kMillisecond = 1'000'000;
/// The longest script; each operation sends a few datagrams.
constexpr std::size_t kMaxOperations = 300;
constexpr std::size_t kMaxText = 64;

class FuzzedPeers {
  public:
    explicit FuzzedPeers(Input& in) : in_{&in}, script_{{}, sink_} {}

    void run_operation() {
        static constexpr std::array kOperations{
            &FuzzedPeers::send_snapshot,       &FuzzedPeers::send_snapshot,
            &FuzzedPeers::send_large_snapshot, &FuzzedPeers::send_empty_snapshot,
            &FuzzedPeers::begin_connection,    &FuzzedPeers::enter_game,
            &FuzzedPeers::send_any_message,    &FuzzedPeers::send_raw_message,
            &FuzzedPeers::send_input,          &FuzzedPeers::send_invalid_packet,
            &FuzzedPeers::send_control,        &FuzzedPeers::repeat_datagram,
            &FuzzedPeers::send_map_data,       &FuzzedPeers::lose_copies,
            &FuzzedPeers::pause_script,        &FuzzedPeers::send_raw_datagram,
            &FuzzedPeers::change_compression};
        (this->*kOperations.at(in_->below(kOperations.size())))();
    }

    void close_session() {
        script_.close("end of capture");
        const record::SessionStats totals = script_.session().totals();
        demand(totals.verified <= totals.snapshots);
    }

  private:
    /// Sends a packet over a faulty network: the input says whether it is lost, damaged or delayed.
    void send_over_network(Direction direction, Bytes datagram) {
        enum class Fate : std::uint8_t { whole, twice, lost, later, flipped, cut };
        const auto fate = static_cast<Fate>(in_->below(16));
        if (fate == Fate::lost) {
            return;
        }
        if (fate == Fate::later) {
            waiting_ = {direction, std::move(datagram)};
            return;
        }
        if (fate == Fate::flipped && !datagram.empty()) {
            const std::size_t at = in_->below(datagram.size());
            datagram[at] ^= static_cast<std::byte>(1U << in_->below(8));
        }
        if (fate == Fate::cut) {
            datagram.resize(in_->below(datagram.size() + 1));
        }
        script_.send_datagram(direction, datagram);
        if (fate == Fate::twice) {
            script_.send_datagram(direction, datagram);
        }
        before_ = {direction, std::move(datagram)};
        if (!waiting_.bytes.empty()) {
            script_.send_datagram(waiting_.direction, waiting_.bytes);
            waiting_.bytes.clear();
        }
    }

    /// Delivers a message without faults or, at random, over the faulty network.
    void send_pieces(Direction direction, const std::vector<Piece>& pieces) {
        if (in_->below(2) == 0) {
            script_.send(direction, pieces);
        } else {
            send_over_network(direction, script_.pack(direction, pieces));
        }
    }

    [[nodiscard]] Direction random_direction() {
        return in_->below(2) == 0 ? Direction::c2s : Direction::s2c;
    }

    [[nodiscard]] std::string random_text() {
        const auto bytes = in_->take_bytes(in_->below(kMaxText));
        std::string made(bytes.size(), '\0');
        std::transform(bytes.begin(), bytes.end(), made.begin(),
                       [](std::byte byte) { return static_cast<char>(byte); });
        return made;
    }

    /// Changes some items of the world, of types with and without an agreed size, and with descriptors.
    void change_items() {
        for (std::size_t left = in_->below(6); left > 0; --left) {
            constexpr std::array<std::uint16_t, 8> kTypes{0, 2, 4, 9, 10, 63, 0x4000, 0x7fff};
            const auto type = kTypes.at(in_->below(kTypes.size()));
            const auto id = static_cast<std::uint16_t>(in_->below(4) == 0 ? 0x7fff - in_->below(4)
                                                                          : in_->below(16));
            const snapshot::ItemKey key{type, id};
            const auto old = world_.find(key);
            if (old != world_.end() && in_->below(4) == 0) {
                world_.erase(old);
                continue;
            }
            const std::size_t agreed =
                snapshot::agreed_size(type, snapshot::agreed_sizes(script_.dialect()));
            std::vector<std::int32_t>& data = world_[key];
            if (data.empty()) {
                // The size of an item never changes, because no server changes it and no encoder could.
                data.resize(agreed != 0 ? agreed : 1 + (type + id) % 8U);
            }
            data[in_->below(data.size())] = in_->take<std::int32_t>();
        }
    }

    /// Returns the tick of the next snapshot.
    snapshot::Tick next_tick() {
        tick_ += 1 + static_cast<snapshot::Tick>(in_->below(8));
        return tick_;
    }

    [[nodiscard]] snapshot::Tick choose_base() {
        constexpr std::size_t kChoices = 4;
        switch (in_->below(kChoices)) {
        case 0:
            return snapshot::kNoBase;
        case 1:
            return tick_ - static_cast<snapshot::Tick>(in_->below(200));
        default:
            return last_sent_;
        }
    }

    void send_snapshot() {
        const snapshot::Tick from = choose_base();
        const snapshot::Tick tick = next_tick();
        change_items();
        const Bytes datagram = script_.snap_datagram(tick, from, world_);
        if (datagram.size() > wire::kMaxDatagramSize) {
            return; // send_large_snapshot() covers this case
        }
        last_sent_ = tick;
        send_over_network(Direction::s2c, datagram);
    }

    /// Sends a snapshot in parts, some of which the network may lose.
    void send_large_snapshot() {
        const snapshot::Tick tick = next_tick();
        Items large = world_;
        for (std::size_t left = 100 + in_->below(200); left > 0; --left) {
            // The item has two ints in both dialects.
            large[{16, static_cast<std::uint16_t>(left)}] = {1'000'000 + tick, -1'000'000};
        }
        const Bytes body = delta_body({}, large, script_.dialect());
        for (const Bytes& part : snap_parts(tick, snapshot::kNoBase, checksum_of(large), body)) {
            send_over_network(Direction::s2c, script_.pack(Direction::s2c, {non_vital(part)}));
        }
    }

    void send_empty_snapshot() {
        const snapshot::Tick from = choose_base();
        send_over_network(Direction::s2c,
                          script_.pack(Direction::s2c, {non_vital(snap_empty(next_tick(), from))}));
    }

    void begin_connection() {
        const wire::Dialect before = script_.dialect();
        send_handshake();
        if (script_.dialect() != before) {
            world_.clear(); // the other dialect's types have other sizes
        }
    }

    void send_handshake() {
        switch (in_->below(6)) {
        case 0:
            return script_.join_ddnet();
        case 1:
            return script_.join_ddnet_with({in_->take<std::uint8_t>(), 2, 3, 4});
        case 2:
            return script_.join_vanilla();
        case 3:
            return script_.join_header_token();
        case 4:
            return script_.join_seven();
        default:
            return script_.close_seven();
        }
    }

    void enter_game() {
        script_.enter_game(in_->below(2) == 0 ? "dm1" : random_text());
        tick_ = in_->below(2) == 0 ? 0 : tick_;
    }

    /// Sends a message of the message table with arbitrary fields.
    void send_any_message() {
        const auto table = wire::message_table();
        const auto& spec = table[in_->below(table.size())];
        MessageBuilder builder{spec};
        for (std::size_t left = in_->below(4); left > 0; --left) {
            builder.string(random_text());
        }
        for (std::size_t left = in_->below(24); left > 0; --left) {
            builder.number(in_->take<std::int8_t>());
        }
        send_pieces(random_direction(),
                    {{.message = builder.bytes(), .vital = in_->below(2) == 0}});
    }

    void send_raw_message() {
        const auto bytes = in_->take_bytes(in_->below(kMaxText));
        const bool vital = in_->below(2) == 0;
        send_pieces(random_direction(), {{.message = {bytes.begin(), bytes.end()},
                                          .vital = vital,
                                          .resend = in_->below(2) == 0}});
    }

    /// Acknowledges a snapshot as the client.
    void send_input() {
        const snapshot::Tick acked = in_->below(4) == 0 ? in_->take<std::int32_t>() : last_sent_;
        auto builder = message("input").number(acked).number(tick_).number(40);
        for (std::size_t i = 0; i < 10; ++i) {
            builder.number(in_->take<std::int8_t>());
        }
        send_pieces(Direction::c2s, {non_vital(builder)});
    }

    /// Sends an invalid packet.
    void send_invalid_packet() {
        const auto bytes = in_->take_bytes(in_->below(8));
        const Deviations odd{.ack = in_->take<std::int8_t>(),
                             .count = in_->take<std::uint8_t>(),
                             .behind = Bytes(bytes.begin(), bytes.end()),
                             .flags = in_->take<std::uint8_t>()};
        const Direction direction = random_direction();
        send_over_network(direction,
                          script_.pack_deviating(direction, {vital(message("ready"))}, odd));
    }

    void send_control() {
        wire::ControlSpec spec{.kind = static_cast<wire::ControlKind>(in_->below(6))};
        const std::string reason = random_text();
        if (spec.kind == wire::ControlKind::close && in_->below(2) == 0) {
            spec.reason = reason;
        }
        if (in_->below(2) == 0) {
            spec.token = in_->below(2) == 0 ? SessionScript::kToken : wire::kTokenUnknown;
        }
        script_.control(random_direction(), spec);
    }

    /// Repeats the last datagram, perhaps from the other side.
    void repeat_datagram() {
        script_.send_datagram(in_->below(4) == 0 ? wire::opposite(before_.direction)
                                                 : before_.direction,
                              before_.bytes);
    }

    void send_map_data() {
        if (in_->below(2) == 0) {
            script_.send(
                Direction::s2c,
                message("map_change").string("dm1").number(1).number(in_->take<std::int16_t>()));
        }
        const auto bytes = in_->take_bytes(in_->below(kMaxText));
        auto builder = message("map_data")
                           .number(static_cast<std::int32_t>(in_->below(2)))
                           .number(1)
                           .number(static_cast<std::int32_t>(in_->below(4)))
                           .number(static_cast<std::int32_t>(bytes.size()))
                           .raw(bytes);
        send_pieces(Direction::s2c, {vital(builder)});
    }

    void lose_copies() { script_.lose_copies(1 + in_->below(100)); }

    void pause_script() { script_.pause(in_->take<std::uint16_t>() * kMillisecond); }

    void send_raw_datagram() {
        const auto bytes = in_->take_bytes(in_->below(kMaxText));
        script_.send_datagram(random_direction(), bytes);
    }

    void change_compression() {
        script_.compression = static_cast<wire::Compression>(in_->below(3));
    }

    struct Datagram {
        Direction direction = Direction::c2s;
        Bytes bytes;
    };

    Input* in_;
    fuzz::StrictSink sink_;
    SessionScript script_;
    Items world_;
    snapshot::Tick tick_ = 0;
    snapshot::Tick last_sent_ = snapshot::kNoBase;
    Datagram before_;
    Datagram waiting_;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input in{data, size};
    FuzzedPeers peers{in};
    for (std::size_t i = 0; i < kMaxOperations && !in.empty(); ++i) {
        peers.run_operation();
    }
    peers.close_session();
    return 0;
}
