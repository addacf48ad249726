#include "proxy/capture/capture_run.h"

#include <cstdio>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace tw::capture {

namespace {

void report_capture(const std::string& path, const CaptureCounts& counts,
                    const CaptureSessions& sessions) {
    const std::pair<std::string_view, std::uint64_t> warnings[] = {
        {"IP fragments (not reassembled)", counts.fragments},
        {"datagrams cut short by the recorder (record with a snap length of 0)", counts.cut},
        {"datagrams of new sessions ignored: too many sessions at once", sessions.refused()},
    };
    for (const auto& [what, count] : warnings) {
        if (count != 0) {
            fmt::print(stderr, "twscope: {}: {} {}\n", path, count, what);
        }
    }
    if (counts.ended_early) {
        fmt::print(stderr,
                   "twscope: {}: ends in the middle of a frame; what comes before it is read\n",
                   path);
    }
    if (counts.datagrams == 0) {
        fmt::print(stderr, "twscope: {}: no UDP datagrams in {} frames\n", path, counts.frames);
    } else if (sessions.ignored() == counts.datagrams) {
        fmt::print(stderr,
                   "twscope: {}: none of the {} datagrams is to or from the server asked for\n",
                   path, counts.datagrams);
    }
}

} // namespace

CaptureRun::CaptureRun(std::vector<std::string> paths, ServerGuess servers)
    : paths_{std::move(paths)}, guess_{std::move(servers)} {
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

} // namespace tw::capture
