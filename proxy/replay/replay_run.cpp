#include "proxy/replay/replay_run.h"

#include "proxy/base/clock.h"
#include "proxy/base/endpoint.h"
#include "proxy/process/signals.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <span>

#include <boost/asio/buffer.hpp>
#include <boost/asio/steady_timer.hpp>

namespace tw::replay {

namespace {

namespace asio = boost::asio;
using Udp = asio::ip::udp;
using record::Timestamp;

/// The time in nanoseconds between the starts of two clients, because servers accept only a few new
/// connections at a time.
constexpr Timestamp kStartInterval = 50'000'000;
/// The size of the receive buffer: larger than any datagram of the game, to detect longer
/// datagrams.
constexpr std::size_t kBufferBytes = 2048;

template <typename Id>
Id random_id() {
    std::random_device random;
    Id id{};
    for (auto& byte : id) {
        byte = static_cast<typename Id::value_type>(random());
    }
    return id;
}

/// Passes the inspector's results about the current datagram to one client.
class ResultReceiver final : public inspect::Observer, public record::RecordSink {
  public:
    explicit ResultReceiver(record::RecordSink& next) : next_{&next} {}

    /// Sets the client that receives the results. If it is null, results are dropped.
    void set_client(ReplayClient* client) { client_ = client; }

    void on_packet(const wire::Packet& packet) override { packet_ = packet; }

    void on_control(const wire::Control& control) override {
        if (client_ != nullptr) {
            client_->on_control(packet_, control);
        }
    }

    void on_accepted_payload(const inspect::AcceptedPayload& /*chunks*/) override {
        if (client_ != nullptr) {
            client_->on_packet(packet_.ack, packet_.resend);
        }
    }

    void on_chunk(const wire::Chunk& chunk, wire::VitalClass taken,
                  const wire::MessageHeader* head) override {
        if (client_ != nullptr) {
            client_->on_chunk(chunk, taken, head);
        }
    }

    void on_record(const record::Record& record) override {
        if (client_ != nullptr) {
            notify_client(record);
        }
        next_->on_record(record);
    }

  private:
    void notify_client(const record::Record& record) {
        if (const auto* const snapshot = std::get_if<const record::SnapshotRecord*>(&record)) {
            if ((*snapshot)->rebuilt) {
                client_->on_verified_snapshot((*snapshot)->tick);
            } else {
                client_->on_wrong_snapshot();
            }
        } else if (const auto* const finding = std::get_if<const record::FindingRecord*>(&record);
                   finding != nullptr &&
                   (*finding)->id == record::FindingId::snapshot_unknown_base) {
            client_->on_unknown_base();
        }
    }

    record::RecordSink* next_;
    ReplayClient* client_ = nullptr;
    wire::Packet packet_;
};

class ReplayRun {
  public:
    ReplayRun(ReplayOptions options, inspect::MapSource& maps, record::RecordSink& sink)
        : options_{std::move(options)}, receiver_{sink}, inspector_{inspect_options(), maps,
                                                                    receiver_,
                                                                    last_session_number_} {
        for (std::size_t i = 0; i < options_.clients; ++i) {
            open_client(i);
        }
    }

    ReplayResult run() {
        signals_.set_handler([this](int /*signal*/) { interrupt_clients(); });
        for (const auto& peer : clients_) {
            receive(*peer);
        }
        run_due_clients();
        io_.run();
        inspector_.close_all_sessions(now(), "end of replay");
        return result();
    }

  private:
    struct SocketClient {
        SocketClient(asio::io_context& io, std::uint64_t own_key, const ClientScript& script,
                     ReplayClient::Options options, Timestamp start, ClientCounts& counts)
            : key{own_key}, socket{io}, client{script, std::move(options), start, counts} {}

        std::uint64_t key;
        Udp::socket socket;
        ReplayClient client;
        std::array<std::byte, kBufferBytes> buffer{};
        bool has_session = false; ///< true if the inspector knows the session
    };

    inspect::Options inspect_options() {
        observers_.add_observer(receiver_);
        inspect::Options own = options_.inspect;
        own.observers = &observers_;
        return own;
    }

    void open_client(std::size_t i) {
        ReplayClient::Options each = options_.client_options;
        each.connection_id = random_id<decltype(each.connection_id)>();
        each.token = random_id<wire::Token>();
        auto peer = std::make_unique<SocketClient>(
            io_, i + 1, options_.scripts[i % options_.scripts.size()], std::move(each),
            start_time_ + static_cast<Timestamp>(i) * kStartInterval, counts_);
        peer->socket.open(options_.server.protocol());
        peer->socket.connect(options_.server);
        peer->socket.non_blocking(true);
        clients_.push_back(std::move(peer));
    }

    /// Returns the UTC time of the start plus the monotonic time since then.
    [[nodiscard]] Timestamp now() const {
        return start_time_ + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                 base::Clock::now() - steady_start_)
                                 .count();
    }

    void receive(SocketClient& peer) {
        peer.socket.async_receive(
            asio::buffer(peer.buffer),
            [this, &peer](const boost::system::error_code& error, std::size_t size) {
                if (error == asio::error::operation_aborted) {
                    return;
                }
                if (!error) {
                    on_datagram(peer, std::span{peer.buffer}.first(size));
                } // errors are ignored; the client's timeout handles them
                receive(peer);
            });
    }

    void on_datagram(SocketClient& peer, std::span<const std::byte> datagram) {
        if (!peer.has_session) {
            return; // the client has not sent anything yet; the server cannot have answered
        }
        const Timestamp time = now();
        peer.client.on_time(time);
        send(peer);
        receiver_.set_client(peer.client.has_ended() ? nullptr : &peer.client);
        inspector_.on_datagram(peer.key, time, wire::Direction::s2c, datagram);
        receiver_.set_client(nullptr);
        send(peer);
    }

    void send(SocketClient& peer) {
        for (const auto& datagram : peer.client.take_datagrams()) {
            const Timestamp time = now();
            if (!std::exchange(peer.has_session, true)) {
                inspector_.on_open(peer.key, time, base::to_string(peer.socket.local_endpoint()),
                                   base::to_string(options_.server));
            }
            inspector_.on_datagram(peer.key, time, wire::Direction::c2s, datagram);
            boost::system::error_code error;
            peer.socket.send(asio::buffer(datagram), 0, error);
            send_errors_ += static_cast<std::uint64_t>(error.failed());
        }
    }

    void run_due_clients() {
        const Timestamp time = now();
        Timestamp next = time + std::chrono::nanoseconds{std::chrono::seconds{1}}.count();
        bool playing = false;
        for (const auto& peer : clients_) {
            peer->client.on_time(time);
            send(*peer);
            if (!peer->client.has_ended()) {
                playing = true;
                next = std::min(next, peer->client.next_due_time());
            }
        }
        if (!playing) {
            io_.stop();
            return;
        }
        timer_.expires_after(std::chrono::nanoseconds{std::max<Timestamp>(0, next - now())});
        timer_.async_wait([this](const boost::system::error_code& error) {
            if (!error) {
                run_due_clients();
            }
        });
    }

    void interrupt_clients() {
        for (const auto& peer : clients_) {
            peer->client.close_connection(ClientEnding::interrupted);
            send(*peer);
        }
        io_.stop();
    }

    [[nodiscard]] ReplayResult result() const {
        ReplayResult result{.clients = clients_.size(),
                            .counts = counts_,
                            .send_errors = send_errors_,
                            .seconds = static_cast<double>(now() - start_time_) / 1e9,
                            .totals = inspector_.totals(),
                            .sessions = inspector_.num_sessions_opened()};
        for (const auto& peer : clients_) {
            const ReplayClient& client = peer->client;
            ++result.endings[static_cast<std::size_t>(client.ending())];
            result.num_entered += static_cast<std::size_t>(client.was_in_game());
            result.reason = result.reason.empty() ? client.close_reason() : result.reason;
        }
        return result;
    }

    ReplayOptions options_;
    asio::io_context io_{1};
    process::SignalReceiver signals_{io_, {SIGINT, SIGTERM}};
    asio::steady_timer timer_{io_};
    Timestamp start_time_ = base::now_utc();
    base::Clock::time_point steady_start_ = base::Clock::now();
    std::atomic<std::uint32_t> last_session_number_{0};
    ResultReceiver receiver_;
    inspect::Observers observers_;
    inspect::Inspector inspector_;
    ClientCounts counts_;
    std::vector<std::unique_ptr<SocketClient>> clients_;
    std::uint64_t send_errors_ = 0;
};

} // namespace

ReplayResult run_replay(ReplayOptions options, inspect::MapSource& maps, record::RecordSink& sink) {
    return ReplayRun{std::move(options), maps, sink}.run();
}

} // namespace tw::replay
