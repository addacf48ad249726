#include "proxy/cli/help_format.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tw::cli {

namespace {

/// CLI11 writes what it checks behind the type: "UINT:UINT in [1 - 64]".
constexpr std::string_view kUnits = "[ms|s|min|h]";
constexpr std::string_view kRange = " in [";
constexpr std::array<std::string_view, 6> kChecks{":UINT in [", ":INT in [", ":FLOAT in [",
                                                  ":{",         ":POSITIVE", ":NONNEGATIVE"};

bool takes_units(const CLI::Option& option) {
    return option.get_type_name().find(kUnits) != std::string::npos;
}

/// "TIME", "NUMBER", or what the flag itself calls it.
std::string type_text(const CLI::Option& option) {
    if (takes_units(option)) {
        return "TIME";
    }
    std::string word = option.get_type_name();
    // Not at the first colon, which "ADDR:PORT" has of its own.
    for (const std::string_view check : kChecks) {
        word.resize(std::min(word.size(), word.find(check)));
    }
    return word == "UINT" || word == "INT" || word == "FLOAT" ? "NUMBER" : word;
}

/// "1 to 64"; empty for all there are, and for more than anyone reads.
std::string range_text(const CLI::Option& option) {
    constexpr std::size_t kMostDigits = 9;
    const std::string type = option.get_type_name();
    const auto begin = type.find(kRange);
    const auto between = type.find(" - ", begin);
    const auto end = type.find(']', between);
    if (begin == std::string::npos || between == std::string::npos || end == std::string::npos) {
        return {};
    }
    const std::string least = type.substr(begin + kRange.size(), between - begin - kRange.size());
    const std::string most = type.substr(between + 3, end - between - 3);
    return most.size() > kMostDigits ? "" : fmt::format("{} to {}", least, most);
}

/// "-o, --output FILE", "--items none|changed|all"
std::string flag_text(const CLI::Option& option) {
    std::vector<std::string> names;
    for (const std::string& name : option.get_snames()) {
        names.push_back('-' + name);
    }
    for (const std::string& name : option.get_lnames()) {
        names.push_back("--" + name);
    }
    std::string text = fmt::format("{}", fmt::join(names, ", "));
    if (is_switch(option)) {
        return text;
    }
    const auto words = value_words(option);
    return words.empty() ? fmt::format("{} {}", text, type_text(option))
                         : fmt::format("{} {}", text, fmt::join(words, "|"));
}

/// The value a flag has unless it is given; empty for none.
std::string default_text(const CLI::Option& option) {
    std::string text = is_switch(option) ? "" : option.get_default_str();
    // Those of flags that can be repeated come in brackets.
    if (text.starts_with('[') && text.ends_with(']')) {
        text = text.substr(1, text.size() - 2);
    }
    return text;
}

} // namespace

bool is_switch(const CLI::Option& option) {
    return option.get_items_expected_max() == 0;
}

std::vector<std::string> value_words(const CLI::Option& option) {
    // CLI11 writes them into the name of the type: "TEXT:{none,changed,all}".
    const std::string type = option.get_type_name();
    const auto begin = type.find('{');
    const auto end = type.find('}');
    if (begin == std::string::npos || end == std::string::npos || end < begin) {
        return {};
    }
    std::vector<std::string> words;
    std::string_view rest = std::string_view{type}.substr(begin + 1, end - begin - 1);
    for (;;) {
        const auto comma = rest.find(',');
        words.emplace_back(rest.substr(0, comma));
        if (comma == std::string_view::npos) {
            return words;
        }
        rest.remove_prefix(comma + 1);
    }
}

std::string HelpFormat::make_option(const CLI::Option* option, bool is_positional) const {
    const std::string name =
        "  " + (is_positional ? option->get_name(true) : flag_text(*option)) + "  ";
    std::vector<std::string> notes;
    if (const std::string range = range_text(*option); !range.empty()) {
        notes.push_back(range);
    }
    if (takes_units(*option)) {
        notes.emplace_back("or with a unit: ms, s, min, h");
    }
    if (const std::string standard = default_text(*option); !standard.empty()) {
        notes.push_back("default: " + standard);
    }
    std::string description = option->get_description();
    if (!notes.empty()) {
        description += fmt::format(" ({})", fmt::join(notes, "; "));
    }
    const std::size_t column = get_column_width();
    return name.size() <= column ? fmt::format("{:{}}{}\n", name, column, description)
                                 : fmt::format("{}\n{:{}}{}\n", name.substr(0, name.size() - 2), "",
                                               column, description);
}

} // namespace tw::cli
