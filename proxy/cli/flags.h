#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

namespace tw::cli {

struct Invocation;

/// A usage error. The message is one line that says what is wrong and what to do.
class UsageError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

template <typename... Args>
[[nodiscard]] UsageError usage_error(fmt::format_string<Args...> text, Args&&... args) {
    return UsageError{fmt::format(text, std::forward<Args>(args)...)};
}

/// The text after a flag's name in the error for a flag without its value.
inline constexpr std::string_view kMissingValueText = ": needs a value";

using Texts = std::vector<std::string>;

/// Calls `check`. If it throws an exception, adds the message to the list, unless the list contains
/// the message already.
template <typename Check>
void add_problem_of_check(Texts& problems, const Check& check) {
    try {
        check();
    } catch (const std::exception& error) {
        if (std::find(problems.begin(), problems.end(), error.what()) == problems.end()) {
            problems.emplace_back(error.what());
        }
    }
}

/// A flag of a command, or an argument without dashes.
struct Flag {
    /// The value of `max_values` for a flag that may be repeated any number of times.
    static constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

    std::string name;         ///< long name without dashes; empty if there is only a letter
    std::string letter{};     ///< the o of -o; empty if there is none
    bool is_argument = false; ///< has no dashes
    std::string value_name{}; ///< such as FILE or DIR, which shells complete
    std::string help{};
    std::string limits_text{};  ///< the valid range, as help shows it
    std::string default_text{}; ///< the default, as help shows it; empty if there is none
    Texts allowed_words{};      ///< the valid values; empty if any value may be valid
    std::string replacement{};  ///< for a flag of earlier versions: what to use instead
    std::size_t max_values = 1; ///< 0 for a switch
    bool is_comma_separated = false;
    bool is_required = false;
    std::function<void(const Texts& values)> set_variable{}; ///< Errors: UsageError
    Texts values{};       ///< from the command line, a variable or a file
    std::string source{}; ///< source of the values, valid or not; empty without values

    [[nodiscard]] bool is_switch() const { return max_values == 0; }

    /// Returns the name as it is typed: `--name` for a flag. An argument's name has no dashes.
    [[nodiscard]] std::string dashed_name() const;
    /// Sets the variable and `values`. Returns false if there is no value, or an empty one.
    /// Errors: UsageError.
    [[nodiscard]] bool set_values(const Texts& new_values);
};

/// An argument that looks like a flag, but is none of the command's flags.
struct UnknownFlagError : UsageError {
    UnknownFlagError(std::string unknown, const std::string& message)
        : UsageError{message}, flag{std::move(unknown)} {}

    std::string flag; ///< with dashes, without value
};

/// Flags of a command that have no effect unless one of certain other flags is given.
struct DependentFlags {
    Texts flags;
    Texts one_of;         ///< the other flags
    bool is_error = true; ///< false: using the flags alone is only reported
};

/// Runs a command after its flags were parsed. Returns the program's exit code.
using Action = std::function<int(const Invocation& invocation)>;

/// A command of the program, with its flags. For the functions that add a flag, `names` is
/// "-o,--output", or "file" for an argument without dashes; `value` is the name of the value in
/// help. Help shows the variable's initial value as the default, if it is neither empty nor out of
/// range.
struct Command {
    using NumberVariable = std::variant<int*, unsigned*, std::int64_t*, std::uint64_t*,
                                        std::optional<std::int64_t>*, std::vector<std::int64_t>*>;
    enum class Help : std::uint8_t { none, brief, full };

    explicit Command(std::string of_name) : name{std::move(of_name)} {}

    ~Command() = default;
    Command(const Command&) = delete;
    Command& operator=(const Command&) = delete;

    std::string name;
    std::string about{};  ///< what the command does, for help
    std::string footer{}; ///< the last lines of help
    /// The heading of the flags about the source of traffic. Empty for a command whose help has no
    /// headings.
    std::string traffic_heading{};
    /// Unknown flags with this prefix are ignored; empty for none.
    std::string ignored_flag_prefix{};
    std::deque<Flag> flags{};
    std::vector<DependentFlags> dependent_flags{};
    Action action{};
    std::string color{"auto"}; ///< the value of --color
    Help wanted_help = Help::none;
    /// Errors in variables, in the configuration file and, with --check-config, in arguments.
    Texts problems{};

    Flag& add(const std::string& names, std::string* variable, const std::string& value,
              const std::string& help);
    /// Adds a repeatable flag, or an argument that takes several values.
    Flag& add(const std::string& names, Texts* variable, const std::string& value,
              const std::string& help);
    /// Adds a flag with an integer from `least` to `most`. A vector makes the flag repeatable.
    Flag& add_number(const std::string& names, NumberVariable variable, std::int64_t least,
                     std::int64_t most, const std::string& help,
                     const std::string& value = "NUMBER");
    Flag& add_decimal(const std::string& names, double& variable, double least, double most,
                      const std::string& help);
    /// Adds a flag with a time from `least` to `most` seconds. It is given in seconds, or with a
    /// unit such as 500ms, 30s or 2min.
    Flag& add_time(const std::string& names, double& seconds, double least, double most,
                   const std::string& help);
    /// Adds a flag without a value. It sets the variable to `value`.
    Flag& add_switch(const std::string& names, bool& variable, const std::string& help,
                     bool value = true);
    /// Adds a repeatable flag with values that are separated by commas. `set_variable` gets all
    /// values, and may throw a UsageError.
    Flag& add_list(const std::string& names, std::function<void(const Texts&)> set_variable,
                   const std::string& value, const std::string& help);
    Flag& add_list(const std::string& names, Texts& variable, const std::string& value,
                   const std::string& help);

    /// Adds a flag that accepts a few words, each of which stands for a value of the variable.
    template <typename Value>
    void add_choice(const std::string& names, Value& variable, const std::string& value,
                    const std::vector<std::pair<std::string, Value>>& choices,
                    const std::string& help) {
        using Choice = std::pair<std::string, Value>;
        Flag& flag = add_flag(names, value, help);
        std::ranges::transform(choices, std::back_inserter(flag.allowed_words), &Choice::first);
        flag.default_text = std::ranges::find(choices, variable, &Choice::second)->first;
        flag.set_variable = [&variable, choices](const Texts& values) {
            variable = std::ranges::find(choices, values.front(), &Choice::first)->second;
        };
    }

    /// Removes a flag that does not apply to this command. `flag`: with dashes.
    void remove_flag(std::string_view flag);

    /// Returns the flag with this name or letter, with dashes; null if the command has no such
    /// flag.
    [[nodiscard]] Flag* find_flag(std::string_view flag);

    /// Parses the arguments after the command's name, until one requests help. If --check-config is
    /// one of them, adds all errors to `problems`.
    /// Errors: without --check-config, UsageError for the first error.
    void parse_arguments(const Texts& arguments);

    /// Returns "; did you mean --keep?" with the flag whose name is most similar; empty if none is
    /// similar. `dashes`: the text before the flag's name.
    [[nodiscard]] std::string suggest_flag(std::string_view name_like,
                                           std::string_view dashes) const;

  private:
    Flag& add_flag(const std::string& names, const std::string& value, const std::string& help);
    Flag& add_parsed_number(const std::string& names, double& variable, double least, double most,
                            const std::string& help, const std::string& value,
                            std::optional<double> (*parse_value)(std::string_view));
    void take_flag_value(Flag& flag, const std::string& rest, Texts::const_iterator& at,
                         Texts::const_iterator end);
    void parse_flag(Texts::const_iterator& at, Texts::const_iterator end);
    void parse_argument(Texts::const_iterator& at, Texts::const_iterator end, Texts& others);
    void set_arguments(Texts others);
    [[nodiscard]] UnknownFlagError make_unknown_flag_error(const std::string& argument);
};

/// True if an environment variable or a configuration file can also set the flag.
[[nodiscard]] bool is_config_setting(const Flag& flag);

} // namespace tw::cli
