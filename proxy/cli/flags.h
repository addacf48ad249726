#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

// CLI11, the parser. Few sources include it, because it takes seconds to compile.
namespace CLI {
class App;
class Option;
} // namespace CLI

namespace tw::cli {

/// A usage error. The message is one line that says what is wrong and what to do.
class UsageError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// A check's description that starts with this mark is shown in help as a note about the flag.
inline constexpr char kNoteMark = '#';

using Texts = std::vector<std::string>;

/// The variable of a flag. A vector makes the flag repeatable.
using Variable = std::variant<std::string*, double*, std::optional<std::int64_t>*, Texts*,
                              std::vector<std::int64_t>*>;
using NumberVariable = std::variant<int*, unsigned*, std::int64_t*, std::uint64_t*>;

/// A flag that was added to a command. The functions declare further properties of the flag.
class Flag {
  public:
    explicit Flag(CLI::Option& option) : option_{&option} {}

    [[nodiscard]] CLI::Option& option() const { return *option_; }

    Flag required();
    Flag excludes(Flag other);
    Flag one_of(const Texts& words);
    /// Accepts only values for which `find_problem` returns an empty text.
    Flag check(std::function<std::string(const std::string& value)> find_problem);
    /// Shows this default in help, instead of the variable's value.
    Flag show_default(const std::string& text);
    /// Takes one or two values, and is not repeatable.
    Flag take_one_or_two_values();
    /// Takes the value from this environment variable if the flag is not given. Only for commands
    /// without Settings, which read the variables of all flags.
    Flag read_environment_variable(const std::string& name);

  private:
    CLI::Option* option_;
};

/// A command of the program, and the one place that knows how a flag is added to a command. A flag
/// has names ("-o,--output"; "file" for an argument without dashes), a variable, a word for its
/// value ("FILE" or "DIR", which shells complete, "TIME,SIZE" ...), and help. Help shows the
/// variable's value as the default, unless the value is empty or outside of the limits. A copy of
/// the object stands for the same command.
class Command {
  public:
    /// Creates the command that stands for the program. All other commands are added to it.
    explicit Command(const std::string& about = {}, const std::string& name = {});

    explicit Command(std::shared_ptr<CLI::App> app) : app_{std::move(app)} {}

    /// `footer`: the end of the command's help.
    [[nodiscard]] Command add_command(const std::string& name, const std::string& about,
                                      const std::string& footer = {});

    Flag add(const std::string& names, Variable variable, const std::string& value,
             const std::string& help);
    /// Adds a flag with a number from `least` to `most`.
    Flag add_number(const std::string& names, NumberVariable variable, std::int64_t least,
                    std::int64_t most, const std::string& help,
                    const std::string& value = "NUMBER");
    /// Adds a flag with a time from `least` to `most` seconds. It is given in seconds, or with a
    /// unit such as 500ms, 30s or 2min.
    Flag add_time(const std::string& names, double& seconds, double least, double most,
                  const std::string& help);
    /// Adds a flag without a value. It sets the variable to `value`.
    Flag add_switch(const std::string& names, bool& variable, const std::string& help,
                    bool value = true);
    /// Adds a repeatable flag with several values, separated by commas. `take` gets all of them,
    /// and may throw a UsageError.
    Flag add_list(const std::string& names, std::function<void(const Texts&)> take,
                  const std::string& value, const std::string& help);
    Flag add_list(const std::string& names, Texts& variable, const std::string& value,
                  const std::string& help);

    /// Adds a flag with one of a few words, each of which stands for a value of the variable.
    template <typename Value>
    Flag add_choice(const std::string& names, Value& variable, const std::string& value,
                    const std::vector<std::pair<std::string, Value>>& words,
                    const std::string& help) {
        using Word = std::pair<std::string, Value>;
        Texts texts;
        std::ranges::transform(words, std::back_inserter(texts), &Word::first);
        const auto take = [&variable, words](const Texts& given) {
            variable = std::ranges::find(words, given.front(), &Word::first)->second;
        };
        return add_callback_flag(names, take, value, help)
            .one_of(texts)
            .show_default(std::ranges::find(words, variable, &Word::second)->first);
    }

    /// Removes a flag that does not apply to this command.
    void remove(const std::string& name);
    /// Leaves the command out of help, and keeps arguments that are unknown.
    void hide_from_help();
    [[nodiscard]] Texts unknown_arguments() const;

    /// Parses arguments.
    /// Errors: UsageError.
    void parse(Texts arguments);

    [[nodiscard]] CLI::App& app() const { return *app_; }

  private:
    Flag add_callback_flag(const std::string& names, std::function<void(const Texts&)> take,
                           const std::string& value, const std::string& help);

    std::shared_ptr<CLI::App> app_;
};

} // namespace tw::cli
