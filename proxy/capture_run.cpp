#include "proxy/capture_run.h"

#include "proxy/settings.h"

#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>
#include <boost/asio/ip/address.hpp>
#include <fmt/format.h>

namespace tw {

namespace {

void set_server(ServerGuess& guess, const std::string& text) {
    if (text.empty()) {
        return;
    }
    const HostPort server = parse_host_port(text, "--server");
    std::optional<boost::asio::ip::address> address;
    if (!server.host.empty()) {
        boost::system::error_code error;
        address = boost::asio::ip::make_address(server.host, error);
        if (error) {
            throw UsageError{fmt::format("--server {}: captures know addresses, not names; give "
                                         "ADDRESS:PORT or :PORT",
                                         text)};
        }
    }
    guess.only(server.port, address);
}

void report_capture(const std::string& path, const CaptureCounts& counts,
                    const CaptureSessions& sessions) {
    const std::pair<std::string_view, std::uint64_t> oddities[] = {
        {"IP fragments (not put together)", counts.fragments},
        {"datagrams recorded shorter than they were (capture with -s 0)", counts.cut},
        {"datagrams of new sessions beyond the limit", sessions.refused()},
    };
    for (const auto& [what, count] : oddities) {
        if (count != 0) {
            fmt::print(stderr, "twscope: {}: {} {}\n", path, count, what);
        }
    }
    if (counts.ended_early) {
        fmt::print(stderr, "twscope: {}: ends inside a frame; what came before it counts\n", path);
    }
    if (counts.datagrams == 0) {
        fmt::print(stderr, "twscope: {}: no UDP datagram in {} frames\n", path, counts.frames);
    } else if (sessions.ignored() == counts.datagrams) {
        fmt::print(stderr,
                   "twscope: {}: none of {} datagrams is of the server given with "
                   "--server\n",
                   path, counts.datagrams);
    }
}

} // namespace

void CaptureFlags::add_to(CLI::App& command) {
    command.add_option("captures", paths, "Capture files; - is standard input")
        ->type_name("CAPTURE...")
        ->required();
    command
        .add_option("--server", server,
                    "Look only at this server's traffic (otherwise servers are recognised by what "
                    "they send)")
        ->type_name("[ADDRESS]:PORT");
}

CaptureRun::CaptureRun(const CaptureFlags& flags) : paths_{flags.paths} {
    set_server(guess_, flags.server);
    for (const std::string& path : paths_) {
        files_.push_back(std::make_unique<CaptureFile>(path));
    }
}

void CaptureRun::read(inspect::Inspector& inspector, const std::string& pseudonym_key) {
    CaptureSessions sessions{inspector, guess_, {.pseudonym_key = pseudonym_key}};
    bool any = false;
    for (std::size_t i = 0; i < files_.size(); ++i) {
        CapturedDatagram datagram;
        while (files_[i]->next(datagram)) {
            first_ = any ? first_ : datagram.time;
            any = true;
            sessions.on_datagram(datagram);
        }
        report_capture(paths_[i], files_[i]->counts(), sessions);
    }
    sessions.finish();
    last_ = sessions.now();
}

} // namespace tw
