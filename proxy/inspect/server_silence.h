#pragma once

#include "proxy/inspect/reporter.h"
#include "proxy/record/records.h"
#include "proxy/wire/message.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tw::inspect {

class ServerSilence;

/// State shared by one worker's sessions of the same server: whether it answers anybody, when it
/// was silent to all of them at once, and which program it is.
class SharedServer {
  public:
    /// A time in which the server sent nothing to any session. A server sends to each player every
    /// 20 or 40 ms.
    struct Pause {
        record::Timestamp from = 0;
        record::Timestamp to = 0;
        std::size_t sessions = 0; ///< sessions the server was sending to when the pause began
        bool was_stopped = false; ///< a session proved that the server did not run
        bool was_cut_off = false; ///< a session proved that the server's datagrams were lost
    };

    static constexpr record::Timestamp kPause = 100'000'000;      ///< ns; minimum length of a pause
    static constexpr record::Timestamp kRecently = 1'000'000'000; ///< ns
    /// Tolerance of find_pause: one server step.
    static constexpr record::Timestamp kSlack = 60'000'000;

    /// The server sent a datagram to any session.
    void on_answer(record::Timestamp now);

    /// The pause that covers [from, to] within kSlack; null if the server sent a datagram in that
    /// time. Pauses are kept for at least one second.
    [[nodiscard]] Pause* find_pause(record::Timestamp from, record::Timestamp to);

    /// Whether the server has sent a datagram to any session since `time`.
    [[nodiscard]] bool has_answered_since(record::Timestamp time) const { return heard_ >= time; }

    /// Number of sessions that the server has sent a datagram to since `time`.
    [[nodiscard]] std::size_t sessions_heard_since(record::Timestamp time) const;

    /// A silence toward all sessions together, which is reported once.
    struct Silence {
        record::Timestamp since = 0;
        std::uint64_t unanswered = 0;
    };

    std::optional<Silence> silence;

    /// Whether the server's last 0.7 ACCEPT, to any session, had DDNet's form; nullopt if none was
    /// seen.
    std::optional<bool> accepts_as_ddnet;

  private:
    friend class ServerSilence;
    static constexpr std::size_t kPauses = 16;

    std::vector<const ServerSilence*> sessions_; ///< open sessions
    record::Timestamp heard_ = 0;
    std::array<Pause, kPauses> pauses_{}; ///< ring buffer
    std::size_t num_pauses_ = 0;
};

/// The servers of one worker, by address. A server lives as long as it has sessions.
class SharedServers {
  public:
    [[nodiscard]] std::shared_ptr<SharedServer> find_or_add(const std::string& address);

  private:
    /// Beyond this size, entries of servers without sessions are removed before one is added.
    static constexpr std::size_t kMany = 64;

    std::unordered_map<std::string, std::weak_ptr<SharedServer>> servers_;
};

/// Reports a server that answers none of its sessions: one finding when the silence begins and one
/// when it ends, however many sessions wait. Also reports a server that stops and resumes answering
/// only this session. Ignores the contents of datagrams.
class ServerSilence {
  public:
    /// A silence is reported after this many unanswered datagrams in a row and kMinSilence. Clients
    /// repeat a CONNECT twice a second and send 50 inputs a second, so one lost datagram or a short
    /// pause is not reported.
    static constexpr std::uint64_t kUnanswered = 3;
    static constexpr record::Timestamp kMinSilence = 3'000'000'000; ///< ns
    /// A client that sends less often than this is not waiting for an answer.
    static constexpr record::Timestamp kPause = 5'000'000'000; ///< ns

    explicit ServerSilence(std::shared_ptr<SharedServer> server);
    ~ServerSilence();
    ServerSilence(const ServerSilence&) = delete;
    ServerSilence& operator=(const ServerSilence&) = delete;
    ServerSilence(ServerSilence&&) = delete;
    ServerSilence& operator=(ServerSilence&&) = delete;

    /// A datagram of this session passed. `server`: the server's address.
    void on_datagram(std::string_view server, Reporter& reporter);
    /// Copies of datagrams were lost, possibly an answer.
    void on_gap();

    [[nodiscard]] SharedServer& server() const { return *server_; }

    /// Time of the server's last datagram to this session.
    [[nodiscard]] record::Timestamp heard() const { return heard_; }

  private:
    using Silence = SharedServer::Silence;

    void wait_alone(std::string_view server, Reporter& reporter);
    void end_waiting_alone(std::string_view server, Reporter& reporter);
    static void report(record::FindingId id, const Silence& silence, std::string_view server,
                       std::string_view what, Reporter& reporter);

    std::shared_ptr<SharedServer> server_;
    /// Set while the server answers other sessions but not this one.
    std::optional<Silence> silence_to_session_;
    bool alone_is_reported_ = false;
    std::uint64_t unanswered_ = 0;
    record::Timestamp since_ = 0; ///< time of the first unanswered datagram
    record::Timestamp last_ = 0;  ///< time of the last unanswered datagram
    record::Timestamp heard_ = 0;
    bool waits_with_all_ = false; ///< this session belongs to a silence that was reported
};

} // namespace tw::inspect
