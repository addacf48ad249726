#include "proxy/process/server_probe.h"

#include "proxy/base/log.h"
#include "proxy/record/terminal_text.h"
#include "proxy/relay/listen_socket.h"
#include "proxy/wire/connless.h"
#include "proxy/wire/packet.h"
#include "snapshot/cursor.h"

#include <algorithm>
#include <array>
#include <deque>
#include <string_view>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <fmt/format.h>

namespace tw::process {

namespace {

namespace asio = boost::asio;
using Udp = asio::ip::udp;

/// The interval at which the request is repeated, because datagrams can be lost.
constexpr std::chrono::milliseconds kRepeatInterval{250};

/// The offset of the token in the payload of a request or answer, after four bytes 0xff and four
/// bytes of magic. In 0.6 answers, the token is a decimal number.
constexpr std::size_t kTokenOffset = 8;

/// Returns a 0.6 info request: ff ff ff ff "gie3" and the token.
std::vector<std::byte> info_request(std::uint8_t token) {
    const std::array<std::byte, 9> payload{std::byte{0xff}, std::byte{0xff}, std::byte{0xff},
                                           std::byte{0xff}, std::byte{'g'},  std::byte{'i'},
                                           std::byte{'e'},  std::byte{'3'},  std::byte{token}};
    return wire::encode_connless(payload);
}

/// The client token for 0.7 servers. It need not be secret.
constexpr wire::Token kClientToken{'t', 'w', 's', 'c'};

/// Returns a padded 0.7 token request. Servers ignore shorter token requests, so that an answer is
/// never longer than its request.
std::vector<std::byte> encode_token_request() {
    constexpr std::size_t kPadded = 520;
    auto request = wire::encode_control({.kind = wire::ControlKind::token,
                                         .token = kClientToken,
                                         .seven_token = wire::kTokenUnknown});
    request.resize(kPadded);
    return request;
}

/// Returns a 0.7 info request. `server`: the server's token.
std::vector<std::byte> encode_seven_info_request(const wire::Token& server, std::uint8_t token) {
    std::vector<std::byte> request{std::byte{0x21}};
    const auto append = [&](std::span<const std::byte> bytes) {
        request.insert(request.end(), bytes.begin(), bytes.end());
    };
    append(std::as_bytes(std::span{server}));
    append(std::as_bytes(std::span{kClientToken}));
    const auto plain = info_request(token);
    append(std::span{plain}.subspan(wire::kConnlessHeaderSize, kTokenOffset));
    snapshot::encode_varint(token, request);
    return request;
}

/// The content of a datagram from a server.
enum class AnswerKind : std::uint8_t { none, token, info };

/// Returns whether a datagram contains a server's info (with the token `token`), a 0.7 server's own
/// token, or neither. Stores a 0.7 server's own token in `server`.
AnswerKind read_answer(std::span<const std::byte> datagram, std::uint8_t token,
                       wire::Token& server) {
    wire::PacketScratch scratch;
    const auto packet = wire::decode_packet(datagram, wire::Protocol::unknown, scratch);
    if (!packet) {
        return AnswerKind::none;
    }
    const bool seven = packet->dialect == wire::Dialect::seven;
    if (packet->kind == wire::PacketKind::control) {
        const wire::Control control = wire::decode_control(*packet, std::nullopt);
        const bool ours = seven && control.kind == wire::ControlKind::token && control.token &&
                          packet->header_token == kClientToken;
        server = ours ? *control.token : server;
        return ours ? AnswerKind::token : AnswerKind::none;
    }
    const wire::ConnlessSpec* spec = packet->kind == wire::PacketKind::connless
                                         ? wire::find_connless(packet->payload, packet->dialect)
                                         : nullptr;
    if (spec == nullptr || !spec->name.starts_with("info")) {
        return AnswerKind::none;
    }
    const auto body = packet->payload.subspan(kTokenOffset);
    if (seven) {
        std::int32_t repeated = -1;
        const bool there = snapshot::decode_varint(body.data(), body.size(), repeated) != 0;
        return there && repeated == token && packet->header_token == kClientToken
                   ? AnswerKind::info
                   : AnswerKind::none;
    }
    const std::string_view text{reinterpret_cast<const char*>(body.data()), body.size()};
    return text.starts_with(std::to_string(token) + '\0') ? AnswerKind::info : AnswerKind::none;
}

/// The maximum number of addresses to which a request is sent.
constexpr std::size_t kMaxAddresses = 16;

} // namespace

Udp::endpoint reachable_address(const Udp::endpoint& listening) {
    if (!listening.address().is_unspecified()) {
        return listening;
    }
    return listening.address().is_v4()
               ? Udp::endpoint{asio::ip::address_v4::loopback(), listening.port()}
               : Udp::endpoint{asio::ip::address_v6::loopback(), listening.port()};
}

ServerProbe::ServerProbe(asio::io_context& io, Udp::endpoint where,
                         std::chrono::milliseconds deadline)
    : where_{std::move(where)}, deadline_{deadline}, socket_{io}, timer_{io},
      buffer_(wire::kMaxDatagramSize) {}

void ServerProbe::request_info(std::function<void(bool)> done) {
    if (waiting_.size() >= kMaxWaitingCallbacks) {
        return done(false);
    }
    waiting_.push_back(std::move(done));
    if (waiting_.size() > 1) {
        return;
    }
    boost::system::error_code error;
    if (!socket_.is_open()) {
        // The socket is connected, so that only datagrams from the server are received.
        socket_.connect(where_, error);
        if (error) {
            socket_.close(error);
            return finish_request(false);
        }
    }
    ++token_;
    repeated_ = false;
    deadline_at_ = base::Clock::now() + deadline_;
    await_answer();
    send_request();
}

void ServerProbe::send_request() {
    const auto now = base::Clock::now();
    if (now >= deadline_at_) {
        return finish_request(false);
    }
    boost::system::error_code ignored; // an error has the same effect as a lost datagram
    socket_.send(asio::buffer(info_request(token_)), 0, ignored);
    // Most servers answer the first 0.6 request, so the 0.7 request is sent only with repetitions.
    if (repeated_) {
        socket_.send(asio::buffer(encode_token_request()), 0, ignored);
    }
    repeated_ = true;
    timer_.expires_at(std::min(now + kRepeatInterval, deadline_at_));
    timer_.async_wait([this](const boost::system::error_code& error) {
        if (!error && !waiting_.empty()) {
            send_request();
        }
    });
}

void ServerProbe::await_answer() {
    socket_.async_receive(asio::buffer(buffer_), [this](const boost::system::error_code& error,
                                                        std::size_t size) {
        if (error == asio::error::operation_aborted || waiting_.empty()) {
            return;
        }
        wire::Token server{};
        const AnswerKind answer =
            error ? AnswerKind::none : read_answer(std::span{buffer_}.first(size), token_, server);
        if (answer == AnswerKind::info) {
            return finish_request(true);
        }
        if (answer == AnswerKind::token) {
            boost::system::error_code ignored;
            socket_.send(asio::buffer(encode_seven_info_request(server, token_)), 0, ignored);
        }
        // "connection refused" is ignored: the server may be starting
        await_answer();
    });
}

void ServerProbe::finish_request(bool answered) {
    timer_.cancel();
    // The socket stays open, so that the relay assigns later requests to the same session.
    boost::system::error_code ignored;
    socket_.cancel(ignored);
    for (const auto& done : std::exchange(waiting_, {})) {
        done(answered);
    }
}

void ServerProbe::stop() {
    waiting_.clear();
    timer_.cancel();
    boost::system::error_code ignored;
    socket_.cancel(ignored);
}

std::vector<Udp::endpoint> find_answering_addresses(const std::vector<Udp::endpoint>& addresses,
                                                    AnswersWanted wanted,
                                                    std::chrono::milliseconds deadline) {
    if (addresses.size() < 2) {
        return addresses;
    }
    boost::asio::io_context io;
    std::deque<ServerProbe> probes;
    std::vector<bool> answered(std::min(addresses.size(), kMaxAddresses));
    std::size_t waiting = answered.size();
    for (std::size_t i = 0; i < answered.size(); ++i) {
        probes.emplace_back(io, addresses[i], deadline).request_info([&, i](bool answer) {
            answered[i] = answer;
            --waiting;
            if (waiting == 0 || (answer && wanted == AnswersWanted::one)) {
                io.stop();
            }
        });
    }
    io.run();
    std::vector<Udp::endpoint> found;
    for (std::size_t i = 0; i < answered.size(); ++i) {
        if (answered[i]) {
            found.push_back(addresses[i]);
        }
    }
    return found.empty() ? addresses : found;
}

std::vector<Udp::endpoint> resolve_answering_addresses(const std::string& host, std::uint16_t port,
                                                       AnswersWanted wanted) {
    return find_answering_addresses(relay::resolve_addresses(host, port), wanted);
}

SilenceDetector::Change SilenceDetector::on_second(Time now, const relay::Counters& counters) {
    const auto added = [](std::uint64_t& last, std::uint64_t total) {
        return total - std::exchange(last, total);
    };
    const std::uint64_t sent =
        added(to_server_, counters.directions[0].datagrams - counters.unanswerable_datagrams);
    const std::uint64_t refused = added(refused_, counters.icmp_refused);
    if (added(from_server_, counters.directions[1].datagrams) != 0) {
        if (std::exchange(silent_, false)) {
            return Change::ended;
        }
        silence_ = {};
        return Change::none;
    }
    if (sent != 0) {
        if (!silent_ && (silence_.unanswered == 0 || now - last_sent_ > kMaxSendPause)) {
            silence_ = {.since = now};
        }
        last_sent_ = now;
        silence_.unanswered += sent;
    }
    silence_.refused += refused;
    if (!silent_ && silence_.unanswered >= kMinUnansweredDatagrams &&
        last_sent_ - silence_.since >= kSilenceTime) {
        silent_ = true;
        return Change::began;
    }
    return Change::none;
}

SilenceDetector::Change SilenceReporter::detect_change(SilenceDetector::Time now,
                                                       const relay::Counters& counters,
                                                       const SendRequest& send_request) {
    using Change = SilenceDetector::Change;
    const Change change = detector_.on_second(now, counters);
    if (change == Change::began && send_request) {
        seconds_left_ = kAnswerTimeoutSeconds;
        send_request();
        return Change::none;
    }
    if (seconds_left_ == 0) {
        // If all clients have given up, only an answer to this request shows that the server is
        // back.
        if (detector_.is_silent() && send_request &&
            ++num_silent_calls_ % kRequestIntervalSeconds == 0) {
            send_request();
        }
        return change;
    }
    if (change == Change::ended) {
        seconds_left_ = 0; // the silence is not reported, because the server has answered
        return Change::none;
    }
    return --seconds_left_ == 0 ? Change::began : Change::none;
}

void SilenceReporter::report_changes(SilenceDetector::Time now, const relay::Counters& counters,
                                     const std::string& server, const ShowSilence& show,
                                     const SendRequest& send_request) {
    const SilenceDetector::Change change = detect_change(now, counters, send_request);
    const SilenceDetector::Silence& silence = detector_.silence();
    if (change == SilenceDetector::Change::began) {
        since_ = base::now_utc() - std::chrono::nanoseconds{now - silence.since}.count();
    }
    const auto since = silent_since();
    if (show && (since || change != SilenceDetector::Change::none)) {
        show(since ? std::optional{web::ServerSilence{.since_ms = base::to_unix_ms(*since),
                                                      .unanswered = silence.unanswered,
                                                      .refused = silence.refused}}
                   : std::nullopt);
    }
    log_silence_change(change, server, silence, now);
}

std::optional<base::Timestamp> SilenceReporter::silent_since() const {
    return detector_.is_silent() && seconds_left_ == 0 ? std::optional{since_} : std::nullopt;
}

void log_silence_change(SilenceDetector::Change change, const std::string& server,
                        const SilenceDetector::Silence& silence, SilenceDetector::Time now) {
    if (change == SilenceDetector::Change::began) {
        log::warn("{}", describe_silence_change(change, server, silence, now));
    } else if (change == SilenceDetector::Change::ended) {
        log::info("{}", describe_silence_change(change, server, silence, now));
    }
}

std::string describe_silence_change(SilenceDetector::Change change, const std::string& server,
                                    const SilenceDetector::Silence& silence,
                                    SilenceDetector::Time now) {
    const std::string datagrams = record::count_with_noun(silence.unanswered, "datagram[s]");
    const auto elapsed = std::chrono::round<std::chrono::seconds>(now - silence.since).count();
    const std::string time =
        record::count_with_noun(static_cast<std::uint64_t>(elapsed), "second[s]");
    if (change == SilenceDetector::Change::ended) {
        return fmt::format("the server {} answers again, after {} and {}", server, time, datagrams);
    }
    return fmt::format(
        "the server {} does not answer: {} in {} without an answer{}", server, datagrams, time,
        silence.refused == 0 ? ""
                             : fmt::format(", {} refused: nothing listens there", silence.refused));
}

} // namespace tw::process
