#include "proxy/run/server_name.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>
#include <utility>

namespace tw::run {

struct ServerName::Search {
    std::vector<Endpoint> found;
    std::atomic<bool> done{false}; ///< from then on `found` is its owner's
};

ServerName::ServerName(Lookup lookup, Endpoint current, Time now)
    : lookup_{std::move(lookup)}, current_{std::move(current)}, looked_{now} {}

std::optional<ServerName::Endpoint> ServerName::on_second(Time now, bool silent) {
    if (search_ != nullptr) {
        if (!search_->done.load(std::memory_order_acquire)) {
            return std::nullopt;
        }
        const auto search = std::exchange(search_, nullptr);
        const auto& found = search->found;
        if (found.empty() || std::find(found.begin(), found.end(), current_) != found.end()) {
            return std::nullopt;
        }
        current_ = found.front();
        return current_;
    }
    if (now - looked_ < (silent ? kSilentInterval : kInterval)) {
        return std::nullopt;
    }
    looked_ = now;
    auto search = std::make_shared<Search>();
    try {
        std::thread{[search, lookup = lookup_] {
            try {
                search->found = lookup();
            } catch (const std::exception&) {
                search->found.clear(); // as if nobody knew it
            }
            search->done.store(true, std::memory_order_release);
        }}.detach();
        search_ = std::move(search);
    } catch (const std::system_error&) {
        // No thread to be had: later.
    }
    return std::nullopt;
}

} // namespace tw::run
