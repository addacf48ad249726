#include "proxy/cli/flags.h"

#include <cmath>
#include <cstdlib>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace tw::cli {

namespace {

/// Help shows an upper limit of a flag only if the limit is lower than this.
constexpr std::int64_t kUnlimited = 1'000'000'000;
constexpr double kDay = 86400;

/// Makes a flag repeatable, with one value each time. The argument after the value does not belong
/// to the flag.
void make_repeatable(CLI::Option& option) {
    option.expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->allow_extra_args(false);
}

/// Turns the text of a time into seconds. Returns an error, or an empty text.
std::string convert_to_seconds(std::string& text) {
    const CLI::AsNumberWithUnit read{
        std::map<std::string, double>{{"ms", 0.001}, {"s", 1}, {"min", 60}, {"h", 3600}}};
    const std::string given = text;
    const std::string error = read(text);
    // A NaN such as nan(1) would pass both limits.
    return error.empty() && !std::isfinite(std::strtod(text.c_str(), nullptr))
               ? given + " is not a time; give a number, for example 30s"
               : error;
}

/// Returns a validator for numbers within limits, and shows a note about them in help.
template <typename Number>
CLI::Validator number_range(Number least, Number most, const std::string& note) {
    CLI::Validator limits = CLI::Range(least, most);
    return limits.description(note.empty() ? note : kNoteMark + note);
}

} // namespace

Flag Flag::required() {
    option_->required();
    return *this;
}

Flag Flag::excludes(Flag other) {
    option_->excludes(other.option_);
    return *this;
}

Flag Flag::one_of(const Texts& words) {
    option_->check(CLI::IsMember(words));
    return *this;
}

Flag Flag::check(std::function<std::string(const std::string& value)> find_problem) {
    option_->check(CLI::Validator{std::move(find_problem), ""});
    return *this;
}

Flag Flag::show_default(const std::string& text) {
    option_->default_str(text);
    return *this;
}

Flag Flag::take_one_or_two_values() {
    option_->multi_option_policy(CLI::MultiOptionPolicy::Throw)->allow_extra_args()->expected(1, 2);
    return *this;
}

Flag Flag::read_environment_variable(const std::string& name) {
    option_->envname(name);
    return *this;
}

Command::Command(const std::string& about, const std::string& name)
    : app_{std::make_shared<CLI::App>(about, name)} {}

Command Command::add_command(const std::string& name, const std::string& about,
                             const std::string& footer) {
    return Command{app_->get_subcommand_ptr(app_->add_subcommand(name, about)->footer(footer))};
}

Flag Command::add(const std::string& names, Variable variable, const std::string& value,
                  const std::string& help) {
    const auto add_to = [&]<typename Value>(Value* target) {
        CLI::Option* const option = app_->add_option(names, *target, help)->type_name(value);
        if (*target != Value{}) {
            option->capture_default_str();
        }
        return option;
    };
    CLI::Option* const option = std::visit(add_to, variable);
    if (option->get_expected_max() > 1 && option->nonpositional()) {
        make_repeatable(*option);
    }
    return Flag{*option};
}

Flag Command::add_number(const std::string& names, NumberVariable variable, std::int64_t least,
                         std::int64_t most, const std::string& help, const std::string& value) {
    const auto add_to = [&]<typename Number>(Number* target) {
        const auto from = static_cast<Number>(least);
        const auto to = static_cast<Number>(most);
        CLI::Option* const option = app_->add_option(names, *target, help);
        if (from <= *target && *target <= to) {
            option->capture_default_str();
        }
        const bool is_limited = most < kUnlimited;
        return option->type_name(value)->check(
            number_range(from, to, is_limited ? fmt::format("{} to {}", from, to) : ""));
    };
    return Flag{*std::visit(add_to, variable)};
}

Flag Command::add_time(const std::string& names, double& seconds, double least, double most,
                       const std::string& help) {
    CLI::Option* const option = app_->add_option(names, seconds, help);
    if (least <= seconds) {
        option->capture_default_str();
    }
    const std::string limits = most <= kDay ? fmt::format("{} to {}; ", least, most) : "";
    return Flag{*option->type_name("TIME")
                     ->transform(CLI::Validator{convert_to_seconds, ""})
                     ->check(number_range(least, most, limits + "or with a unit: ms, s, min, h"))};
}

Flag Command::add_switch(const std::string& names, bool& variable, const std::string& help,
                         bool value) {
    const auto set = [&variable, value] { variable = value; };
    return Flag{*app_->add_flag_callback(names, set, help)};
}

Flag Command::add_callback_flag(const std::string& names, std::function<void(const Texts&)> take,
                                const std::string& value, const std::string& help) {
    const auto take_all = [take = std::move(take)](const Texts& values) {
        try {
            take(values);
        } catch (const UsageError& error) {
            throw CLI::ValidationError{error.what()};
        }
    };
    CLI::Option* const option = app_->add_option_function<Texts>(names, take_all, help);
    return Flag{*option->type_name(value)->expected(1)->allow_extra_args(false)};
}

Flag Command::add_list(const std::string& names, std::function<void(const Texts&)> take,
                       const std::string& value, const std::string& help) {
    CLI::Option& option = add_callback_flag(names, std::move(take), value, help).option();
    make_repeatable(option);
    return Flag{*option.delimiter(',')};
}

Flag Command::add_list(const std::string& names, Texts& variable, const std::string& value,
                       const std::string& help) {
    const auto take = [&variable](const Texts& values) { variable = values; };
    return add_list(names, take, value, help);
}

void Command::remove(const std::string& name) {
    app_->remove_option(app_->get_option(name));
}

void Command::hide_from_help() {
    app_->group("")->allow_extras();
}

Texts Command::unknown_arguments() const {
    return app_->remaining();
}

void Command::parse(Texts arguments) {
    std::ranges::reverse(arguments); // the parser takes them from the back
    try {
        app_->parse(std::move(arguments));
    } catch (const CLI::ParseError& error) {
        throw UsageError{error.what()};
    }
}

} // namespace tw::cli
