#include "proxy/run/relay_run.h"

#include "proxy/relay/endpoint.h"
#include "proxy/run/address_proof.h"
#include "proxy/run/legacy_file.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <tuple>
#include <utility>

#include <poll.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

namespace tw::run {

namespace {

/// For the relay before this one to write what is left, where this one ends meanwhile.
constexpr std::chrono::milliseconds kLastWord{500};

bool same(const ServedServer& a, const ServedServer& b) {
    return a.name == b.name && a.where.host == b.where.host && a.where.port == b.where.port &&
           a.where.listen == b.where.listen;
}

bool contains(const std::vector<ServedServer>& servers, const ServedServer& wanted) {
    return std::ranges::any_of(servers, [&](const auto& each) { return same(each, wanted); });
}

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
    std::vector<relay::UniqueFd> listening;
    if (options_.taker != nullptr) {
        options_.relay.listen = options_.taker->addresses(options_.relay.listen);
        listening = options_.taker->take_listening_sockets();
    }
    relay_.emplace(options_.relay, rings, &shared_.block().observation, std::move(listening));
    name_server(0, options_.servers.front().name);
    note_server(0);
    for (std::size_t i = 1; i < options_.servers.size(); ++i) {
        std::ignore = add_server(options_.servers[i]);
    }
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
    for (relay::ServerIndex i = 0; i < relay_->next_server(); ++i) {
        tell_of(i);
    }
    return std::nullopt;
}

void RelayRun::tell_of(relay::ServerIndex index) const {
    const std::string_view name = shared_.block().facts.servers.at(index).shown_name();
    for (const auto& endpoint : relay_->listen_endpoints(index)) {
        spdlog::info("listening on {}, forwarding to {}{}", relay::to_string(endpoint),
                     name.empty() ? std::string{} : fmt::format("{}, ", name),
                     relay::to_string(relay_->server_endpoint(index)));
    }
}

/// Before its first session, so that the observer knows it.
void RelayRun::name_server(relay::ServerIndex index, const std::string& name) {
    ServerFacts& server = shared_.block().facts.servers.at(index);
    server.name.fill(0);
    std::copy_n(name.begin(), std::min(name.size(), ServerFacts::kMaxName), server.name.begin());
    server.removed = true; // until it is there
}

relay::ServerIndex RelayRun::add_server(const ServedServer& added) {
    if (relay_->next_server() < relay::kMaxServers) {
        name_server(relay_->next_server(), added.name);
    }
    const relay::ServerIndex index = relay_->add_server(added.where);
    note_server(index);
    return index;
}

void RelayRun::note_server(relay::ServerIndex index) {
    RelayFacts& facts = shared_.block().facts;
    ServerFacts& server = facts.servers.at(index);
    for (const auto& endpoint : relay_->listen_endpoints(index)) {
        server.listen.at(server.num_listen++) = relay::endpoint_from(endpoint.data());
    }
    server.server = relay_->server_endpoint(index);
    server.removed = false;
    facts.num_servers = std::uint32_t{index} + 1;
}

void RelayRun::begin_forwarding() {
    relay_->start();
    for (std::size_t i = 0; i < options_.servers.size(); ++i) {
        servers_.emplace_back(*relay_, static_cast<relay::ServerIndex>(i), options_.servers[i]);
    }
    started_ = std::chrono::steady_clock::now();
}

void RelayRun::take_over() {
    HandoverTaker& taker = *options_.taker;
    const TakeoverRest rest = taker.take(*relay_, host_name(options_.servers.front().where));
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
    if (relay_->server_endpoint() != taker.offer().server) {
        spdlog::info("the server {} is at {} now; new sessions lead there",
                     options_.relay.server_host, relay::to_string(relay_->server_endpoint()));
    }
    const std::size_t sets = taker.offer().listening_sockets / relay_->listen_endpoints().size();
    if (sets < options_.relay.threads) {
        spdlog::warn("{} of {} relay threads have nothing to do: only a restart shares the clients "
                     "among more threads than there were",
                     options_.relay.threads - sets, options_.relay.threads);
    }
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
                .server_name = host_name(options_.servers.front().where),
                .observer =
                    [this] {
                        return supervisor_->keeper() != nullptr ? supervisor_->keeper()->number()
                                                                : 0;
                    },
                .numbered_sessions = [this] { return shared_.block().numbered_sessions.load(); },
                .given = [this] { supervisor_->stop("another twscope has taken over"); }},
            std::move(*door));
    } else {
        spdlog::info("nobody can take over from this run: {}: {}", options_.takeover_file.string(),
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

void RelayRun::on_second() {
    resyncs_.refill();
    check_sessions();
    follow_servers();
}

void RelayRun::check_sessions() {
    const relay::Counters counters = relay_->counters();
    if (const auto turned_away = admission_report_.check(counters)) {
        spdlog::warn("{}", *turned_away);
    }
    const std::uint64_t failed = counters.sessions_failed;
    if (failed != failed_sessions_reported_) {
        spdlog::warn("{} datagrams of new clients lost: no socket to the server could be opened "
                     "for them: {}",
                     failed - failed_sessions_reported_, relay_->last_session_error().message());
        failed_sessions_reported_ = failed;
    }
}

void RelayRun::follow_servers() {
    for (FollowedServer& server : servers_) {
        const relay::Counters counters =
            relay::totals_of(shared_.block().observation, server.index());
        if (const auto moved = server.follow(counters)) {
            shared_.block().facts.servers.at(server.index()).server = *moved;
            supervisor_->tell(Word::server, moved_server(server.index(), relay::to_string(*moved)));
        }
        if (supervisor_->keeper() == nullptr) {
            server.report(counters);
        }
    }
}

void RelayRun::take_out(const std::vector<ServedServer>& wanted) {
    for (auto server = servers_.begin(); server != servers_.end();) {
        if (contains(wanted, server->served())) {
            ++server;
            continue;
        }
        relay_->remove_server(server->index());
        shared_.block().facts.servers.at(server->index()).removed = true;
        spdlog::info("the server {} is taken out", server->served().name);
        server = servers_.erase(server);
    }
}

void RelayRun::serve(const std::vector<ServedServer>& wanted) {
    try {
        take_out(wanted);
    } catch (const std::exception& error) {
        spdlog::error("the servers stay as they are: {}", error.what());
        return;
    }
    for (const ServedServer& each : wanted) {
        const bool is_there = std::ranges::any_of(
            servers_, [&](const auto& server) { return same(server.served(), each); });
        if (is_there) {
            continue;
        }
        try {
            const relay::ServerIndex index = add_server(each);
            servers_.emplace_back(*relay_, index, each);
            tell_of(index);
        } catch (const std::exception& error) {
            spdlog::error("the server {} is not there: {}; it is tried again with the next SIGHUP",
                          each.name, error.what());
        }
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
        relay_->leave();
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
