#pragma once

#include "proxy/capture/capture_file.h"
#include "proxy/inspect/inspector.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

namespace tw::capture {

/// Tells which side of a captured conversation is the server.
class ServerGuess {
  public:
    /// With a server given only its traffic counts. Its port alone, or address and port.
    void only(std::uint16_t port, std::optional<boost::asio::ip::address> address);

    enum class Side : std::uint8_t { source, destination, neither };
    /// Which end of this datagram is the server; `neither`: not traffic of the server asked for.
    [[nodiscard]] Side server_side(const CapturedDatagram& datagram);

  private:
    [[nodiscard]] bool is_wanted(const CaptureEndpoint& endpoint) const;

    std::optional<std::uint16_t> port_;
    std::optional<boost::asio::ip::address> address_;
    std::set<CaptureEndpoint> servers_; ///< found so far; bounded by kMaxServers
};

/// Turns the datagrams of a capture into the calls the relay makes for live traffic: sessions open
/// with their first datagram and close when idle, by the capture's own clock.
class CaptureSessions {
  public:
    struct Limits {
        std::int64_t idle_timeout = 60'000'000'000; ///< nanoseconds, as the relay's default
        std::string pseudonym_key{};                ///< empty: client addresses as they are
        std::size_t max_sessions = 65536;           ///< open at one time
    };

    CaptureSessions(inspect::Inspector& inspector, ServerGuess& guess, Limits limits)
        : inspector_{&inspector}, guess_{&guess}, limits_{std::move(limits)} {}

    void on_datagram(const CapturedDatagram& datagram);
    void finish();

    [[nodiscard]] std::uint64_t ignored() const { return ignored_; }

    [[nodiscard]] std::uint64_t refused() const { return refused_; }

    [[nodiscard]] std::int64_t now() const { return now_; }

  private:
    struct PairHash {
        std::size_t operator()(const std::pair<CaptureEndpoint, CaptureEndpoint>& pair) const;
    };

    struct Open {
        std::uint64_t key = 0;
        std::int64_t last = 0;
    };

    void close_idle();

    inspect::Inspector* inspector_;
    ServerGuess* guess_;
    Limits limits_;
    std::unordered_map<std::pair<CaptureEndpoint, CaptureEndpoint>, Open, PairHash> open_;
    std::uint64_t next_key_ = 1;
    std::uint64_t ignored_ = 0;
    std::uint64_t refused_ = 0;
    std::int64_t now_ = 0;
    std::int64_t next_sweep_ = 0;
};

} // namespace tw::capture
