#pragma once

#include "proxy/relay/clock.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/steady_timer.hpp>

namespace tw::run {

/// How an address to listen on is reached from here: the unspecified one by loopback.
[[nodiscard]] boost::asio::ip::udp::endpoint
reachable(const boost::asio::ip::udp::endpoint& listening);

/// Asks a game server for its information, as server browsers do, and waits for the answer: in
/// 0.6's way, and where no answer comes at once, in 0.7's too (0.7 sheet, section 10). Through a
/// relay it proves both: that datagrams pass in both directions, and that the server lives.
class ServerProbe {
  public:
    /// More who ask at the same time get no answer.
    static constexpr std::size_t kMaxWaiting = 64;

    ServerProbe(boost::asio::io_context& io, boost::asio::ip::udp::endpoint where,
                std::chrono::milliseconds deadline);

    /// Asks, and says on the io_context's thread whether an answer came within the deadline. Who
    /// asks while one is under way gets its answer.
    void ask(std::function<void(bool answered)> done);

    /// Forgets who is waiting.
    void stop();

  private:
    void send();
    void receive();
    void finish(bool answered);
    /// Whether the datagram is the answer.
    bool take(std::span<const std::byte> datagram);

    boost::asio::ip::udp::endpoint where_;
    std::chrono::milliseconds deadline_;
    boost::asio::ip::udp::socket socket_;
    boost::asio::steady_timer timer_;
    std::vector<std::function<void(bool)>> waiting_;
    std::vector<std::byte> buffer_;
    std::uint8_t token_ = 0; ///< which the answer repeats
    bool repeated_ = false;  ///< the first request had no answer
    relay::Clock::time_point ends_;
};

} // namespace tw::run
