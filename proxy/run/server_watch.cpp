#include "proxy/run/server_watch.h"

#include <utility>

namespace tw::run {

ServerWatch::Change ServerWatch::on_second(Time now, const Totals& totals) {
    const Totals before = std::exchange(last_, totals);
    if (totals.from_server != before.from_server) {
        if (std::exchange(silent_, false)) {
            return Change::ended;
        }
        silence_ = {};
        return Change::none;
    }
    const std::uint64_t sent = totals.to_server - before.to_server;
    if (sent != 0) {
        if (!silent_ && (silence_.unanswered == 0 || now - last_sent_ > kPause)) {
            silence_ = {.since = now};
        }
        last_sent_ = now;
        silence_.unanswered += sent;
    }
    silence_.refused += totals.refused - before.refused;
    if (!silent_ && silence_.unanswered >= kUnanswered &&
        last_sent_ - silence_.since >= kPatience) {
        silent_ = true;
        return Change::began;
    }
    return Change::none;
}

} // namespace tw::run
