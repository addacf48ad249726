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

class ServerSilenceDetector;

/// Stores when one server last sent a datagram to any session, and the pauses in which it sent
/// nothing to any session. All sessions that a worker has with this server share one object.
class ServerActivity {
  public:
    /// A time of at least kMinPause in which the server sent nothing to any session. A running
    /// server sends something to each player every 20 or 40 ms.
    struct Pause {
        record::Timestamp begin = 0;
        record::Timestamp end = 0;
        /// Number of sessions that got datagrams just before the pause.
        std::size_t num_active_sessions = 0;
        bool was_server_stopped = false; ///< a session proved that the server did not run
        /// A session proved that the server's datagrams were lost.
        bool were_datagrams_lost = false;
    };

    static constexpr record::Timestamp kMinPause = 100'000'000; ///< ns
    /// The server counts as sending to a session if the session's last datagram from the server is
    /// at most this old (ns).
    static constexpr record::Timestamp kMaxAgeOfRecentAnswer = 1'000'000'000;
    /// Tolerance of find_pause_covering() (ns). Datagrams may arrive shortly after a pause began.
    static constexpr record::Timestamp kPauseTolerance = 60'000'000;

    /// Must be called for each datagram that the server sends to any session.
    void on_server_datagram(record::Timestamp now);

    /// Returns the pause that contains the time from `from` to `to`, with a tolerance of
    /// kPauseTolerance; null if the server sent a datagram in that time. A pause is kept for at
    /// least one second after its end.
    [[nodiscard]] Pause* find_pause_covering(record::Timestamp from, record::Timestamp to);

    /// Whether the server has sent a datagram to any session since `time`.
    [[nodiscard]] bool has_sent_since(record::Timestamp time) const {
        return last_datagram_time_ >= time;
    }

    /// Returns the number of sessions to which the server has sent a datagram since `time`.
    [[nodiscard]] std::size_t count_sessions_reached_since(record::Timestamp time) const;

    /// A time in which clients get no answer from the server.
    struct Silence {
        record::Timestamp begin = 0;
        std::uint64_t num_unanswered = 0; ///< number of datagrams in a row without an answer
    };

    /// The current silence of the server to all of its sessions; nullopt if the server answers.
    std::optional<Silence> silence_to_all_sessions;

    /// Whether the server's newest 0.7 ACCEPT, to any session, had the form that only DDNet servers
    /// send; nullopt if no ACCEPT was seen.
    std::optional<bool> sends_ddnet_accept;

  private:
    friend class ServerSilenceDetector;
    static constexpr std::size_t kStoredPauses = 16;

    std::vector<const ServerSilenceDetector*> open_sessions_;
    record::Timestamp last_datagram_time_ = 0;
    std::array<Pause, kStoredPauses> pauses_{}; ///< a ring buffer of the latest pauses
    std::size_t num_pauses_ = 0;
};

/// The activities of a worker's servers, by the server's address. An activity is destroyed with the
/// last session of its server.
class ServerActivityTable {
  public:
    [[nodiscard]] std::shared_ptr<ServerActivity> find_or_add_server(const std::string& address);

  private:
    /// Once there are this many entries, entries of servers without sessions are removed before
    /// another server is added.
    static constexpr std::size_t kCleanupServerCount = 64;

    std::unordered_map<std::string, std::weak_ptr<ServerActivity>> servers_;
};

/// Reports when the server of a session is silent. If the server answers none of its sessions, one
/// session reports the beginning of the silence, and one session reports its end. If the server
/// answers other sessions, the session without answers reports the silence. The contents of
/// datagrams are not read.
class ServerSilenceDetector {
  public:
    /// A silence is reported if it has lasted for kMinSilence and for this many datagrams of the
    /// client. Clients send a CONNECT twice a second, or 50 inputs a second. Therefore one lost
    /// datagram or a short pause is not reported.
    static constexpr std::uint64_t kMinUnansweredDatagrams = 3;
    static constexpr record::Timestamp kMinSilence = 3'000'000'000; ///< ns
    /// If the client sends nothing for longer than this (ns), the wait for an answer starts again.
    static constexpr record::Timestamp kMaxSendPause = 5'000'000'000;

    explicit ServerSilenceDetector(std::shared_ptr<ServerActivity> server);
    ~ServerSilenceDetector();
    ServerSilenceDetector(const ServerSilenceDetector&) = delete;
    ServerSilenceDetector& operator=(const ServerSilenceDetector&) = delete;

    /// Must be called for each datagram of the session, in either direction.
    void on_datagram(Reporter& reporter);
    /// Restarts the wait for an answer. Called when copies of datagrams were lost.
    void on_missed_datagrams();

    [[nodiscard]] ServerActivity& server_activity() const { return *server_activity_; }

    /// Returns the time of the server's last datagram to this session.
    [[nodiscard]] record::Timestamp last_answer_time() const { return last_answer_time_; }

  private:
    using Silence = ServerActivity::Silence;

    void count_unanswered_datagram(Reporter& reporter);
    void end_silence_to_session(Reporter& reporter);
    static void report_silence(record::FindingId id, const Silence& silence, std::string_view event,
                               Reporter& reporter);

    std::shared_ptr<ServerActivity> server_activity_;
    /// The silence to this session while the server answers other sessions; else nullopt.
    std::optional<Silence> silence_to_session_;
    bool is_session_silence_reported_ = false;
    std::uint64_t num_unanswered_ = 0;
    record::Timestamp first_unanswered_time_ = 0;
    record::Timestamp last_unanswered_time_ = 0;
    record::Timestamp last_answer_time_ = 0;
    /// True if this session waits for an answer during a silence to all sessions that was reported.
    bool waits_in_reported_silence_ = false;
};

} // namespace tw::inspect
