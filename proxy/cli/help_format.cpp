#include "proxy/cli/help_format.h"

#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tw::cli {

namespace {

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
    return words.empty() ? fmt::format("{} {}", text, option.get_type_name())
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
    std::string description = option->get_description();
    if (const std::string standard = default_text(*option); !standard.empty()) {
        description += fmt::format(" (default: {})", standard);
    }
    const std::size_t column = get_column_width();
    return name.size() <= column ? fmt::format("{:{}}{}\n", name, column, description)
                                 : fmt::format("{}\n{:{}}{}\n", name.substr(0, name.size() - 2), "",
                                               column, description);
}

} // namespace tw::cli
