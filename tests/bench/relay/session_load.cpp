// Plays captured sessions through a running proxy, many at a time. This program is both the clients and the
// servers. Its datagrams can be decoded, so the proxy does the same work as for players.
//
// Session i repeats the captured session i modulo the number of captured ones, from its handshake to its end. The sessions
// are distributed over the servers in turn, and evenly over time. During the handshake, each side sends a datagram only after
// it has received the earlier ones of the other side. Datagrams of other senders are echoed. Prints one JSON object.

#include "tests/bench/relay/load_support.h"
#include "tests/bench/relay/session_script.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sys/resource.h>

namespace {

using namespace tw;
using bench::kSecond;
using bench::now_ns;
using bench::Script;
using bench::Step;

constexpr std::size_t kBatch = 64;
constexpr std::size_t kMaxDatagram = 2048;
/// The length of the handshake in the captures.
constexpr std::int64_t kHandshake = kSecond;
/// A session that waits longer for the other end has lost a datagram.
constexpr std::int64_t kGiveUp = kSecond / 2;
/// The pause before a client leaves and before it returns, so that no old datagrams are in transit.
constexpr std::int64_t kPause = kSecond / 50;
/// Datagrams are collected for this long before they are sent.
constexpr std::chrono::microseconds kRound{200};
/// The most datagrams that are sent before the sockets are read.
constexpr std::size_t kMostAtOnce = 512;
/// How often a client's socket is read: as often as this many clients permit.
constexpr std::int64_t kSweepPerClient = 50'000;
constexpr std::int64_t kShortestSweep = 1'000'000;

struct Settings {
    std::vector<std::uint16_t> server_ports;
    std::vector<std::uint16_t> target_ports; ///< ports of the proxy, one for each server
    std::string capture = "bench-4.pcap.gz";
    unsigned sessions = 64;
    double speed = 1;
    double warm_up = 1;
    double warm_up_speed = 0;
    double join = 0;
    double seconds = 3;
    unsigned loops = 0;
    unsigned inputs = 1;
    std::vector<int> pids;
};

struct DatagramCounts {
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    std::uint64_t snapshots = 0;
};

struct Session {
    const Script* script = nullptr;
    int fd = -1;
    std::size_t server = 0;
    sockaddr_in at_server{}; ///< this client's address as the server sees it
    std::size_t next = 0;    ///< index of the next step
    std::int64_t due = 0;
    std::array<std::size_t, 2>
        heard{}; ///< steps received in this repetition, by the client and by the server
    std::int64_t waiting_since = 0;
    unsigned loops = 0;
};

struct Server {
    int fd = -1;
    std::map<std::uint64_t, std::size_t> by_name{}; ///< session indexes by address
};

/// Buffers and headers for recvmmsg and sendmmsg.
struct SocketBatch {
    std::array<std::array<char, kMaxDatagram>, kBatch> buffers{};
    std::array<sockaddr_in, kBatch> names{};
    std::array<iovec, kBatch> vectors{};
    std::array<mmsghdr, kBatch> messages{};
    std::size_t used = 0;

    std::size_t receive(int fd) {
        for (std::size_t i = 0; i < kBatch; ++i) {
            vectors[i] = {buffers[i].data(), kMaxDatagram};
            messages[i].msg_hdr = {};
            messages[i].msg_hdr.msg_name = &names[i];
            messages[i].msg_hdr.msg_namelen = sizeof names[i];
            messages[i].msg_hdr.msg_iov = &vectors[i];
            messages[i].msg_hdr.msg_iovlen = 1;
        }
        const int count = ::recvmmsg(fd, messages.data(), kBatch, MSG_DONTWAIT, nullptr);
        return count > 0 ? static_cast<std::size_t>(count) : 0;
    }

    void add(sockaddr_in& to, const std::vector<std::byte>& bytes) {
        // sendmmsg() does not write to the data.
        // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): iovec has no const
        vectors[used] = {const_cast<std::byte*>(bytes.data()), bytes.size()};
        messages[used].msg_hdr = {};
        messages[used].msg_hdr.msg_name = &to;
        messages[used].msg_hdr.msg_namelen = sizeof to;
        messages[used].msg_hdr.msg_iov = &vectors[used];
        messages[used].msg_hdr.msg_iovlen = 1;
        ++used;
    }

    void flush(int fd) {
        for (std::size_t done = 0; done < used;) {
            const int sent = ::sendmmsg(fd, &messages[done], static_cast<unsigned>(used - done), 0);
            done += sent > 0 ? static_cast<std::size_t>(sent) : 1;
        }
        used = 0;
    }
};

std::uint64_t address_key(const sockaddr_in& name) {
    return std::uint64_t{name.sin_addr.s_addr} << 16U | name.sin_port;
}

std::int64_t own_cpu_time() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto ns = [](const timeval& time) { return time.tv_sec * kSecond + time.tv_usec * 1000; };
    return ns(usage.ru_utime) + ns(usage.ru_stime);
}

class SessionLoadGenerator {
  public:
    SessionLoadGenerator(const Settings& settings, const std::vector<Script>& scripts)
        : settings_{settings}, sessions_(settings.sessions) {
        for (const std::uint16_t port : settings.server_ports) {
            servers_.push_back({.fd = bench::server_socket(port)});
        }
        ports_ = settings.server_ports;
        ports_.insert(ports_.end(), settings.target_ports.begin(), settings.target_ports.end());
        for (std::size_t i = 0; i < sessions_.size(); ++i) {
            sessions_[i].script = &scripts[i % scripts.size()];
            sessions_[i].server = i % servers_.size();
            connect_session(i);
        }
    }

    void run() {
        const auto begin = now_ns();
        const double first =
            settings_.warm_up_speed > 0 ? settings_.warm_up_speed : settings_.speed;
        set_speed(first, begin);
        spread_next_steps(begin, settings_.join);
        play_until(begin + static_cast<std::int64_t>(settings_.warm_up * 1e9));
        await_datagrams();
        if (first != settings_.speed) {
            set_speed(settings_.speed, now_ns());
            spread_next_steps(now_ns(), 0.04 / settings_.speed); // between two snapshots
        }
        const DatagramCounts before = total_;
        const std::uint64_t lost_before = before.sent - before.received;
        const auto cpu = bench::cpu_time(settings_.pids);
        const auto own = own_cpu_time();
        const auto measured_from = now_ns();
        latest_ = 0;
        play_until(settings_.loops != 0
                       ? std::numeric_limits<std::int64_t>::max()
                       : measured_from + static_cast<std::int64_t>(settings_.seconds * 1e9));
        const double seconds = static_cast<double>(now_ns() - measured_from) / 1e9;
        const double own_share = static_cast<double>(own_cpu_time() - own) / 1e9 / seconds;
        await_datagrams();
        const auto relay_ns = static_cast<double>(bench::cpu_time(settings_.pids) - cpu);
        const auto sent = static_cast<double>(total_.sent - before.sent);
        fmt::print(
            "{{\"sessions\":{},\"seconds\":{:.3f},\"sent\":{},\"received\":{},\"lost\":{},"
            "\"lost_before\":{},\"datagrams_per_second\":{:.0f},\"snapshots_per_second\":{:.0f},"
            "\"snapshots\":{},\"cpu_us_per_datagram\":{:.3f},\"cpu_share\":{:.3f},"
            "\"own_share\":{:.3f},\"late_ms\":{:.1f}}}\n",
            settings_.sessions, seconds, total_.sent, total_.received,
            total_.sent - total_.received - lost_before, lost_before, sent / seconds,
            static_cast<double>(total_.snapshots - before.snapshots) / seconds, total_.snapshots,
            relay_ns / 1e3 / sent, relay_ns / 1e9 / seconds, own_share,
            static_cast<double>(latest_) / 1e6);
        std::fflush(stdout);
    }

  private:
    /// Connects a session, so that the server learns its address. Called for one session after another.
    void connect_session(std::size_t index) {
        Session& session = sessions_[index];
        auto name = bench::loopback(settings_.target_ports.at(session.server));
        session.fd = bench::client_socket(index, ports_);
        if (::connect(session.fd, bench::as_sockaddr(&name), sizeof name) != 0) {
            throw std::runtime_error{"cannot make a client's socket"};
        }
        send_next_step(session);
        const auto give_up = now_ns() + 4 * kGiveUp;
        while (session.heard[1] == 0) {
            Server& server = servers_[session.server];
            if (batch_->receive(server.fd) != 0) {
                session.at_server = batch_->names[0];
                server.by_name[address_key(session.at_server)] = index;
                session.heard[1] = 1;
                ++total_.received;
            } else if (now_ns() > give_up) {
                throw std::runtime_error{"the proxy lets nobody in"};
            } else {
                std::this_thread::sleep_for(std::chrono::microseconds{50});
            }
        }
    }

    void set_speed(double speed, std::int64_t now) {
        speed_ = speed;
        sweep_every_ =
            std::max(kShortestSweep, kSweepPerClient * static_cast<std::int64_t>(sessions_.size()));
        next_sweep_ = now;
    }

    /// Schedules the next steps of all sessions, evenly spread over this time.
    void spread_next_steps(std::int64_t now, double seconds) {
        queue_ = {};
        const double step = seconds * 1e9 / static_cast<double>(sessions_.size());
        for (std::size_t i = 0; i < sessions_.size(); ++i) {
            sessions_[i].due = now + static_cast<std::int64_t>(step * static_cast<double>(i));
            queue_.emplace(sessions_[i].due, i);
        }
    }

    void send_next_step(Session& session) {
        const Step& step = (*session.script)[session.next++];
        if (step.direction == wire::Direction::c2s) {
            ::send(session.fd, step.bytes.data(), step.bytes.size(), 0);
        } else {
            if (sends_->used == kBatch || sending_ != session.server) {
                sends_->flush(servers_[sending_].fd);
                sending_ = session.server;
            }
            sends_->add(session.at_server, step.bytes);
        }
        ++total_.sent;
        total_.snapshots += step.snapshots;
    }

    /// Whether the sender of the next step has received all earlier steps of the other side.
    [[nodiscard]] static bool is_next_step_ready(Session& session, std::int64_t now) {
        const Step& step = (*session.script)[session.next];
        const std::size_t heard = session.heard[step.direction == wire::Direction::c2s ? 0 : 1];
        if (step.at > kHandshake || heard >= step.heard) {
            session.waiting_since = 0;
            return true;
        }
        session.waiting_since = session.waiting_since == 0 ? now : session.waiting_since;
        return now - session.waiting_since > kGiveUp;
    }

    /// Sets the time of the session's next step; the first step follows the last one.
    void schedule_next_step(Session& session, std::int64_t now) const {
        const Script& script = *session.script;
        if (session.next == script.size()) {
            session.next = 0;
            session.heard = {};
            ++session.loops;
            session.due = now + kPause;
            return;
        }
        if (session.next + 1 == script.size()) {
            session.due = now + kPause;
            return;
        }
        const std::int64_t between = script[session.next].at - script[session.next - 1].at;
        session.due += static_cast<std::int64_t>(static_cast<double>(between) / speed_);
    }

    void play_until(std::int64_t end) {
        for (auto now = now_ns(); now < end && !has_played_enough(); now = now_ns()) {
            std::size_t sent = 0;
            for (; sent < kMostAtOnce && queue_.top().first <= now; ++sent) {
                const std::size_t index = queue_.top().second;
                queue_.pop();
                Session& session = sessions_[index];
                if (!is_next_step_ready(session, now)) {
                    session.due = now + kRound.count() * 1000;
                } else {
                    latest_ = std::max(latest_, now - session.due);
                    send_next_step(session);
                    schedule_next_step(session, now);
                }
                queue_.emplace(session.due, index);
            }
            sends_->flush(servers_[sending_].fd);
            receive(now);
            if (sent < kMostAtOnce) {
                std::this_thread::sleep_for(kRound);
            }
        }
    }

    [[nodiscard]] bool has_played_enough() const {
        return settings_.loops != 0 && speed_ == settings_.speed &&
               std::all_of(sessions_.begin(), sessions_.end(), [&](const Session& session) {
                   return session.loops >= settings_.loops;
               });
    }

    /// Waits for datagrams in transit.
    void await_datagrams() {
        const auto end = now_ns() + kGiveUp;
        while (total_.received < total_.sent && now_ns() < end) {
            next_sweep_ = 0;
            receive(now_ns());
            std::this_thread::sleep_for(std::chrono::milliseconds{2});
        }
    }

    void receive(std::int64_t now) {
        for (const Server& server : servers_) {
            receive_at_server(server);
        }
        if (now < next_sweep_) {
            return;
        }
        next_sweep_ = now + sweep_every_;
        for (Session& session : sessions_) {
            for (std::size_t count = kBatch; count == kBatch;) {
                count = batch_->receive(session.fd);
                session.heard[0] += count;
                total_.received += count;
            }
        }
    }

    void receive_at_server(const Server& server) {
        for (std::size_t count = kBatch; count == kBatch;) {
            count = batch_->receive(server.fd);
            for (std::size_t i = 0; i < count; ++i) {
                const auto found = server.by_name.find(address_key(batch_->names[i]));
                if (found != server.by_name.end()) {
                    ++sessions_[found->second].heard[1];
                    ++total_.received;
                } else { // an echo request: another program measures round trips
                    ::sendto(server.fd, batch_->buffers[i].data(), batch_->messages[i].msg_len, 0,
                             bench::as_sockaddr(&batch_->names[i]), sizeof batch_->names[i]);
                }
            }
        }
    }

    const Settings& settings_;
    std::vector<Session> sessions_;
    std::vector<Server> servers_;
    std::vector<std::uint16_t> ports_; ///< ports of the servers and the proxy
    std::size_t sending_ = 0;          ///< the socket whose datagrams are collected
    std::unique_ptr<SocketBatch> batch_ = std::make_unique<SocketBatch>();
    std::unique_ptr<SocketBatch> sends_ = std::make_unique<SocketBatch>();
    using Due = std::pair<std::int64_t, std::size_t>;
    std::priority_queue<Due, std::vector<Due>, std::greater<>> queue_;
    double speed_ = 1;
    std::int64_t sweep_every_ = kShortestSweep;
    std::int64_t next_sweep_ = 0;
    std::int64_t latest_ = 0;
    DatagramCounts total_;
};

} // namespace

int main(int argc, char** argv) try {
    Settings settings;
    CLI::App app{"Plays captured sessions through a proxy"};
    app.add_option("--server-port", settings.server_ports, "where servers listen")->required();
    app.add_option("--target-port", settings.target_ports, "where their clients send")->required();
    app.add_option("--capture", settings.capture, "a file of tests/data/captures");
    app.add_option("--sessions", settings.sessions)->check(CLI::Range(1, 20'000));
    app.add_option("--speed", settings.speed, "times as fast as it was captured");
    app.add_option("--warm-up", settings.warm_up, "seconds before measuring");
    app.add_option("--warm-up-speed", settings.warm_up_speed, "0: as afterwards");
    app.add_option("--join", settings.join, "seconds over which the sessions begin");
    app.add_option("--seconds", settings.seconds);
    app.add_option("--loops", settings.loops, "play until each session did so often, instead");
    app.add_option("--inputs", settings.inputs, "leave out all inputs but every so many")
        ->check(CLI::Range(1, 100));
    app.add_option("--pid", settings.pids, "processes whose CPU time is the proxy's");
    CLI11_PARSE(app, argc, argv);
    const auto scripts = bench::read_scripts(settings.capture, settings.inputs);
    SessionLoadGenerator load{settings, scripts};
    load.run();
    return 0;

} catch (const std::exception& error) {

    std::fprintf(stderr, "session_load: %s\n", error.what());
    return 1;
}
