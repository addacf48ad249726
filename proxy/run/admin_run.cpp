#include "proxy/run/admin_run.h"

#include "proxy/relay/clock.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <boost/asio/post.hpp>
#include <spdlog/spdlog.h>

namespace tw::run {

namespace {

/// How long /healthz waits for the server's answer.
constexpr std::chrono::milliseconds kHealthDeadline{1000};

std::int64_t now_ms() {
    constexpr std::int64_t kNanoseconds = 1'000'000;
    return relay::now_utc() / kNanoseconds;
}

admin::RelayState relay_state(const RelayWindow& relay) {
    const relay::Counters counters = relay.counters();
    admin::RelayState state{.directions = {},
                            .sessions_open = open_sessions(counters),
                            .sessions_opened = counters.sessions_opened,
                            .sessions_closed = counters.sessions_closed,
                            .admission = counters.admission,
                            .sessions_refused = counters.sessions_refused,
                            .sessions_failed = counters.sessions_failed,
                            .icmp_refused = counters.icmp_refused,
                            .receive_errors = counters.receive_errors,
                            .truncated = counters.truncated,
                            .kernel_dropped = counters.kernel_dropped};
    for (std::size_t i = 0; i < state.directions.size(); ++i) {
        const auto& from = counters.directions[i];
        state.directions[i] = {.datagrams = from.datagrams,
                               .bytes = from.bytes,
                               .dropped = from.dropped,
                               .refused = from.send_errors,
                               .copies_lost = from.copies_lost};
    }
    return state;
}

} // namespace

AdminRun::AdminRun(const admin::AdminOptions& options, Parts parts)
    : parts_{parts}, started_ms_{now_ms()}, probe_{*parts_.io,
                                                   reachable(relay::to_asio(
                                                       parts_.relay->listen_endpoints().front())),
                                                   kHealthDeadline},
      admin_{options, sources()} {}

// NOLINTNEXTLINE(bugprone-exception-escape): where a lock or a join fails there is no way on
AdminRun::~AdminRun() {
    admin_.stop();
    probe_.stop();
    const std::scoped_lock lock{waiting_->mutex};
    waiting_->done.clear();
}

void AdminRun::start() {
    admin_.start();
    spdlog::info("live page on port {}", admin_.port());
    if (!admin_.on_loopback()) {
        spdlog::warn("the live page is open to the network: anyone who can reach it sees the "
                     "players' names and addresses, and can impair the line");
    }
}

void AdminRun::show_silence(const std::optional<admin::SilenceState>& silence) {
    const std::scoped_lock lock{silence_mutex_};
    silence_ = silence;
}

admin::Sources AdminRun::sources() {
    return {
        .state = [this] { return state(); },
        .health = [this](std::function<void(admin::Health)> done) { ask_health(std::move(done)); },
        .set_impairment = [this](const std::string& text) -> tl::expected<void, std::string> {
            return parts_.impairment->set(text).map([](const std::string&) {});
        }};
}

admin::State AdminRun::state() const {
    admin::State state{.version = TWSCOPE_VERSION,
                       .now_ms = now_ms(),
                       .started_ms = started_ms_,
                       .listen = {},
                       .server = relay::to_string(parts_.relay->server_endpoint()),
                       .impairment = parts_.impairment->settings(),
                       .inspecting = parts_.inspecting,
                       .relay = relay_state(*parts_.relay),
                       .recording = {},
                       .view = parts_.board->read()};
    for (const auto& endpoint : parts_.relay->listen_endpoints()) {
        state.listen.push_back(relay::to_string(endpoint));
    }
    {
        const std::scoped_lock lock{silence_mutex_};
        state.server_silent = silence_;
    }
    if (parts_.file != nullptr) {
        state.recording.output = parts_.file->path();
        state.recording.failed = parts_.file->failed();
        state.recording.lost = parts_.file->lost_lines() + parts_.queue->dropped_lines();
    }
    return state;
}

void AdminRun::ask_health(std::function<void(admin::Health)> done) {
    {
        const std::scoped_lock lock{waiting_->mutex};
        waiting_->done.push_back(std::move(done));
    }
    boost::asio::post(*parts_.io, [this, waiting = std::weak_ptr{waiting_}] {
        if (!waiting.expired()) {
            probe_health();
        }
    });
}

void AdminRun::probe_health() {
    const std::uint64_t before = parts_.relay->counters().directions[0].datagrams;
    probe_.ask([this, before](bool answered) {
        const bool passed = parts_.relay->counters().directions[0].datagrams != before;
        const admin::Health health{
            .ok = answered,
            .text = answered ? "ok"
                    : passed ? "the relay passes datagrams on, but the server does not answer"
                             : "the relay passes no datagrams on"};
        std::vector<std::function<void(admin::Health)>> all;
        {
            const std::scoped_lock lock{waiting_->mutex};
            all.swap(waiting_->done);
        }
        for (const auto& done : all) {
            done(health);
        }
    });
}

} // namespace tw::run
