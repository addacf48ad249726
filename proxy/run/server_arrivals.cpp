#include "proxy/run/server_arrivals.h"

#include "proxy/run/answering.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tw::run {

NameSearch::Lookup ServerArrivals::system_lookup(const relay::ServerOptions& where) {
    return [host = where.host, port = where.port] {
        return resolve_answering(host, port, Enough::one);
    };
}

void ServerArrivals::expect(const ServedServer& server) {
    if (std::ranges::find(expected_, server, &Expected::server) == expected_.end()) {
        expected_.push_back({server, NameSearch::begin(lookup_of_(server.where))});
    }
}

void ServerArrivals::keep(const std::vector<ServedServer>& wanted) {
    std::erase_if(expected_, [&](const Expected& each) {
        return std::ranges::find(wanted, each.server) == wanted.end();
    });
}

std::vector<ServerArrivals::Arrived> ServerArrivals::take() {
    const auto is_under_way = [](const Expected& each) {
        return each.search && !each.search->done();
    };
    const auto done = std::stable_partition(expected_.begin(), expected_.end(), is_under_way);
    std::vector<Arrived> arrived;
    for (auto each = done; each != expected_.end(); ++each) {
        const bool known = each->search && !each->search->found().empty();
        arrived.push_back({std::move(each->server),
                           known ? std::optional{each->search->found().front()} : std::nullopt});
    }
    expected_.erase(done, expected_.end());
    return arrived;
}

} // namespace tw::run
