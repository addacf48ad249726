#include "proxy/inspect/server_silence.h"

namespace tw::inspect {

void ServerSilence::on_datagram(std::string_view server, Reporter& reporter) {
    if (reporter.direction() == wire::Direction::s2c) {
        if (silent_) {
            report(server, "ended", reporter);
        }
        unanswered_ = 0;
        silent_ = false;
        return;
    }
    const record::Timestamp now = reporter.head().time;
    if (unanswered_ == 0 || (!silent_ && now - last_ > kPause)) {
        unanswered_ = 0;
        since_ = now;
    }
    last_ = now;
    ++unanswered_;
    if (!silent_ && unanswered_ >= kUnanswered && now - since_ >= kPatience) {
        silent_ = true;
        report(server, "began", reporter);
    }
}

void ServerSilence::on_gap() {
    if (!silent_) {
        unanswered_ = 0;
    }
}

void ServerSilence::report(std::string_view server, std::string_view what,
                           Reporter& reporter) const {
    constexpr record::Timestamp kMillisecond = 1'000'000;
    reporter.finding({.id = record::FindingId::session_server_silent,
                      .lost = unanswered_,
                      .value = (reporter.head().time - since_) / kMillisecond,
                      .name = server,
                      .detail = what});
}

} // namespace tw::inspect
