#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <boost/asio/ip/udp.hpp>

namespace tw::run {

/// How many of a server's addresses have to answer before the others are given up.
enum class Enough : std::uint8_t { one, all };

/// A question for its information gets an answer from a server within this time: it is repeated four
/// times.
inline constexpr std::chrono::milliseconds kAnswerDeadline{1000};

/// Those of a server's addresses that answer when asked for its information, in the order given. All
/// of them if none answers. A single one is not asked. Blocks, at most until the deadline.
[[nodiscard]] std::vector<boost::asio::ip::udp::endpoint>
answering(const std::vector<boost::asio::ip::udp::endpoint>& addresses, Enough enough,
          std::chrono::milliseconds deadline = kAnswerDeadline);

/// The addresses that a name leads to, those that answer. A name may have addresses of both families,
/// or of several machines, of which the server listens on one. Blocks. Errors: relay::StartError.
[[nodiscard]] std::vector<boost::asio::ip::udp::endpoint>
resolve_answering(const std::string& host, std::uint16_t port, Enough enough);

} // namespace tw::run
