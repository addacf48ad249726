#include "proxy/run/relay_run.h"

#include "proxy/relay/endpoint.h"
#include "proxy/run/address_proof.h"
#include "proxy/run/answering.h"
#include "proxy/run/legacy_file.h"
#include "proxy/run/takeover_report.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

namespace tw::run {

namespace {

/// For the relay before this one to write what is left, where this one ends meanwhile.
constexpr std::chrono::milliseconds kLastWord{500};

/// The first one is the relay's own.
void complete(RelayRunOptions& options) {
    relay::Options& relay = options.relay;
    if (options.servers.empty()) {
        options.servers.push_back({.where = {.host = relay.server_host,
                                             .port = relay.server_port,
                                             .listen = relay.listen}});
    }
    const relay::ServerOptions& first = options.servers.front().where;
    relay.server_host = first.host;
    relay.server_port = first.port;
    relay.listen = first.listen;
}

} // namespace

RelayRun::RelayRun(RelayRunOptions options)
    : options_{std::move(options)}, shared_{options_.relay.threads,
                                            options_.inspected ? options_.ring_bytes : 0} {
    std::vector<relay::Ring*> rings;
    rings_.reserve(options_.relay.threads);
    for (unsigned i = 0; i < options_.relay.threads && options_.inspected; ++i) {
        rings.push_back(&rings_.emplace_back(shared_.ring(i)));
    }
    complete(options_);
    options_.relay.prove = options_.admission ? prove_address : nullptr;
    options_.relay.repeating =
        options_.admission && options_.info_cache ? repeating_info() : relay::Repeating{};
    if (options_.taker != nullptr) {
        options_.taker->check(options_.servers);
    }
    auto [first, listening] = begin(options_.servers.front(), 0);
    options_.relay.listen = first.listen;
    options_.relay.server_host = first.host;
    relay_.emplace(options_.relay, rings, &shared_.block().observation, std::move(listening));
    servers_.emplace(
        ServedServers::Parts{
            .relay = &*relay_,
            .block = &shared_.block(),
            .begin = [this](const ServedServer& served,
                            relay::ServerIndex number) { return begin(served, number); }},
        options_.servers);
    shared_.block().facts.impairment = relay_->impairment();
    supervisor_.emplace(
        options_.supervision,
        Supervisor::Parts{
            .shared = &shared_,
            .rings = rings_,
            .impair =
                [this](const relay::Impairment& impairment) { change_impairment(impairment); },
            .on_second = [this] { on_second(); },
            .serve = [this](const std::vector<ServedServer>& wanted) { serve(wanted); },
            .resync =
                [this](const std::string& wish) {
                    if (const auto session = resyncs_.grant(wish)) {
                        relay_->resync(*session);
                    }
                },
            .follows = options_.taker == nullptr
                           ? std::nullopt
                           : std::optional{options_.taker->offer().observer}});
}

std::optional<Ending> RelayRun::open() {
    if (auto ending = supervisor_->open()) {
        return ending;
    }
    servers_->report();
    return std::nullopt;
}

/// As the one before this has it, if one is taken over from that has it.
HandoverTaker::Begun RelayRun::begin(const ServedServer& served, relay::ServerIndex number) const {
    if (options_.taker != nullptr) {
        return options_.taker->begin(served, number);
    }
    HandoverTaker::Begun begun{.where = served.where};
    if (!host_name(served.where).empty()) { // the relay takes the first address of a name
        begun.where.host = resolve_answering(served.where.host, served.where.port, Enough::one)
                               .front()
                               .address()
                               .to_string();
    }
    return begun;
}

void RelayRun::begin_forwarding() {
    relay_->start();
    servers_->begin_following();
    started_ = std::chrono::steady_clock::now();
}

void RelayRun::take_over() {
    HandoverTaker& taker = *options_.taker;
    const TakeoverRest rest = taker.take(*relay_);
    begin_forwarding();
    const auto held = relay::Clock::now().time_since_epoch() - relay::Clock::duration{rest.held_at};
    if (options_.started) {
        options_.started(); // before the other one ends, so that nobody takes its end for the run's
    }
    taker.say_going();
    const relay::Counters counters = relay_->counters();
    failed_sessions_reported_ = counters.sessions_failed;
    std::ignore = admission_report_.check(counters); // the other one has said so far
    shared_.block().facts.impairment = relay_->impairment();
    shared_.block().numbered_sessions = rest.numbered_sessions;
    spdlog::info("took over {} sessions; forwarding paused for {:.2f} ms", rest.sessions,
                 std::chrono::duration<double, std::milli>{held}.count());
    report_takeover(taker, *relay_, options_.relay.threads);
}

LiveRunResult RelayRun::run() {
    if (options_.taker == nullptr) {
        begin_forwarding();
        if (options_.started) {
            options_.started();
        }
    }
    open_takeover_door();
    if (options_.taker != nullptr) {
        await_end_of_other();
    } else if (giver_) {
        giver_->start();
    }
    supervisor_->run(started_);
    return finish();
}

void RelayRun::open_takeover_door() {
    if (options_.takeover_file.empty()) {
        return;
    }
    if (auto door = options_.taker != nullptr ? options_.taker->take_door()
                                              : TakeoverDoor::open(options_.takeover_file)) {
        giver_.emplace(
            HandoverGiver::Parts{
                .io = &supervisor_->io(),
                .relay = &*relay_,
                .servers = [this] { return servers_->now(); },
                .observer =
                    [this] {
                        return supervisor_->keeper() != nullptr ? supervisor_->keeper()->number()
                                                                : 0;
                    },
                .observer_process =
                    [this] {
                        return supervisor_->keeper() != nullptr ? supervisor_->keeper()->process()
                                                                : 0;
                    },
                .numbered_sessions = [this] { return shared_.block().numbered_sessions.load(); },
                .given = [this] { supervisor_->stop("another twscope has taken over"); }},
            std::move(*door));
    } else {
        spdlog::info("this run cannot be taken over: {}: {}", options_.takeover_file.string(),
                     std::system_category().message(errno));
    }
}

/// Its observer writes to the same files as ours, which looks when that has ended.
void RelayRun::await_end_of_other() {
    other_.emplace(supervisor_->io(), ::dup(options_.taker->descriptor()));
    other_->async_wait(boost::asio::posix::stream_descriptor::wait_read, [this](const auto& error) {
        if (!error) {
            begin_observing();
        }
    });
}

void RelayRun::begin_observing() {
    if (!other_) {
        return;
    }
    other_.reset();
    relay::UniqueFd legacy;
    if (auto left = options_.taker->left()) {
        auto& numbered = shared_.block().numbered_sessions;
        numbered = std::max(numbered.load(), left->said.numbered_sessions);
        legacy = std::move(left->legacy);
    }
    supervisor_->tell(Word::look, {}, legacy.get());
    if (giver_) {
        giver_->start();
    }
}

/// While another one takes over the relay does nothing for anybody.
void RelayRun::serve(const std::vector<ServedServer>& wanted) {
    postponed_ = wanted;
    serve_postponed();
}

void RelayRun::serve_postponed() {
    if (postponed_ && !(giver_ && giver_->holds())) {
        servers_->serve(*std::exchange(postponed_, std::nullopt));
    }
}

void RelayRun::on_second() {
    resyncs_.refill();
    serve_postponed();
    check_sessions();
    servers_->on_second(supervisor_->keeper() == nullptr, [this](relay::ServerIndex index,
                                                                 const relay::Endpoint& to) {
        supervisor_->tell(Word::server, moved_server(index, relay::to_string(to)));
    });
}

void RelayRun::check_sessions() {
    const relay::Counters counters = relay_->counters();
    if (const auto turned_away = admission_report_.check(counters)) {
        spdlog::warn("{}", *turned_away);
    }
    const std::uint64_t failed = counters.sessions_failed;
    if (failed != failed_sessions_reported_) {
        spdlog::warn("dropped {} datagrams of new clients: cannot open a socket to the server: {}",
                     failed - failed_sessions_reported_, relay_->last_session_error().message());
        failed_sessions_reported_ = failed;
    }
}

void RelayRun::change_impairment(const relay::Impairment& impairment) {
    relay_->set_impairment(impairment);
    shared_.block().facts.impairment = impairment;
}

LiveRunResult RelayRun::finish() {
    const bool gave = giver_ && giver_->gave();
    if (giver_) {
        giver_->stop();
    }
    if (gave) {
        relay_->leave(giver_->let_go());
    } else {
        relay_->stop();
    }
    relay_->join();
    if (other_) {
        pollfd ended{.fd = other_->native_handle(), .events = POLLIN, .revents = 0};
        std::ignore = ::poll(&ended, 1, static_cast<int>(kLastWord.count()));
        begin_observing();
    }
    const ObserverKeeper* const keeper = supervisor_->keeper();
    relay::UniqueFd legacy;
    if (gave && keeper != nullptr && keeper->link() != nullptr) {
        legacy = create_legacy_file();
        if (legacy.valid()) {
            supervisor_->tell(Word::legacy, {}, legacy.get());
        }
    }
    if (keeper == nullptr) {
        const relay::Counters counters = relay_->counters();
        spdlog::info("{} sessions, {} datagrams to the server, {} to clients",
                     counters.sessions_opened, counters.directions[0].datagrams,
                     counters.directions[1].datagrams);
    }
    const LiveRunResult result = supervisor_->finish();
    if (gave) {
        giver_->leave({.numbered_sessions = shared_.block().numbered_sessions}, legacy.get());
    }
    return result;
}

} // namespace tw::run
