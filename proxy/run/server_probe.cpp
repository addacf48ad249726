#include "proxy/run/server_probe.h"

#include "proxy/relay/clock.h"
#include "proxy/wire/connless.h"
#include "proxy/wire/encode.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/buffer.hpp>

namespace tw::run {

namespace {

namespace asio = boost::asio;
using Udp = asio::ip::udp;

/// A datagram may be lost: the request is repeated this often.
constexpr std::chrono::milliseconds kRepeat{250};

/// ff ff ff ff "gie3" and the token.
std::vector<std::byte> info_request(std::uint8_t token) {
    const std::array<std::byte, 9> payload{std::byte{0xff}, std::byte{0xff}, std::byte{0xff},
                                           std::byte{0xff}, std::byte{'g'},  std::byte{'i'},
                                           std::byte{'e'},  std::byte{'3'},  std::byte{token}};
    return wire::encode_connless(payload);
}

/// Whether it is a server's information, in any of its forms, and the answer to this token.
bool is_answer(std::span<const std::byte> datagram, std::uint8_t token) {
    wire::PacketScratch scratch;
    const auto packet = wire::decode_packet(datagram, wire::Protocol::unknown, scratch);
    if (!packet || packet->kind != wire::PacketKind::connless) {
        return false;
    }
    const wire::ConnlessSpec* spec = wire::find_connless(packet->payload);
    if (spec == nullptr || !spec->name.starts_with("info")) {
        return false;
    }
    const std::string_view body{reinterpret_cast<const char*>(packet->payload.data()),
                                packet->payload.size()};
    // Behind the four bytes ff and the four of the magic: the token in decimal and a NUL.
    constexpr std::size_t kMagicEnd = 8;
    return body.substr(kMagicEnd).starts_with(std::to_string(token) + '\0');
}

} // namespace

Udp::endpoint reachable(const Udp::endpoint& listening) {
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

void ServerProbe::ask(std::function<void(bool)> done) {
    if (waiting_.size() >= kMaxWaiting) {
        return done(false);
    }
    waiting_.push_back(std::move(done));
    if (waiting_.size() > 1) {
        return;
    }
    boost::system::error_code error;
    if (!socket_.is_open()) {
        // Connected, so that only the answers of whom we asked come in.
        socket_.connect(where_, error);
        if (error) {
            socket_.close(error);
            return finish(false);
        }
    }
    ++token_;
    ends_ = relay::Clock::now() + deadline_;
    receive();
    send();
}

void ServerProbe::send() {
    const auto now = relay::Clock::now();
    if (now >= ends_) {
        return finish(false);
    }
    boost::system::error_code ignored; // nobody there: no answer comes, and that is reported
    socket_.send(asio::buffer(info_request(token_)), 0, ignored);
    timer_.expires_at(std::min(now + kRepeat, ends_));
    timer_.async_wait([this](const boost::system::error_code& error) {
        if (!error && !waiting_.empty()) {
            send();
        }
    });
}

void ServerProbe::receive() {
    socket_.async_receive(asio::buffer(buffer_),
                          [this](const boost::system::error_code& error, std::size_t size) {
                              if (error == asio::error::operation_aborted || waiting_.empty()) {
                                  return;
                              }
                              if (!error && is_answer(std::span{buffer_}.first(size), token_)) {
                                  return finish(true);
                              }
                              receive(); // "refused" ends nothing: the server may come
                          });
}

void ServerProbe::finish(bool answered) {
    timer_.cancel();
    // The socket stays: to a relay, whoever asks from the same address again is the same session.
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

} // namespace tw::run
