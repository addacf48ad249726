#include "proxy/run/relay_run.h"

#include "proxy/relay/endpoint.h"
#include "proxy/run/address_proof.h"

#include <csignal>
#include <utility>

#include <spdlog/spdlog.h>

namespace tw::run {

RelayRun::RelayRun(RelayRunOptions options)
    : options_{std::move(options)}, shared_{options_.relay.threads,
                                            options_.inspected ? options_.ring_bytes : 0} {
    std::vector<relay::Ring*> rings;
    rings_.reserve(options_.relay.threads);
    for (unsigned i = 0; i < options_.relay.threads && options_.inspected; ++i) {
        rings.push_back(&rings_.emplace_back(shared_.ring(i)));
    }
    options_.relay.prove = options_.admission ? prove_address : nullptr;
    relay_.emplace(options_.relay, rings, &shared_.block().observation);
    RelayFacts& facts = shared_.block().facts;
    for (const auto& endpoint : relay_->listen_endpoints()) {
        facts.listen.at(facts.num_listen++) = relay::endpoint_from(endpoint.data());
    }
    facts.server = relay_->server_endpoint();
    facts.impairment = relay_->impairment();
    if (options_.observer) {
        keeper_.emplace(ObserverKeeper::Parts{
            .io = &io_,
            .shared = &shared_,
            .rings = rings_,
            .command = options_.observer,
            .greet =
                [this](const ProcessLink& link) { return send_greeting(link, options_.greeting); },
            .impair = [this](const std::string& settings) { impair(settings); }});
    }
    signals_.emplace(io_, std::initializer_list<int>{SIGINT, SIGTERM, SIGUSR1, SIGHUP});
}

std::optional<Ending> RelayRun::open() {
    if (keeper_) {
        if (auto ending = keeper_->start()) {
            return ending;
        }
    }
    for (const auto& endpoint : relay_->listen_endpoints()) {
        spdlog::info("listening on {}, forwarding to {}", relay::to_string(endpoint),
                     relay::to_string(relay_->server_endpoint()));
    }
    return std::nullopt;
}

RelayRunResult RelayRun::run() {
    relay_->start();
    boost::system::error_code is_name;
    static_cast<void>(boost::asio::ip::make_address(options_.relay.server_host, is_name));
    if (is_name) {
        server_name_.emplace(
            [host = options_.relay.server_host, port = options_.relay.server_port] {
                return relay::resolve_all(host, port);
            },
            relay::to_asio(relay_->server_endpoint()), std::chrono::steady_clock::now());
    }
    started_ = std::chrono::steady_clock::now();
    await_end();
    signals_->listen([this](int signal) { on_signal(signal); });
    second_timer_.expires_after(std::chrono::seconds{1});
    second_timer_.async_wait([this](const auto& error) { every_second(error); });
    io_.run();
    return finish();
}

void RelayRun::await_end() {
    if (options_.time_limit) {
        end_timer_.expires_at(started_ +
                              std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                  options_.time_limit->after));
        end_timer_.async_wait([this](const boost::system::error_code& error) {
            if (!error) {
                stop(options_.time_limit->reason);
            }
        });
    }
}

void RelayRun::on_signal(int signal) {
    if (stopping_) {
        return;
    }
    if (signal == SIGUSR1) {
        if (keeper_) {
            keeper_->tell(Word::report);
        }
    } else if (signal != SIGHUP) {
        stop(signal == SIGINT ? "interrupted" : "terminated");
    } else if (options_.terminal.gone()) {
        stop("the terminal is gone");
    } else if (options_.reload) {
        reload();
    }
}

void RelayRun::reload() {
    const Reload changes = options_.reload();
    const ProcessLink* const link = keeper_ ? keeper_->link() : nullptr;
    for (const auto& [word, file] : changes.files) {
        if (link != nullptr) { // else the next observer opens it by its name
            link->send(word, {}, file.get());
        }
    }
    if (changes.log_level) {
        spdlog::set_level(spdlog::level::from_str(*changes.log_level));
        options_.greeting.log_level = *changes.log_level;
        if (link != nullptr) {
            link->send(Word::log_level, *changes.log_level);
        }
    }
    if (changes.token && *changes.token != options_.greeting.token) {
        options_.greeting.token = *changes.token;
        if (link != nullptr) {
            send_token(*link, *changes.token);
        }
    }
    // Who looks writes down how bad the line is: it is to ask for it.
    if (changes.impairment &&
        (link == nullptr || !link->send(Word::impair, relay::to_string(*changes.impairment)))) {
        change_impairment(*changes.impairment);
    }
}

void RelayRun::every_second(const boost::system::error_code& error) {
    if (error || stopping_) {
        return;
    }
    check_sessions();
    follow_server();
    if (keeper_) {
        keeper_->check();
    } else {
        server_report_.check(relay_->counters(), relay::to_string(relay_->server_endpoint()),
                             nullptr, nullptr);
    }
    second_timer_.expires_at(second_timer_.expiry() + std::chrono::seconds{1});
    second_timer_.async_wait([this](const auto& next) { every_second(next); });
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

void RelayRun::follow_server() {
    if (!server_name_) {
        return;
    }
    const auto now = std::chrono::steady_clock::now();
    const relay::Counters counters = relay_->counters();
    static_cast<void>(server_watch_.on_second(now, {.to_server = counters.directions[0].datagrams,
                                                    .from_server = counters.directions[1].datagrams,
                                                    .refused = counters.icmp_refused}));
    const auto moved = server_name_->on_second(now, server_watch_.silent());
    if (!moved) {
        return;
    }
    const std::string where = relay::to_string(*moved);
    try {
        relay_->set_server(*moved);
    } catch (const relay::StartError& error) {
        spdlog::warn("the name {} leads to {} now, which cannot be used: {}",
                     options_.relay.server_host, where, error.what());
        return;
    }
    spdlog::info("the server {} is at {} now; new sessions lead there", options_.relay.server_host,
                 where);
    shared_.block().facts.server = relay_->server_endpoint();
    if (keeper_ && keeper_->link() != nullptr) {
        keeper_->link()->send(Word::server, where);
    }
}

void RelayRun::impair(const std::string& settings) {
    // Checked by the observer, which may have gone mad since.
    const auto impairment = relay::parse_impairment(settings, relay_->impairment().seed);
    if (impairment) {
        change_impairment(*impairment);
    }
}

void RelayRun::change_impairment(const relay::Impairment& impairment) {
    relay_->set_impairment(impairment);
    shared_.block().facts.impairment = impairment;
}

void RelayRun::stop(std::string_view why) {
    spdlog::info("stopping: {}", why);
    stopping_ = true;
    io_.stop();
}

RelayRunResult RelayRun::finish() {
    relay_->stop();
    relay_->join();
    RelayRunResult result;
    if (keeper_) {
        result.observer = keeper_->finish();
        result.observer_failures = keeper_->failures();
    } else {
        const relay::Counters counters = relay_->counters();
        spdlog::info("{} sessions, {} datagrams to the server, {} to clients",
                     counters.sessions_opened, counters.directions[0].datagrams,
                     counters.directions[1].datagrams);
    }
    return result;
}

} // namespace tw::run
