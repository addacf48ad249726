// Tests captures that begin midway, have a hole or contain only one direction. Missing datagrams
// must not lead to findings about the receiver.
// Covers: proxy/inspect/connection/packet_acceptance.cpp

#include "proxy/inspect/session.h"
#include "tests/proxy/inspect/evasion_script.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/damage.h"
#include "tests/support/doctest_lines.h"
#include "tests/support/record_sink.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using record::FindingId;
using test::Bytes;
using test::kC2s;
using test::kS2c;
using test::SessionScript;
using test::TrafficDatagram;

namespace {

using test::Lines;
using Traffic = std::vector<TrafficDatagram>;

const inspect::Options kPartial{.sees_all_datagrams = false};

/// Identifies a datagram of a capture by client, direction and time.
using DatagramId = std::tuple<std::string, wire::Direction, record::Timestamp>;
/// A message's datagram, name, sequence and size.
using ReadMessage = std::tuple<DatagramId, std::string, std::uint16_t, std::size_t>;

/// The messages and findings of a capture.
struct CaptureResult {
    std::multiset<ReadMessage> read;
    /// Findings about rejected packets and missing answers.
    std::set<std::pair<DatagramId, std::string>> rejections;
    std::map<std::string, std::size_t> findings;
    std::set<std::string> playing; ///< clients with an established connection
    bool is_ordered = true;        ///< the records of each session are in the order of time
};

class ResultCollector final : public test::TypedRecordSink<ResultCollector> {
  public:
    void on(const record::SessionRecord& session) {
        check_order(session.head);
        clients_[session.head.session] = session.client;
        if (session.event == record::SessionEvent::established) {
            result.playing.emplace(session.client);
        }
    }

    void on(const record::MessageRecord& message) {
        check_order(message.head);
        result.read.emplace(datagram_id(message.head), std::string{message.name}, message.sequence,
                            message.size);
    }

    void on(const record::FindingRecord& found) {
        check_order(found.head);
        const std::string name{record::finding_info(found.id).name};
        ++result.findings[name];
        switch (found.id) {
        case FindingId::packet_not_accepted:
        case FindingId::packet_wrong_token:
        case FindingId::packet_seven:
        case FindingId::packet_control_unknown:
        case FindingId::session_server_silent:
        case FindingId::session_unanswered:
            result.rejections.emplace(datagram_id(found.head),
                                      name + ' ' + std::string{found.name});
            break;
        default:
            break;
        }
    }

    CaptureResult result;

  private:
    void check_order(const record::RecordHeader& head) {
        record::Timestamp& newest = newest_times_[head.session];
        result.is_ordered = result.is_ordered && head.time >= newest;
        newest = head.time;
    }

    [[nodiscard]] DatagramId datagram_id(const record::RecordHeader& head) {
        return {clients_[head.session], head.direction.value_or(kC2s), head.time};
    }

    std::map<std::uint32_t, std::string> clients_;
    std::map<std::uint32_t, record::Timestamp> newest_times_;
};

CaptureResult inspect_traffic(const Traffic& traffic) {
    ResultCollector collector;
    test::TrafficInspector run{{.sees_all_datagrams = false}, collector};
    run.play(traffic);
    return std::move(collector.result);
}

std::string message_text(const ReadMessage& read) {
    const auto& [id, name, sequence, size] = read;
    const auto& [client, direction, time] = id;
    return client + (direction == kC2s ? " c2s " : " s2c ") + std::to_string(time) + ' ' + name +
           " #" + std::to_string(sequence) + ' ' + std::to_string(size);
}

/// By session, the time after which all messages must be read.
using ResumeTimes = std::map<std::uint64_t, record::Timestamp>;

enum class ExtraMessages : bool { none, allowed };

/// Checks that the partial capture has only findings about receivers that the whole capture has,
/// too, and the same messages from half a second after `resumes` on.
void check_partial_capture(const CaptureResult& whole, const Traffic& part,
                           const ResumeTimes& resumes, ExtraMessages extra = ExtraMessages::none) {
    const CaptureResult result = inspect_traffic(part);
    CHECK(result.is_ordered);
    for (const auto& blame : result.rejections) {
        CAPTURE(std::get<std::string>(blame.first));
        CAPTURE(std::get<record::Timestamp>(blame.first));
        CAPTURE(blame.second);
        CHECK(whole.rejections.contains(blame));
    }
    constexpr record::Timestamp kSoon = 500'000'000;
    std::set<DatagramId> there;
    for (const TrafficDatagram& datagram : part) {
        const auto resumed = resumes.find(datagram.session);
        if (resumed != resumes.end() && datagram.time >= resumed->second + kSoon) {
            there.emplace("client " + std::to_string(datagram.session), datagram.direction,
                          datagram.time);
        }
    }
    const auto lacks = [&](const std::multiset<ReadMessage>& from,
                           const std::multiset<ReadMessage>& in) {
        std::string lines;
        for (const ReadMessage& read : from) {
            if (there.contains(std::get<0>(read)) && in.count(read) < from.count(read)) {
                lines += message_text(read) + "; ";
            }
        }
        constexpr std::size_t kShown = 400;
        return lines.substr(0, kShown);
    };
    CHECK(lacks(whole.read, result.read) == "");
    CHECK((extra == ExtraMessages::allowed ? "" : lacks(result.read, whole.read)) == "");
}

/// Returns the same time for all sessions.
ResumeTimes resume_all_at(const Traffic& part, record::Timestamp time) {
    ResumeTimes resumes;
    for (const TrafficDatagram& datagram : part) {
        resumes.emplace(datagram.session, time);
    }
    return resumes;
}

bool has_vital(const TrafficDatagram& datagram, wire::Protocol protocol) {
    wire::PacketScratch scratch;
    const auto packet = wire::decode_packet(datagram.bytes, protocol, scratch);
    if (!packet || packet->kind != wire::PacketKind::chunks) {
        return false;
    }
    wire::ChunkReader chunks{packet->payload, packet->num_chunks, packet->dialect};
    bool vital = false;
    while (const auto chunk = chunks.next()) {
        vital = vital || chunk->vital;
    }
    return vital;
}

/// Returns when both sides of each session have sent a vital chunk after a hole. Then their states
/// are known again. A session whose handshake is in the hole is not compared.
ResumeTimes resume_after_hole(const Traffic& traffic, std::size_t from, std::size_t to,
                              wire::Protocol protocol) {
    std::map<std::uint64_t, std::array<record::Timestamp, 2>> said;
    for (std::size_t i = to; i < traffic.size(); ++i) {
        auto& first = said[traffic[i].session].at(wire::index_of(traffic[i].direction));
        if (first == 0 && has_vital(traffic[i], protocol)) {
            first = traffic[i].time;
        }
    }
    ResumeTimes resumes;
    for (const auto& [session, times] : said) {
        if (times[0] != 0 && times[1] != 0) {
            resumes.emplace(session, std::max(times[0], times[1]));
        }
    }
    constexpr std::size_t kShort = 12; // 0.6 handshakes; 0.7 handshakes are as short or padded
    constexpr std::size_t kPadded = 512;
    for (std::size_t i = from; i < to; ++i) {
        const std::size_t size = traffic[i].bytes.size();
        if (!has_vital(traffic[i], protocol) && (size <= kShort || size >= kPadded)) {
            resumes.erase(traffic[i].session);
        }
    }
    return resumes;
}

const std::string_view kCaptures[] = {
    "seven-map-change", "seven-on-ddnet",     "token-ddnet-layers-rejoin", "token-high-bandwidth",
    "token-map-change", "token-map-download", "tokenless-map-change"};

Traffic read_golden(std::string_view name) {
    return test::read_traffic("../golden/" + std::string{name} + ".pcap");
}

/// Returns the distance between tested cuts; tests of all cuts would take a minute.
std::size_t cut_stride(std::size_t datagrams, std::size_t cuts) {
    return std::max<std::size_t>(1, datagrams / (cuts * test::rounds()));
}

Traffic keep_direction(const Traffic& traffic, wire::Direction direction) {
    Traffic half;
    std::ranges::copy_if(traffic, std::back_inserter(half), [&](const TrafficDatagram& datagram) {
        return datagram.direction == direction;
    });
    return half;
}

} // namespace

TEST_CASE("a complete capture gives the same records in a tap and in the relay") {
    for (const std::string_view name : kCaptures) {
        CAPTURE(name);
        std::array<Lines, 2> lines;
        for (const bool sees_all : {false, true}) {
            test::RecordLog log;
            test::TrafficInspector run{{.sees_all_datagrams = sees_all}, log};
            run.play(read_golden(name));
            lines.at(sees_all ? 1 : 0) =
                log.lines({"session", "message", "map", "snapshot", "finding", "summary"});
        }
        CHECK(lines[0].size() > 100);
        CHECK((lines[0] == lines[1]));
    }
}

TEST_CASE("a capture that begins midway gives no false findings, and soon the same messages") {
    for (const std::string_view name : kCaptures) {
        const Traffic traffic = read_golden(name);
        const CaptureResult whole = inspect_traffic(traffic);
        for (std::size_t cut = 1; cut < traffic.size(); cut += cut_stride(traffic.size(), 40)) {
            CAPTURE(name);
            CAPTURE(cut);
            const Traffic part{traffic.begin() + static_cast<std::ptrdiff_t>(cut), traffic.end()};
            check_partial_capture(whole, part, resume_all_at(part, part.front().time));
        }
    }
}

TEST_CASE("a capture with a hole gives no false findings, and soon the same messages") {
    for (const std::string_view name : kCaptures) {
        const Traffic traffic = read_golden(name);
        const CaptureResult whole = inspect_traffic(traffic);
        for (const std::size_t hole : {std::size_t{1}, std::size_t{6}, std::size_t{50}}) {
            for (std::size_t cut = 1; cut + hole < traffic.size();
                 cut += cut_stride(traffic.size(), 16)) {
                CAPTURE(name);
                CAPTURE(cut);
                CAPTURE(hole);
                Traffic part = traffic;
                const auto from = part.begin() + static_cast<std::ptrdiff_t>(cut);
                part.erase(from, from + static_cast<std::ptrdiff_t>(hole));
                check_partial_capture(whole, part,
                                      resume_after_hole(traffic, cut, cut + hole,
                                                        name.starts_with("seven")
                                                            ? wire::Protocol::seven
                                                            : wire::Protocol::six));
            }
        }
    }
}

TEST_CASE("a capture of one direction is read in full, with one finding per session") {
    for (const std::string_view name : kCaptures) {
        const Traffic traffic = read_golden(name);
        const CaptureResult whole = inspect_traffic(traffic);
        for (const wire::Direction direction : {kC2s, kS2c}) {
            CAPTURE(name);
            CAPTURE((direction == kC2s));
            const Traffic half = keep_direction(traffic, direction);
            check_partial_capture(whole, half, resume_all_at(half, 0), ExtraMessages::allowed);
            const CaptureResult result = inspect_traffic(half);
            const auto said = result.findings.find("session.one_direction");
            CHECK((said == result.findings.end() ? 0 : said->second) == whole.playing.size());
            // A 0.7 server's half of the handshake does not prove a connection.
            const bool seven = name.starts_with("seven") && direction == kS2c;
            CHECK((seven || result.findings.count("session.joined_midway") == 0));
            CHECK(result.findings.count("packet.undecided") == 0);
        }
    }
}

namespace {

/// Returns a packet with a chat line of the client, from another script's session.
Bytes client_chat_packet(SessionScript& peers) {
    return peers.pack(kC2s, {test::vital(test::evasion::real_message())});
}

std::size_t count_chat_messages(SessionScript& script) {
    return test::evasion::accepted_messages(script).size();
}

} // namespace

TEST_CASE("held datagrams are read once the server shows the protocol") {
    for (const bool seven : {false, true}) {
        CAPTURE(seven);
        SessionScript peers; // builds the packets that `script` gets
        seven ? peers.join_seven() : peers.join_ddnet();
        peers.enter_game();
        SessionScript script{kPartial};
        constexpr std::size_t kSaid = 5;
        for (std::size_t i = 0; i < kSaid; ++i) {
            script.send_datagram(kC2s,
                                 peers.pack(kC2s, {test::vital(peers.message_of("cl_kill"))}));
        }
        // A later query has its record after those of the held datagrams.
        Bytes query(10, std::byte{0xff});
        const std::string_view kind = "gie3\a";
        std::ranges::transform(kind, std::back_inserter(query),
                               [](char c) { return static_cast<std::byte>(c); });
        script.send_datagram(kC2s, query);
        CHECK(script.log().lines({"message"}).empty());
        for (int i = 0; i < 2; ++i) {
            script.send_datagram(kS2c, peers.snap_datagram(10 + 2 * i, snapshot::kNoBase, {}));
        }
        const Lines lines = script.log().lines({"session", "finding", "message"});
        REQUIRE(lines.size() >= 4 + kSaid);
        CHECK(lines[1] == (seven ? "session established 0.7" : "session established 0.6+ddnet"));
        CHECK(lines[2] == "finding session.joined_midway");
        CHECK(lines[3 + kSaid] == "message c2s get_info");
        CHECK(count_chat_messages(script) == kSaid);
        CHECK(script.log().findings().size() == 1);
        CHECK(script.stats(kC2s).datagrams == kSaid + 1);
    }
}

TEST_CASE("held datagrams take limited memory, and many show a capture of one direction") {
    SessionScript peers = test::joined_session();
    SessionScript script{kPartial};
    for (std::size_t i = 0; i < 3 * inspect::DatagramsOfUnknownProtocol::kMaxDatagrams; ++i) {
        script.send_datagram(kC2s, client_chat_packet(peers));
        CHECK(script.session().memory_bytes() <
              2 * inspect::DatagramsOfUnknownProtocol::kMaxBytes + std::size_t{1 << 20U});
    }
    CHECK(script.log().findings() == Lines{"finding session.one_direction s2c"});
}

TEST_CASE("a single packet of one direction is no connection") {
    SessionScript peers = test::joined_session();
    SessionScript script{kPartial};
    script.send_datagram(kC2s, client_chat_packet(peers));
    script.close("end of capture");
    CHECK(script.log().findings() == Lines{"finding packet.undecided not_established"});
    CHECK(script.log().lines({"session"}) == Lines{"session open", "session close end of capture"});
}

TEST_CASE("in a tap, too, packets that the server drops have no effect") {
    using test::Deviations;
    const Deviations rows[] = {{.ack = 1},         {.ack = 8},
                               {.ack = 300},       {.ack = -1},
                               {.ack = -100},      {.behind = test::bytes_of(test::kOtherToken)},
                               {.behind = Bytes{}}};
    for (const Deviations& odd : rows) {
        CAPTURE(odd.ack.value_or(0));
        SessionScript script{kPartial};
        script.join_ddnet();
        script.enter_game();
        script.snap(10, snapshot::kNoBase, test::kPickupAndEvent);
        script.log().clear();
        for (int i = 0; i < 300; ++i) {
            script.send_datagram(
                kC2s,
                script.pack_deviating(kC2s, {test::vital(test::evasion::forged_message())}, odd));
        }
        script.snap(12, 10, test::kPickupAndEvent);
        script.send(kC2s, test::evasion::real_message());
        CHECK(test::evasion::accepted_messages(script) == Lines{"cl_say"});
        CHECK(test::evasion::count_rejections(script) == 1);
    }
}
