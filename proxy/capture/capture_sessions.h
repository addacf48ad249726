#pragma once

#include "proxy/capture/captured.h"
#include "proxy/inspect/inspector.h"
#include "proxy/wire/direction.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tw::capture {

/// Tells which side of a captured conversation is the server.
class ServerGuess {
  public:
    /// With servers given only their traffic counts; once for each. Its port alone, or address and
    /// port.
    void only(std::uint16_t port, std::optional<boost::asio::ip::address> address);

    /// Without one given, only traffic that shows what it is counts: the rest of a network's is not
    /// taken for a game by its ports.
    void only_recognised() { only_recognised_ = true; }

    enum class Side : std::uint8_t { source, destination, neither };
    /// Which end of this datagram is the server; `neither`: not traffic of a server asked for.
    [[nodiscard]] Side server_side(const CapturedDatagram& datagram);

  private:
    struct Wanted {
        std::uint16_t port;
        std::optional<boost::asio::ip::address> address;
    };

    [[nodiscard]] bool is_wanted(const CaptureEndpoint& endpoint) const;
    [[nodiscard]] Side recognised_side(const CapturedDatagram& datagram);

    std::vector<Wanted> wanted_;
    bool only_recognised_ = false;
    std::set<CaptureEndpoint> servers_; ///< found so far; bounded by kMaxServers
};

/// Told of sessions as the relay tells of live ones.
class SessionReceiver {
  public:
    SessionReceiver() = default;
    virtual ~SessionReceiver() = default;
    SessionReceiver(const SessionReceiver&) = delete;
    SessionReceiver& operator=(const SessionReceiver&) = delete;
    SessionReceiver(SessionReceiver&&) = delete;
    SessionReceiver& operator=(SessionReceiver&&) = delete;

    /// `key`: the session's, from 1.
    virtual void on_open(std::uint64_t key, std::int64_t time, const CaptureEndpoint& client,
                         const CaptureEndpoint& server) = 0;
    virtual void on_datagram(std::uint64_t key, std::int64_t time, wire::Direction direction,
                             std::span<const std::byte> bytes) = 0;
    virtual void on_idle(std::uint64_t key, std::int64_t time) = 0;
};

/// Sessions of files: straight to who inspects.
class InspectedSessions final : public SessionReceiver {
  public:
    /// `pseudonym_key`: empty: client addresses as they are.
    InspectedSessions(inspect::Inspector& inspector, std::string pseudonym_key)
        : inspector_{&inspector}, pseudonym_key_{std::move(pseudonym_key)} {}

    void on_open(std::uint64_t key, std::int64_t time, const CaptureEndpoint& client,
                 const CaptureEndpoint& server) override;
    void on_datagram(std::uint64_t key, std::int64_t time, wire::Direction direction,
                     std::span<const std::byte> bytes) override;
    void on_idle(std::uint64_t key, std::int64_t time) override;

  private:
    inspect::Inspector* inspector_;
    std::string pseudonym_key_;
};

/// Turns the datagrams of a capture into the calls the relay makes for live traffic: sessions open
/// with their first datagram and close when idle, by the capture's own clock.
class CaptureSessions {
  public:
    struct Limits {
        std::int64_t idle_timeout = 60'000'000'000; ///< nanoseconds, as the relay's default
        std::size_t max_sessions = 65536;           ///< open at one time
    };

    CaptureSessions(SessionReceiver& receiver, ServerGuess& guess, Limits limits)
        : receiver_{&receiver}, guess_{&guess}, limits_{limits} {}

    void on_datagram(const CapturedDatagram& datagram);
    /// Nothing came, and it is as late as this.
    void on_time(std::int64_t now);

    [[nodiscard]] std::size_t num_open() const { return open_.size(); }

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

    SessionReceiver* receiver_;
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
