#include "proxy/process/server_report.h"

#include "proxy/process/live_page.h"
#include "proxy/record/terminal_text.h"

#include <chrono>
#include <optional>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace tw::process {

namespace {

std::string seconds_text(ServerWatch::Time from, ServerWatch::Time to) {
    return record::counted(
        static_cast<std::uint64_t>(std::chrono::round<std::chrono::seconds>(to - from).count()),
        "second[s]");
}

/// Converts a steady time to Unix time for the page.
std::int64_t utc_ms(ServerWatch::Time time, ServerWatch::Time now) {
    const auto utc = std::chrono::system_clock::now() -
                     std::chrono::duration_cast<std::chrono::system_clock::duration>(now - time);
    return std::chrono::duration_cast<std::chrono::milliseconds>(utc.time_since_epoch()).count();
}

} // namespace

ServerWatch::Change ServerReport::update(ServerWatch::Time now, const relay::Counters& counters,
                                         const SendRequest& send_request) {
    using Change = ServerWatch::Change;
    const Change change =
        watch_.on_second(now, {.to_server = counters.directions[0].datagrams - counters.strays,
                               .from_server = counters.directions[1].datagrams,
                               .refused = counters.icmp_refused});
    if (change == Change::began && send_request) {
        seconds_left_ = kAnswerSeconds;
        send_request();
        return Change::none;
    }
    if (seconds_left_ == 0) {
        return change;
    }
    if (change == Change::ended) {
        seconds_left_ = 0; // the server has answered
        return Change::none;
    }
    return --seconds_left_ == 0 ? Change::began : Change::none;
}

void ServerReport::check(ServerWatch::Time now, const relay::Counters& counters,
                         const std::string& server, sink::Console* console, const Show& show,
                         const SendRequest& send_request) {
    const ServerWatch::Change change = update(now, counters, send_request);
    const bool silent = watch_.silent() && seconds_left_ == 0;
    const ServerWatch::Silence& silence = watch_.silence();
    if (change == ServerWatch::Change::began) {
        since_ms_ = utc_ms(silence.since, now);
    }
    if (show && (silent || change != ServerWatch::Change::none)) {
        show(silent ? std::optional{web::SilenceState{.since_ms = since_ms_,
                                                      .unanswered = silence.unanswered,
                                                      .refused = silence.refused}}
                    : std::nullopt);
    }
    if (change == ServerWatch::Change::none) {
        return;
    }
    const bool began = change == ServerWatch::Change::began;
    const std::string line =
        began ? describe_silence(server, silence, now) : describe_answer(server, silence, now);
    spdlog::log(began ? spdlog::level::warn : spdlog::level::info, "{}", line);
    if (console != nullptr) {
        console->add_notice(line, began ? record::Severity::warning : record::Severity::info);
    }
}

void ServerReports::check(boost::asio::io_context& io, const channel::RelayWindow& relay,
                          sink::Console* console, LivePage* page) {
    constexpr std::chrono::seconds kDeadline{1};
    const auto now = std::chrono::steady_clock::now();
    for (relay::ServerIndex i = 0; i < relay.num_servers(); ++i) {
        const auto show = [page, i](const std::optional<web::SilenceState>& silence) {
            if (page != nullptr) {
                page->set_silence(i, silence);
            }
        };
        const auto send_request = [&] { // sent through the relay, whose totals then show the answer
            const auto where = reachable_address(base::to_asio(relay.listen_endpoints(i).front()));
            probes_.try_emplace(i, io, where, kDeadline).first->second.request([](bool) {});
        };
        if (!relay.is_removed(i)) {
            // A tap sends no requests.
            reports_[i].check(now, relay.counters(i), relay.server_text(i), console, show,
                              relay.is_tap() ? ServerReport::SendRequest{}
                                             : ServerReport::SendRequest{send_request});
        } else if (reports_.erase(i) != 0) {
            show(std::nullopt);
        }
    }
}

void ServerReports::stop() {
    for (auto& [unused, probe] : probes_) {
        probe.stop();
    }
}

std::string describe_silence(const std::string& server, const ServerWatch::Silence& silence,
                             ServerWatch::Time now) {
    std::string line = fmt::format("the server {} does not answer: {} in {} without an answer",
                                   server, record::counted(silence.unanswered, "datagram[s]"),
                                   seconds_text(silence.since, now));
    if (silence.refused != 0) {
        line += fmt::format(", {} refused: nothing listens there", silence.refused);
    }
    return line;
}

std::string describe_answer(const std::string& server, const ServerWatch::Silence& silence,
                            ServerWatch::Time now) {
    return fmt::format("the server {} answers again, after {} and {}", server,
                       seconds_text(silence.since, now),
                       record::counted(silence.unanswered, "datagram[s]"));
}

} // namespace tw::process
