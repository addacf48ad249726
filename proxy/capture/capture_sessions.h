#pragma once

#include "proxy/capture/frame_reader.h"
#include "proxy/inspect/inspector.h"
#include "proxy/record/interface.h"
#include "proxy/wire/message.h"

#include <array>
#include <cstdint>
#include <list>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tw::capture {

/// Determines which endpoint of a captured datagram is the server.
class ServerDetector {
  public:
    /// Adds a server, given by its port or by its address and port. If a server was added, only the
    /// traffic of added servers is used.
    void add_server(std::uint16_t port, std::optional<boost::asio::ip::address> address);

    /// The traffic that is used if no servers were added.
    enum class TrafficSelection : std::uint8_t {
        everything, ///< use all traffic, because the capture contains only games
        game_ports, ///< use recognised traffic, and traffic on the ports of game servers
        /// Use recognised traffic only, because other programs in a network may use any port.
        recognised,
    };

    void select_traffic(TrafficSelection selection) { selection_ = selection; }

    [[nodiscard]] bool has_servers() const { return !requested_servers_.empty(); }

    enum class Side : std::uint8_t { source, destination, neither };
    /// Returns which side of the datagram is the server; `neither` if the datagram is not used.
    [[nodiscard]] Side find_server_side(const CapturedDatagram& datagram);

    /// Returns true if the datagram has content that only clients send, so that its destination is
    /// the server. Returns false if servers were added.
    [[nodiscard]] bool is_from_client(const CapturedDatagram& datagram);

  private:
    struct RequestedServer {
        std::uint16_t port;
        std::optional<boost::asio::ip::address> address;
    };

    [[nodiscard]] bool is_requested_server(const CaptureEndpoint& endpoint) const;
    [[nodiscard]] Side recognise_server_side(const CapturedDatagram& datagram);
    void remember_server(const CaptureEndpoint& server);

    std::vector<RequestedServer> requested_servers_;
    TrafficSelection selection_ = TrafficSelection::everything;
    std::set<CaptureEndpoint> servers_; ///< the servers found so far, at most kMaxServers
};

/// Why a session of a capture ended.
enum class SessionEndReason : std::uint8_t {
    idle,
    evicted, ///< replaced by a new connection, because the limit of sessions was reached
    /// Server and client had been confused. A new session follows, with the sides exchanged.
    sides_exchanged,
};

/// Receives the sessions and datagrams found in captured traffic.
class SessionReceiver : public record::InterfaceBase {
  public:
    /// Called when a session begins. `key`: the session's number, from 1.
    virtual void on_session_open(std::uint64_t key, std::int64_t time,
                                 const CaptureEndpoint& client, const CaptureEndpoint& server) = 0;
    /// Called for each datagram of a session. `next`: the next datagram of any session, or empty.
    virtual void on_datagram(std::uint64_t key, std::int64_t time, wire::Direction direction,
                             std::span<const std::byte> bytes, std::span<const std::byte> next) = 0;

    /// Called for a datagram that belongs to no session and is not passed to on_datagram(). An
    /// earlier call of on_datagram() may have announced the datagram as `next`.
    virtual void on_ignored_datagram() {}

    /// Called for a datagram whose content is unknown because the recorder truncated it.
    virtual void on_truncated_datagram(std::uint64_t /*key*/, std::int64_t /*time*/) {}

    /// Called with a session's state in the capture, encoded by inspect::encode_checkpoint().
    virtual void on_session_state(std::uint64_t /*key*/, std::span<const std::byte> /*state*/) {}

    virtual void on_session_end(std::uint64_t key, std::int64_t time, SessionEndReason why) = 0;
};

class InspectorSessionReceiver final : public SessionReceiver {
  public:
    /// `pseudonym_key`: key for pseudonyms of client addresses; empty to write the addresses.
    InspectorSessionReceiver(inspect::Inspector& inspector, std::string pseudonym_key)
        : inspector_{&inspector}, pseudonym_key_{std::move(pseudonym_key)} {}

    void on_session_open(std::uint64_t key, std::int64_t time, const CaptureEndpoint& client,
                         const CaptureEndpoint& server) override;
    void on_datagram(std::uint64_t key, std::int64_t time, wire::Direction direction,
                     std::span<const std::byte> bytes, std::span<const std::byte> next) override;

    void on_ignored_datagram() override { inspector_->forget_next_datagram(); }

    void on_truncated_datagram(std::uint64_t key, std::int64_t time) override;

    void on_session_state(std::uint64_t key, std::span<const std::byte> state) override;
    void on_session_end(std::uint64_t key, std::int64_t time, SessionEndReason why) override;

  private:
    inspect::Inspector* inspector_;
    std::string pseudonym_key_;
};

/// Assigns the datagrams of a capture to sessions. A session opens with its first datagram and
/// closes when it is idle, by the times in the capture.
class CaptureSessions {
  public:
    struct Limits {
        std::int64_t idle_timeout = 60'000'000'000; ///< in nanoseconds; the default of the relay
        std::size_t max_sessions = 65536;           ///< limit of sessions open at the same time
    };

    CaptureSessions(SessionReceiver& receiver, ServerDetector& detector, Limits limits)
        : receiver_{&receiver}, detector_{&detector}, limits_{limits} {}

    void on_datagram(const CapturedDatagram& datagram);
    /// Advances the time while no datagram arrives. Closes idle sessions.
    void on_time(std::int64_t now);

    [[nodiscard]] std::uint64_t ignored_datagrams() const { return ignored_count_; }

    [[nodiscard]] std::uint64_t refused_datagrams() const { return refused_count_; }

    /// Returns the number of truncated datagrams of open sessions.
    [[nodiscard]] std::uint64_t truncated_datagrams() const { return truncated_count_; }

    [[nodiscard]] std::int64_t current_time() const { return now_; }

  private:
    using EndpointPair = std::pair<CaptureEndpoint, CaptureEndpoint>; ///< client and server

    struct PairHash {
        std::size_t operator()(const EndpointPair& pair) const;
    };

    /// The progress of a session. A session never returns to an earlier stage.
    enum class SessionStage : std::uint8_t {
        info_only, ///< only requests for server information, no connection
        one_sided, ///< a connection with datagrams of one side
        two_sided  ///< a connection with datagrams of both sides
    };

    /// The sessions of one stage, sorted by the time of their latest datagram, the earliest first.
    using SessionList = std::list<const EndpointPair*>;

    struct OpenSession {
        std::uint64_t key = 0;
        std::int64_t last_time = 0;
        bool are_sides_known =
            false; ///< the content of a datagram has shown which side is the client
        /// The directions in which a datagram of the connection was seen.
        std::array<bool, 2> seen_directions{};
        SessionStage stage = SessionStage::info_only;
        SessionList::iterator list_position{};
    };

    using Sessions = std::unordered_map<EndpointPair, OpenSession, PairHash>;

    [[nodiscard]] Sessions::iterator find_session(const CapturedDatagram& datagram,
                                                  wire::Direction& direction);
    [[nodiscard]] Sessions::iterator open_session(const CapturedDatagram& datagram);
    void on_truncated_datagram(Sessions::iterator session);
    [[nodiscard]] bool make_room_for_session(bool is_connection);
    void update_session_activity(Sessions::iterator session, wire::Direction direction,
                                 bool is_connection);
    void end_session(Sessions::iterator session, SessionEndReason why);
    void close_idle_sessions();

    SessionReceiver* receiver_;
    ServerDetector* detector_;
    Limits limits_;
    Sessions open_sessions_;
    std::array<SessionList, 3> sessions_by_stage_; ///< one list for each stage
    std::uint64_t next_key_ = 1;
    std::uint64_t ignored_count_ = 0;
    std::uint64_t refused_count_ = 0;
    std::uint64_t truncated_count_ = 0;
    std::int64_t now_ = 0;
    std::int64_t next_idle_check_ = 0;
};

} // namespace tw::capture
