#pragma once

#include "proxy/cli/commands.h"
#include "proxy/cli/proxy_flags.h"
#include "proxy/cli/settings.h"
#include "proxy/run/relay_run.h"

#include <map>
#include <string>
#include <vector>

namespace tw::cli {

/// Reads the configuration again while `proxy` runs, and opens its files again.
class Reloading {
  public:
    /// `settings`: complete, of the start.
    Reloading(Invocation invocation, const ProxyFlags& flags, const Settings& settings);

    /// What is to change now. Says in the log what cannot, and why; where the configuration is
    /// broken, nothing of it changes.
    [[nodiscard]] run::Reload operator()();

  private:
    using Values = std::map<std::string, std::vector<std::string>>;

    void reread(run::Reload& reload);
    void reopen(run::Reload& reload) const;

    Invocation invocation_;
    std::string output_;
    std::string summary_;
    Values values_; ///< in force
};

} // namespace tw::cli
