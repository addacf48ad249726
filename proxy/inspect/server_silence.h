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

/// What all sessions of one server, as far as one worker has them, know of it together: whether it
/// answers anybody, when it was quiet to all of them at once, and what program it is.
class SharedServer {
  public:
    /// A time without a datagram of the server to any session. Servers send every 20 or 40 ms to
    /// everybody who plays.
    struct Pause {
        record::Timestamp from = 0;
        record::Timestamp to = 0;
        std::size_t sessions = 0; ///< sessions that the server was sending to when it began
        bool was_stopped = false; ///< a session has shown that the server did not run
        bool was_cut_off = false; ///< a session has shown that the server's datagrams were lost
    };

    static constexpr record::Timestamp kPause = 100'000'000;      ///< ns; the shortest
    static constexpr record::Timestamp kRecently = 1'000'000'000; ///< ns
    static constexpr record::Timestamp kSlack = 60'000'000;       ///< ns; a step of the server

    /// A datagram of the server, to any session.
    void on_answer(record::Timestamp now);

    /// The pause in which [from, to] lies, give or take a step of the server; null if the server sent
    /// something to somebody. Pauses are forgotten after a second at the earliest.
    [[nodiscard]] Pause* find_pause(record::Timestamp from, record::Timestamp to);

    /// Whether the server has sent anything to anybody since then.
    [[nodiscard]] bool has_answered_since(record::Timestamp time) const { return heard_ >= time; }

    /// Sessions that the server sent something to since then.
    [[nodiscard]] std::size_t sessions_heard_since(record::Timestamp time) const;

    /// The silence that is reported: of all sessions together.
    struct Silence {
        record::Timestamp since = 0;
        std::uint64_t unanswered = 0;
    };

    std::optional<Silence> silence;

    /// Whether its last ACCEPT of 0.7, to any session, was that of a server of DDNet; nullopt: none was
    /// seen.
    std::optional<bool> accepts_as_ddnet;

  private:
    friend class ServerSilence;
    static constexpr std::size_t kPauses = 16;

    std::vector<const ServerSilence*> sessions_; ///< those that are open
    record::Timestamp heard_ = 0;
    std::array<Pause, kPauses> pauses_{}; ///< in a ring
    std::size_t num_pauses_ = 0;
};

/// The servers of one worker, by address, as long as there are sessions.
class SharedServers {
  public:
    [[nodiscard]] std::shared_ptr<SharedServer> find_or_add(const std::string& address);

  private:
    /// From here on, servers without sessions are forgotten first.
    static constexpr std::size_t kMany = 64;

    std::unordered_map<std::string, std::weak_ptr<SharedServer>> servers_;
};

/// Reports a server that answers none of its sessions: once however many of them wait, and once when
/// it answers again. Also reports if it stops answering this session alone, and once it answers it
/// again. The contents of the datagrams do not matter.
class ServerSilence {
  public:
    /// As many datagrams in a row without an answer, and for as long: clients repeat a CONNECT
    /// twice a second and send 50 inputs a second, so it is neither a lost datagram nor a pause.
    static constexpr std::uint64_t kUnanswered = 3;
    static constexpr record::Timestamp kPatience = 3'000'000'000; ///< ns
    /// Who sends less often than this does not wait for an answer.
    static constexpr record::Timestamp kPause = 5'000'000'000; ///< ns

    explicit ServerSilence(std::shared_ptr<SharedServer> server);
    ~ServerSilence();
    ServerSilence(const ServerSilence&) = delete;
    ServerSilence& operator=(const ServerSilence&) = delete;
    ServerSilence(ServerSilence&&) = delete;
    ServerSilence& operator=(ServerSilence&&) = delete;

    /// A datagram of this session; `server`: its address.
    void on_datagram(std::string_view server, Reporter& reporter);
    /// Copies were lost: an answer may have been among them.
    void on_gap();

    [[nodiscard]] SharedServer& server() const { return *server_; }

    /// When the server last sent this session something.
    [[nodiscard]] record::Timestamp heard() const { return heard_; }

  private:
    using Silence = SharedServer::Silence;

    void wait_alone(std::string_view server, Reporter& reporter);
    void end_waiting_alone(std::string_view server, Reporter& reporter);
    static void report(record::FindingId id, const Silence& silence, std::string_view server,
                       std::string_view what, Reporter& reporter);

    std::shared_ptr<SharedServer> server_;
    /// Since the server's last datagram to this session, while it answers others.
    std::optional<Silence> alone_;
    bool alone_is_reported_ = false;
    std::uint64_t unanswered_ = 0;
    record::Timestamp since_ = 0; ///< the first unanswered datagram
    record::Timestamp last_ = 0;  ///< the last one
    record::Timestamp heard_ = 0;
    bool waits_with_all_ = false; ///< it is part of a silence that was reported
};

} // namespace tw::inspect
