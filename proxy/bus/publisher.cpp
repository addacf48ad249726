#include "proxy/bus/publisher.h"

#include "proxy/bus/subjects.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

namespace tw::bus {

namespace {

constexpr std::chrono::milliseconds kFirstPause{100};
constexpr std::chrono::milliseconds kLongestPause{1600};
/// New lines wait at most so long while older ones are under way.
constexpr std::chrono::milliseconds kAnswers{5};
/// How often it is seen that a connection is gone.
constexpr std::chrono::milliseconds kIdleLook{250};
/// What a thread whose time is over needs to see it.
constexpr std::chrono::milliseconds kGrace{150};
/// And that a run beside this one has ended, as one that was taken over from.
constexpr std::chrono::seconds kLookForLeftovers{5};
constexpr unsigned kMiB = 20;

std::string shown(const std::vector<std::string>& urls) {
    std::vector<std::string> names;
    std::transform(urls.begin(), urls.end(), std::back_inserter(names),
                   [](const std::string& url) { return shown_url(url); });
    return fmt::format("{}", fmt::join(names, ","));
}

} // namespace

Publisher::Publisher(PublishOptions options, Backlog& backlog, Leftovers leftovers)
    : options_{std::move(options)}, where_{shown(options_.access.urls)}, backlog_{&backlog},
      leftovers_{std::move(leftovers)} {}

Publisher::~Publisher() {
    finish(std::chrono::milliseconds{0});
}

void Publisher::wake(const std::shared_ptr<void>& all) {
    {
        const std::lock_guard lock{mutex_};
        woken_ = true;
        if (!thread_.joinable() && !stop_) {
            ended_ = false;
            thread_ = std::thread{[this, all] {
                run();
                const std::lock_guard ending{mutex_};
                ended_ = true;
                end_.notify_one();
            }};
        }
    }
    wake_.notify_one();
}

void Publisher::finish(std::chrono::milliseconds patience) {
    std::unique_lock lock{mutex_};
    if (!stop_) {
        stop_ = true;
        deadline_ = Clock::now() + patience;
    }
    wake_.notify_one();
    if (!end_.wait_until(lock, deadline_ + kGrace, [this] { return ended_; })) {
        thread_.detach();
        return;
    }
    lock.unlock();
    if (thread_.joinable()) {
        thread_.join();
    }
}

bool Publisher::stopping() {
    const std::lock_guard lock{mutex_};
    return stop_;
}

bool Publisher::out_of_time() {
    const std::lock_guard lock{mutex_};
    return stop_ && Clock::now() >= deadline_;
}

void Publisher::wait(std::chrono::milliseconds time) {
    std::unique_lock lock{mutex_};
    wake_.wait_for(lock, time, [this] { return woken_ || stop_; });
    woken_ = false;
}

void Publisher::complain(const std::string& what) {
    if (complaint_ != what && !out_of_time()) {
        spdlog::warn("cannot publish records to {}: {}; trying again", where_, what);
        complaint_ = what;
    }
}

/// What stood in its way does so no more.
void Publisher::went_on(const Sending& sending) {
    if (!complaint_.empty() && (sending.idle() || totals_.acknowledged != acknowledged_)) {
        spdlog::info("publishing to {} again", where_);
        complaint_.clear();
    }
}

/// One that was there is taken as it is: whoever asked for others is to know.
void Publisher::compare_limits(const StreamLimits& there) {
    StreamLimits asked = options_.limits;
    asked.duplicates = there.duplicates;
    if (std::exchange(compared_, true) || options_.limits == StreamLimits{} || asked == there) {
        return;
    }
    const auto shown = [](const StreamLimits& limits) {
        return fmt::format("{} s, {} MiB, {} replicas", limits.age.count(), limits.bytes >> kMiB,
                           limits.replicas);
    };
    spdlog::warn("the stream {} already exists with other limits ({}) than requested ({}); 'nats "
                 "stream edit' changes them",
                 options_.stream, shown(there), shown(asked));
}

void Publisher::run() {
    auto pause = kFirstPause;
    while (true) {
        const auto begun = Clock::now();
        const auto served = serve();
        totals_.connected = false;
        if (served) {
            return;
        }
        complain(served.error());
        if (Clock::now() - begun > kLongestPause) {
            pause = kFirstPause;
        }
        for (const auto until = Clock::now() + pause; Clock::now() < until;) {
            if (out_of_time()) {
                return;
            }
            std::this_thread::sleep_for(kFirstPause / 2);
        }
        pause = std::min(2 * pause, kLongestPause);
    }
}

Tried<void> Publisher::serve() {
    const auto link =
        Link::open(options_.access, fmt::format("twscope {}", subject_of_all(options_.server)));
    if (!link) {
        return tl::unexpected{link.error()};
    }
    const auto there = (*link)->need_stream(options_.stream, options_.limits);
    if (!there) {
        return tl::unexpected{there.error()};
    }
    compare_limits(there->limits);
    if (out_of_time()) {
        return {};
    }
    totals_.connected = true;
    ++totals_.connections;
    acknowledged_ = totals_.acknowledged;
    if (totals_.connections == 1) {
        spdlog::info("publishing to {} as {}.{}", where_, options_.stream,
                     subject_of_all(options_.server));
    }
    while (true) {
        if (auto published = publish_leftovers(**link); !published) {
            return published;
        }
        const auto done = publish(**link, *backlog_, false);
        if (!done || *done) {
            return done ? Tried<void>{} : tl::unexpected{done.error()};
        }
    }
}

/// What earlier runs left, under the ids that they gave it.
Tried<void> Publisher::publish_leftovers(const Link& link) {
    looked_ = Clock::now();
    while (leftovers_ && !out_of_time()) {
        if (!leftover_) {
            leftover_ = leftovers_();
        }
        if (!leftover_) {
            break;
        }
        const std::uint64_t waiting = leftover_->last() - leftover_->settled();
        if (waiting != 0) {
            spdlog::info("publishing {} records that an earlier run left in the spool", waiting);
        }
        if (auto published = publish(link, *leftover_, true); !published) {
            return tl::unexpected{published.error()};
        }
        if (!out_of_time()) {
            leftover_.reset();
        }
    }
    return {};
}

Tried<bool> Publisher::publish(const Link& link, Backlog& backlog, bool to_its_end) {
    if (out_of_time()) {
        return true;
    }
    const auto stream = link.need_stream(options_.stream, options_.limits);
    if (!stream) {
        return tl::unexpected{stream.error()};
    }
    Sending sending{link, options_.stream, backlog, totals_};
    if (auto begun = sending.begin(stream->last); !begun) {
        return tl::unexpected{begun.error()};
    }
    while (!out_of_time()) {
        const bool last = to_its_end || stopping(); // asked before, so that nothing is missed
        if (auto stepped = sending.step(kAnswers); !stepped) {
            return tl::unexpected{stepped.error()};
        }
        went_on(sending);
        if (sending.idle()) {
            if (last) {
                sending.finish();
                return true;
            }
            if (Clock::now() - looked_ > kLookForLeftovers) {
                looked_ = Clock::now();
                leftover_ = leftovers_ ? leftovers_() : nullptr;
                if (leftover_) {
                    return false;
                }
            }
            wait(kIdleLook);
        }
    }
    if (!backlog.lasting()) {
        sending.finish(); // nobody asks the stream for the rest any more: what it took is not lost
    }
    return true;
}

} // namespace tw::bus
