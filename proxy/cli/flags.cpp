#include "proxy/cli/flags.h"

#include "proxy/base/numbers.h"
#include "proxy/filter/keys.h"

#include <type_traits>

#include <boost/algorithm/string/case_conv.hpp>
#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/predicate.hpp>
#include <boost/algorithm/string/split.hpp>
#include <boost/algorithm/string/trim.hpp>
#include <fmt/ranges.h>

namespace tw::cli {

namespace {

/// Help shows an upper limit of a flag only if the limit is lower than this number.
constexpr std::int64_t kMaxShownLimit = 1'000'000'000;
constexpr double kSecondsPerDay = 86400;

/// Parses a time in seconds, or with a unit.
std::optional<double> parse_seconds(std::string_view text) {
    using Unit = std::pair<std::string_view, double>;
    constexpr std::array<Unit, 4> kUnits{{{"ms", 0.001}, {"s", 1}, {"min", 60}, {"h", 3600}}};
    const auto* const unit = std::ranges::find_if(
        kUnits, [&](const Unit& each) { return boost::algorithm::iends_with(text, each.first); });
    if (unit == kUnits.end()) {
        return base::parse_number<double>(text);
    }
    text.remove_suffix(unit->first.size());
    const std::string number = boost::algorithm::trim_right_copy(std::string{text});
    const auto count = base::parse_number<double>(number);
    return count ? std::optional{*count * unit->second} : std::nullopt;
}

bool parse_switch(const std::string& title, const std::string& text) {
    const auto is_one_of = [&](std::initializer_list<std::string_view> words) {
        return std::ranges::any_of(
            words, [&](std::string_view word) { return boost::algorithm::iequals(text, word); });
    };
    if (is_one_of({"true", "on", "yes", "enable", "1"})) {
        return true;
    }
    if (!is_one_of({"false", "off", "no", "disable", "0"})) {
        throw usage_error("{}: expected true or false, not '{}'", title, text);
    }
    return false;
}

} // namespace

std::string Flag::dashed_name() const {
    return is_argument ? name : name.empty() ? '-' + letter : "--" + name;
}

bool Flag::set_values(const Texts& new_values) {
    Texts all;
    for (const std::string& value : new_values) {
        Texts parts{value};
        if (is_comma_separated) {
            boost::algorithm::split(parts, value, boost::algorithm::is_any_of(","));
            std::erase(parts, std::string{});
        }
        all.insert(all.end(), parts.begin(), parts.end());
    }
    if (all.empty() || std::ranges::find(all, std::string{}) != all.end()) {
        return false;
    }
    if (all.size() > std::max<std::size_t>(max_values, 1)) {
        throw usage_error("{}: {}", dashed_name(),
                          max_values > 1 ? "has too many values" : "may be given once");
    }
    for (const std::string& value : all) {
        if (!allowed_words.empty() &&
            std::ranges::find(allowed_words, value) == allowed_words.end()) {
            throw usage_error("{} {}: expected one of {}", dashed_name(), value,
                              fmt::join(allowed_words, ", "));
        }
    }
    set_variable(all);
    values = new_values;
    return true;
}

Flag& Command::add_flag(const std::string& names, const std::string& value,
                        const std::string& help) {
    const bool has_letter = names.starts_with('-') && !names.starts_with("--");
    std::string_view long_name{names};
    long_name.remove_prefix(has_letter ? std::min(names.size(), std::string_view{"-o,"}.size())
                                       : 0);
    long_name.remove_prefix(long_name.starts_with("--") ? 2 : 0);
    return flags.emplace_back(Flag{.name = std::string{long_name},
                                   .letter = has_letter ? names.substr(1, 1) : std::string{},
                                   .is_argument = !names.starts_with('-'),
                                   .value_name = value,
                                   .help = help});
}

Flag& Command::add(const std::string& names, std::string* variable, const std::string& value,
                   const std::string& help) {
    Flag& flag = add_flag(names, value, help);
    flag.default_text = *variable;
    flag.set_variable = [variable](const Texts& values) { *variable = values.front(); };
    return flag;
}

Flag& Command::add(const std::string& names, Texts* variable, const std::string& value,
                   const std::string& help) {
    Flag& flag = add_flag(names, value, help);
    flag.default_text = fmt::format("{}", fmt::join(*variable, ","));
    flag.max_values = Flag::kUnlimited;
    flag.set_variable = [variable](const Texts& values) { *variable = values; };
    return flag;
}

Flag& Command::add_number(const std::string& names, NumberVariable variable, std::int64_t least,
                          std::int64_t most, const std::string& help, const std::string& value) {
    Flag& flag = add_flag(names, value, help);
    const std::string limits =
        most < kMaxShownLimit ? fmt::format("{} to {}", least, most) : fmt::to_string(least);
    const auto parse_value = [least, most, limits,
                              title = flag.dashed_name()](const std::string& text) {
        const auto number = base::parse_number<std::int64_t>(text);
        if (!number || *number < least || *number > most) {
            throw usage_error("{} {}: expected a number from {}", title, text, limits);
        }
        return *number;
    };
    const auto add_variable = [&]<typename Value>(Value* target) {
        if constexpr (std::is_same_v<Value, std::vector<std::int64_t>>) {
            flag.max_values = Flag::kUnlimited;
            flag.set_variable = [target, parse_value](const Texts& values) {
                target->clear();
                std::ranges::transform(values, std::back_inserter(*target), parse_value);
            };
        } else {
            flag.set_variable = [target, parse_value](const Texts& values) {
                *target = static_cast<Value>(parse_value(values.front()));
            };
        }
        if constexpr (std::is_integral_v<Value>) {
            flag.limits_text = most < kMaxShownLimit ? limits : "";
            if (std::cmp_less_equal(least, *target) && std::cmp_less_equal(*target, most)) {
                flag.default_text = fmt::to_string(*target);
            }
        }
    };
    std::visit(add_variable, variable);
    return flag;
}

Flag& Command::add_parsed_number(const std::string& names, double& variable, double least,
                                 double most, const std::string& help, const std::string& value,
                                 std::optional<double> (*parse_value)(std::string_view)) {
    Flag& flag = add_flag(names, value, help);
    flag.limits_text = most <= kSecondsPerDay ? fmt::format("{} to {}", least, most) : "";
    flag.default_text = least <= variable ? fmt::to_string(variable) : "";
    flag.set_variable = [&variable, least, most, parse_value,
                         title = flag.dashed_name()](const Texts& values) {
        const auto number = parse_value(values.front());
        if (!number || !(least <= *number && *number <= most)) { // NaN is not in any range
            throw usage_error("{} {}: expected {} from {} to {}", title, values.front(),
                              parse_value == parse_seconds
                                  ? "a time in seconds, or like 30s or 2min,"
                                  : "a number",
                              least, most);
        }
        variable = *number;
    };
    return flag;
}

Flag& Command::add_decimal(const std::string& names, double& variable, double least, double most,
                           const std::string& help) {
    return add_parsed_number(names, variable, least, most, help, "NUMBER",
                             base::parse_number<double>);
}

Flag& Command::add_time(const std::string& names, double& seconds, double least, double most,
                        const std::string& help) {
    Flag& flag = add_parsed_number(names, seconds, least, most, help, "TIME", parse_seconds);
    flag.limits_text +=
        (flag.limits_text.empty() ? "" : "; ") + std::string{"or with a unit: ms, s, min, h"};
    return flag;
}

Flag& Command::add_switch(const std::string& names, bool& variable, const std::string& help,
                          bool value) {
    Flag& flag = add_flag(names, {}, help);
    flag.max_values = 0;
    flag.set_variable = [&variable, value, title = flag.dashed_name()](const Texts& values) {
        variable = parse_switch(title, values.back()) ? value : variable;
    };
    return flag;
}

Flag& Command::add_list(const std::string& names, std::function<void(const Texts&)> set_variable,
                        const std::string& value, const std::string& help) {
    Flag& flag = add_flag(names, value, help);
    flag.max_values = Flag::kUnlimited;
    flag.is_comma_separated = true;
    flag.set_variable = std::move(set_variable);
    return flag;
}

Flag& Command::add_list(const std::string& names, Texts& variable, const std::string& value,
                        const std::string& help) {
    return add_list(
        names, [&variable](const Texts& values) { variable = values; }, value, help);
}

void Command::remove_flag(std::string_view flag) {
    std::erase_if(flags, [&](const Flag& each) { return each.dashed_name() == flag; });
}

Flag* Command::find_flag(std::string_view flag) {
    const bool is_long = flag.size() > 2 && flag.starts_with("--");
    const bool is_short = flag.size() == 2 && flag.starts_with('-');
    const auto found = std::ranges::find_if(flags, [&](const Flag& each) {
        return !each.is_argument && ((is_long && each.name == flag.substr(2)) ||
                                     (is_short && each.letter == flag.substr(1)));
    });
    return found == flags.end() ? nullptr : &*found;
}

std::string Command::suggest_flag(std::string_view name_like, std::string_view dashes) const {
    constexpr std::size_t kMinPrefix = 3;
    std::vector<std::string_view> names;
    for (const Flag& flag : flags) {
        if (is_config_setting(flag)) {
            names.emplace_back(flag.name);
        }
    }
    std::string_view similar = filter::most_similar_word(name_like, names);
    if (similar.empty()) { // suggests "heat" for "heatmap"
        for (const std::string_view name : names) {
            if (name.size() >= std::max(kMinPrefix, similar.size()) &&
                name_like.starts_with(name)) {
                similar = name;
            }
        }
    }
    return similar.empty() ? std::string{} : fmt::format("; did you mean {}{}?", dashes, similar);
}

UnknownFlagError Command::make_unknown_flag_error(const std::string& argument) {
    constexpr std::size_t kMostSuggestions = 3;
    const std::string flag = argument.substr(0, argument.find('='));
    if (flag.starts_with("--")) {
        return {flag, fmt::format("{} has no {}{}", name, flag,
                                  suggest_flag(std::string_view{flag}.substr(2), "--"))};
    }
    if (find_flag('-' + flag) != nullptr) {
        return {flag, fmt::format("{0} has no {1}; did you mean -{1}?", name, flag)};
    }
    Texts suggestions;
    for (const Flag& each : flags) {
        if (is_config_setting(each) && each.replacement.empty() &&
            boost::algorithm::iequals(each.name.substr(0, 1), flag.substr(1, 1))) {
            suggestions.push_back(each.dashed_name());
        }
    }
    const bool is_clear = !suggestions.empty() && suggestions.size() <= kMostSuggestions;
    return {flag.substr(0, 2),
            fmt::format("{} has no {}{}", name, flag.substr(0, 2),
                        is_clear ? fmt::format("; did you mean {}?", fmt::join(suggestions, " or "))
                                 : "")};
}

/// Takes the value of `flag` from `rest`, the text after the flag in the argument at `at`. If
/// `rest` is empty, takes the next argument.
void Command::take_flag_value(Flag& flag, const std::string& rest, Texts::const_iterator& at,
                              Texts::const_iterator end) {
    if (!rest.empty()) {
        flag.values.push_back(rest.starts_with('=') ? rest.substr(1) : rest);
        return;
    }
    const auto next = std::next(at);
    const bool is_flag = next != end && next->starts_with("--") &&
                         find_flag(next->substr(0, next->find('='))) != nullptr;
    if (next == end || is_flag) {
        throw usage_error("{}{}{}", flag.dashed_name(), kMissingValueText,
                          is_flag ? " before " + next->substr(0, next->find('=')) : "");
    }
    flag.values.push_back(*++at);
    if (flag.max_values == 2 && std::next(at) != end && !std::next(at)->starts_with('-')) {
        flag.values.push_back(*++at);
    }
}

/// Parses the flag at `at`, and its value, which may be the next argument.
void Command::parse_flag(Texts::const_iterator& at, Texts::const_iterator end) {
    const bool is_long = at->starts_with("--");
    const auto equals = is_long ? at->find('=') : std::string::npos;
    for (std::string text = *at;;) {
        const std::string flag_name = text.substr(0, is_long ? equals : 2);
        Flag* const flag = find_flag(flag_name);
        if (flag == nullptr) {
            throw make_unknown_flag_error(text);
        }
        const std::string rest = text.substr(flag_name.size());
        if (flag->is_switch() && !is_long && !rest.empty()) { // `rest`: letters of other flags
            flag->values = {"true"};
            text = '-' + rest;
            continue;
        }
        if (flag->name == "help" || flag->letter == "h") {
            wanted_help = flag->name.empty() ? Help::brief : Help::full;
        } else if (flag->is_switch()) {
            flag->values = {rest.empty() ? "true" : rest.substr(1)};
        } else {
            take_flag_value(*flag, rest, at, end);
        }
        return;
    }
}

/// Parses the flag at `at` and its value. Adds everything else to `others`: arguments without
/// dashes, and all arguments after "--".
void Command::parse_argument(Texts::const_iterator& at, Texts::const_iterator end, Texts& others) {
    if (at->size() <= 1 || at->front() != '-') {
        others.push_back(*at);
    } else if (*at == "--") {
        others.insert(others.end(), std::next(at), end);
        at = std::prev(end);
    } else if (!ignored_flag_prefix.empty() && at->starts_with(ignored_flag_prefix) &&
               find_flag(at->substr(0, at->find('='))) == nullptr) {
        const bool has_value = at->find('=') == std::string::npos && std::next(at) != end &&
                               !std::next(at)->starts_with('-');
        at += has_value ? 1 : 0;
    } else {
        parse_flag(at, end);
    }
}

void Command::set_arguments(Texts others) {
    for (Flag& flag : flags) {
        if (flag.is_argument) {
            const auto end = others.begin() +
                             static_cast<std::ptrdiff_t>(std::min(flag.max_values, others.size()));
            flag.values.assign(others.begin(), end);
            others.erase(others.begin(), end);
        }
        if (flag.is_required && flag.values.empty()) {
            throw usage_error("{} needs {}{}", name,
                              boost::algorithm::to_lower_copy(flag.help.substr(0, 1)),
                              flag.help.substr(1));
        }
    }
    if (!others.empty()) {
        throw usage_error("{} does not take '{}'; names with spaces need quotes, and a flag with "
                          "several values is repeated",
                          name, others.front());
    }
}

void Command::parse_arguments(const Texts& arguments) {
    constexpr std::string_view kCheck = "--check-config";
    const bool checks_all =
        std::ranges::find(arguments, kCheck) != arguments.end() && find_flag(kCheck) != nullptr;
    const auto check = [&](const auto& parse) {
        if (checks_all) {
            add_problem_of_check(problems, parse);
        } else {
            parse();
        }
    };
    Texts others;
    for (auto at = arguments.begin(); at != arguments.end() && wanted_help == Help::none; ++at) {
        check([&] { parse_argument(at, arguments.end(), others); });
    }
    if (wanted_help != Help::none) {
        return;
    }
    if (problems.empty()) { // otherwise `others` may be values of unknown flags
        check([&] { set_arguments(std::move(others)); });
    }
    for (Flag& flag : flags) {
        check([&] {
            if (!flag.values.empty() && !flag.set_values(flag.values)) {
                throw usage_error("{}: is empty; leave it out, or give it a value",
                                  flag.dashed_name());
            }
        });
    }
}

bool is_config_setting(const Flag& flag) {
    return !flag.is_argument && !flag.name.empty() && flag.name != "help" &&
           flag.name != "check-config";
}

} // namespace tw::cli
