#pragma once

#include "proxy/admin/admin.h"

#include <string>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace tw::cli {

/// The flags of `proxy` about the live page.
struct HttpFlags {
    std::string address; ///< empty: no page
    std::vector<std::string> hosts;

    void add_to(CLI::App& command);

    [[nodiscard]] bool on() const { return !address.empty(); }

    /// Errors: UsageError.
    [[nodiscard]] admin::AdminOptions options() const;
};

} // namespace tw::cli
