#include "proxy/run/server_name.h"

#include <algorithm>
#include <utility>

namespace tw::run {

ServerName::ServerName(Lookup lookup, Endpoint current, Time now)
    : lookup_{std::move(lookup)}, current_{std::move(current)}, looked_{now} {}

std::optional<ServerName::Endpoint> ServerName::on_second(Time now, bool silent) {
    if (search_) {
        if (!search_->done()) {
            return std::nullopt;
        }
        const NameSearch search = *std::exchange(search_, std::nullopt);
        const auto& found = search.found();
        if (found.empty() || std::find(found.begin(), found.end(), current_) != found.end()) {
            return std::nullopt;
        }
        return found.front();
    }
    if (now - looked_ < (silent ? kSilentInterval : kInterval)) {
        return std::nullopt;
    }
    looked_ = now;
    search_ = NameSearch::begin(lookup_); // nothing: later
    return std::nullopt;
}

} // namespace tw::run
