#pragma once

#include "proxy/run/followed_server.h"
#include "proxy/run/name_search.h"

#include <functional>
#include <optional>
#include <vector>

namespace tw::run {

/// Servers that are to be added as soon as their names are looked up, which may take as long as it
/// likes.
class ServerArrivals {
  public:
    /// What looks up where a server is; see NameSearch.
    using LookupOf = std::function<NameSearch::Lookup(const relay::ServerOptions& where)>;

    explicit ServerArrivals(LookupOf lookup_of) : lookup_of_{std::move(lookup_of)} {}

    /// The system's resolver, and of several addresses the one that answers.
    [[nodiscard]] static NameSearch::Lookup system_lookup(const relay::ServerOptions& where);

    /// Looks its name up, unless that is under way.
    void expect(const ServedServer& server);
    /// Forgets those that are not among these.
    void keep(const std::vector<ServedServer>& wanted);

    struct Arrived {
        ServedServer server;
        std::optional<NameSearch::Endpoint> at; ///< nothing: nobody knows
    };

    /// Those that were looked up since.
    [[nodiscard]] std::vector<Arrived> take();

  private:
    struct Expected {
        ServedServer server;
        std::optional<NameSearch> search;
    };

    LookupOf lookup_of_;
    std::vector<Expected> expected_;
};

} // namespace tw::run
