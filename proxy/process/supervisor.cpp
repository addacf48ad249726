#include "proxy/process/supervisor.h"

#include "proxy/base/descriptors.h"

#include <algorithm>
#include <csignal>
#include <initializer_list>

#include <fcntl.h>
#include <spdlog/spdlog.h>

namespace tw::process {

namespace {

bool has_terminal() {
    return base::UniqueFd{::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)}.valid();
}

} // namespace

Terminal::Terminal() {
    struct sigaction now {};

    existed_ =
        ::sigaction(SIGHUP, nullptr, &now) == 0 && now.sa_handler != SIG_IGN && has_terminal();
}

bool Terminal::is_gone() const {
    return existed_ && !has_terminal();
}

Supervisor::Supervisor(SupervisorOptions options, Parts parts)
    : options_{std::move(options)}, parts_{std::move(parts)} {
    if (options_.observer) {
        keeper_.emplace(ObserverKeeper::Parts{
            .io = &io_,
            .shared = parts_.shared,
            .rings = parts_.rings,
            .command = options_.observer,
            .send_startup =
                [this](const channel::ProcessLink& link) {
                    return send_startup(link, options_.startup);
                },
            .impair =
                [this](const std::string& settings) {
                    // The relay's process checks the request, too, because the observer may
                    // misbehave.
                    const auto& facts = parts_.shared->block().facts;
                    const auto impairment =
                        relay::parse_impairment(settings, facts.impairment.seed);
                    if (impairment && parts_.impair) {
                        parts_.impair(*impairment);
                    }
                },
            .open_page = [this] { open_page(); },
            .resync = parts_.resync,
            .follows = parts_.follows});
    }
    signals_.emplace(io_, std::initializer_list<int>{SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP});
}

std::optional<ProcessExit> Supervisor::start_observer() {
    return keeper_ ? keeper_->start() : std::nullopt;
}

void Supervisor::run(std::chrono::steady_clock::time_point started) {
    await_end(started);
    signals_->listen([this](int signal) { on_signal(signal); });
    second_timer_.expires_after(std::chrono::seconds{1});
    second_timer_.async_wait([this](const auto& error) { every_second(error); });
    io_.run();
}

void Supervisor::await_end(std::chrono::steady_clock::time_point started) {
    if (!options_.time_limit) {
        return;
    }
    end_timer_.expires_at(started + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                        options_.time_limit->after));
    end_timer_.async_wait([this](const boost::system::error_code& error) {
        if (!error) {
            stop(options_.time_limit->reason);
        }
    });
}

bool Supervisor::send(channel::ControlMessage kind, std::string_view text, int descriptor) {
    const channel::ProcessLink* const link = keeper_ ? keeper_->link() : nullptr;
    return link != nullptr && link->send(kind, text, descriptor);
}

void Supervisor::on_signal(int signal) {
    if (stopping_) {
        return;
    }
    if (signal == SIGUSR1 || signal == SIGUSR2) {
        send(signal == SIGUSR1 ? channel::ControlMessage::report : channel::ControlMessage::flight);
    } else if (signal != SIGHUP) {
        stop(signal == SIGINT ? "interrupted" : "terminated");
    } else if (options_.terminal.is_gone()) {
        stop("the terminal is gone");
    } else if (options_.reload) {
        reload();
    }
}

void Supervisor::reload() {
    const ReloadedSettings changes = options_.reload();
    send(channel::ControlMessage::reopen);
    if (changes.log_level) {
        spdlog::set_level(spdlog::level::from_str(*changes.log_level));
        options_.startup.log_level = *changes.log_level;
        send(channel::ControlMessage::log_level, *changes.log_level);
    }
    if (changes.token && *changes.token != options_.startup.token) {
        options_.startup.token = *changes.token;
        if (keeper_ && keeper_->link() != nullptr) {
            send_token(*keeper_->link(), *changes.token);
        }
    }
    if (changes.servers && parts_.serve) {
        parts_.serve(*changes.servers);
    }
    // The observer writes the records of impairments, so the observer is asked to request this
    // change. If it hangs, the change is made without its request.
    if (changes.impairment && parts_.impair) {
        requested_impairment_ = {
            .before = impairment(), .wanted = *changes.impairment, .seconds = 0};
        if (!send(channel::ControlMessage::impair, relay::to_string(*changes.impairment))) {
            apply_requested_impairment();
        }
    }
}

const relay::Impairment& Supervisor::impairment() const {
    return parts_.shared->block().facts.impairment;
}

void Supervisor::apply_requested_impairment() {
    const auto asked = std::exchange(requested_impairment_, std::nullopt);
    if (asked && impairment() == asked->before) {
        parts_.impair(asked->wanted);
    }
}

void Supervisor::every_second(const boost::system::error_code& error) {
    if (error || stopping_) {
        return;
    }
    if (parts_.on_second) {
        parts_.on_second();
    }
    if (keeper_) {
        keeper_->kill_if_hanging();
    }
    if (requested_impairment_ && requested_impairment_->seconds++ > 0) {
        apply_requested_impairment();
    }
    // After a delay, missed seconds are skipped, so that the observer is checked a second apart.
    const auto now = std::chrono::steady_clock::now();
    second_timer_.expires_at(std::max(second_timer_.expiry(), now) + std::chrono::seconds{1});
    second_timer_.async_wait([this](const auto& next) { every_second(next); });
}

void Supervisor::open_page() {
    if (!options_.open_page) {
        return;
    }
    try {
        for (const web::ListeningSocket& each : options_.open_page()) {
            send(channel::ControlMessage::page, {}, each.descriptor());
        }
    } catch (const std::exception& error) {
        send(channel::ControlMessage::page, error.what());
    }
}

void Supervisor::stop(std::string_view why) {
    spdlog::info("stopping: {}", why);
    stopping_ = true;
    io_.stop();
}

LiveRunResult Supervisor::finish() {
    LiveRunResult result;
    if (keeper_) {
        result.observer = keeper_->finish();
        result.observer_failures = keeper_->num_failures();
    }
    return result;
}

} // namespace tw::process
