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

/// State of one server, shared by one worker's sessions of this server: when it last sent a
/// datagram to any session, when it was silent to all sessions at once, and which program it runs.
class SharedServer {
  public:
    /// A time of at least kPause in which the server sent nothing to any session. A running server
    /// sends to each player every 20 or 40 ms.
    struct Pause {
        record::Timestamp from = 0;
        record::Timestamp to = 0;
        std::size_t sessions = 0; ///< number of sessions the server was sending to before the pause
        bool was_stopped = false; ///< a session proved that the server did not run
        bool was_cut_off = false; ///< a session proved that the server's datagrams were lost
    };

    static constexpr record::Timestamp kPause = 100'000'000; ///< ns; minimum length of a pause
    /// A session counts as sent to if its last datagram of the server is at most this old (ns).
    static constexpr record::Timestamp kRecently = 1'000'000'000;
    /// Tolerance of find_pause (ns), for datagrams at the edges of the pause.
    static constexpr record::Timestamp kSlack = 60'000'000;

    /// To be called for each datagram of the server, to whichever session.
    void on_answer(record::Timestamp now);

    /// The pause that covers [from, to] within kSlack; null if the server sent a datagram in that
    /// time. Pauses are kept for at least one second.
    [[nodiscard]] Pause* find_pause(record::Timestamp from, record::Timestamp to);

    /// Whether the server has sent a datagram to any session since `time`.
    [[nodiscard]] bool has_answered_since(record::Timestamp time) const { return heard_ >= time; }

    /// Number of sessions that the server has sent a datagram to since `time`.
    [[nodiscard]] std::size_t sessions_heard_since(record::Timestamp time) const;

    /// A silence of the server toward all of its sessions, which is reported once.
    struct Silence {
        record::Timestamp since = 0;
        std::uint64_t unanswered = 0;
    };

    std::optional<Silence> silence;

    /// Whether the server's last 0.7 ACCEPT, to whichever session, had DDNet's form; nullopt if no
    /// ACCEPT was seen.
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
    /// Once there are more servers than this, servers without sessions are removed before another
    /// one is added.
    static constexpr std::size_t kMany = 64;

    std::unordered_map<std::string, std::weak_ptr<SharedServer>> servers_;
};

/// One session's watch on its server. Reports a server that answers none of its sessions: one
/// finding when the silence begins and one when it ends, shared by all sessions of the server. Also
/// reports when the server stops and resumes answering this session only. Does not read the
/// contents of datagrams.
class ServerSilence {
  public:
    /// A silence is reported once this many datagrams in a row are unanswered and kMinSilence has
    /// passed. Clients send a CONNECT twice a second or 50 inputs a second, so a lost datagram or a
    /// short pause is not reported.
    static constexpr std::uint64_t kUnanswered = 3;
    static constexpr record::Timestamp kMinSilence = 3'000'000'000; ///< ns
    /// A client whose datagrams are further apart than this does not wait for an answer (ns).
    static constexpr record::Timestamp kPause = 5'000'000'000;

    explicit ServerSilence(std::shared_ptr<SharedServer> server);
    ~ServerSilence();
    ServerSilence(const ServerSilence&) = delete;
    ServerSilence& operator=(const ServerSilence&) = delete;
    ServerSilence(ServerSilence&&) = delete;
    ServerSilence& operator=(ServerSilence&&) = delete;

    /// To be called for each datagram of this session. `server`: the server's address.
    void on_datagram(std::string_view server, Reporter& reporter);
    /// Copies of datagrams were lost, perhaps the server's answer: waiting starts again.
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
    bool waits_with_all_ = false; ///< this session waits in a reported silence toward all sessions
};

} // namespace tw::inspect
