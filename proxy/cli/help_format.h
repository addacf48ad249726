#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace tw::cli {

/// Whether a flag takes no value.
[[nodiscard]] bool is_switch(const CLI::Option& option);

/// The words a flag's value can be: none, changed, all; empty where it can be anything.
[[nodiscard]] std::vector<std::string> value_words(const CLI::Option& option);

/// Help as people and help2man read it: "-o, --output FILE", values as "none|changed|all", and the
/// default behind the description.
class HelpFormat : public CLI::Formatter {
  public:
    [[nodiscard]] std::string make_option(const CLI::Option* option,
                                          bool is_positional) const override;
};

} // namespace tw::cli
