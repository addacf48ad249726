#include "proxy/cli/settings.h"

#include "proxy/base/files.h"
#include "proxy/base/numbers.h"
#include "proxy/cli/help.h"
#include "proxy/cli/log.h"
#include "proxy/filter/keys.h"
#include "proxy/process/observer_process.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <boost/algorithm/string/trim.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

namespace tw::cli {

namespace {

/// The start of the names of variables that set a flag.
constexpr std::string_view kVariables = "TWSCOPE_";

/// The longest configuration file, in bytes.
constexpr std::size_t kMaxFileBytes = std::size_t{64} << 10U;

/// The sources of flags, besides files.
constexpr const char* kCommandLine = "command line";
constexpr const char* kEnvironment = "environment";

/// Returns the variable of a flag: TWSCOPE_MAX_SESSIONS for --max-sessions.
std::string variable_name(const CLI::Option& option) {
    std::string name = std::string{kVariables} + option.get_lnames().front();
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char character) {
        return character == '-' ? '_' : static_cast<char>(std::toupper(character));
    });
    return name;
}

bool is_setting(const CLI::Option* option) {
    constexpr std::array<std::string_view, 2> kNone{"help", "check-config"};
    return !option->get_lnames().empty() &&
           std::ranges::find(kNone, option->get_lnames().front()) == kNone.end();
}

std::vector<CLI::Option*> options_of(CLI::App& command) {
    return command.get_options(is_setting);
}

/// True for variables that Kubernetes and Docker set for a service that has this program's name.
bool is_service_link(std::string_view variable) {
    return variable.starts_with("TWSCOPE_SERVICE_") || variable == "TWSCOPE_PORT" ||
           variable.starts_with("TWSCOPE_PORT_");
}

/// Refuses a variable that looks like one of twscope's but is no flag of any command: a misspelt
/// TWSCOPE_PSEUDONYM must not record addresses in clear. Errors: UsageError.
void check_variables(const CLI::App& command) {
    const CLI::App* const program = command.get_parent();
    const auto commands =
        program == nullptr ? std::vector<const CLI::App*>{} : program->get_subcommands({});
    if (commands.size() <= 1) {
        return; // at a reload, only one command's flags are known; the start checked the variables
    }
    std::set<std::string, std::less<>> known;
    for (const CLI::App* each : commands) {
        for (const CLI::Option* option : each->get_options(is_setting)) {
            known.insert(variable_name(*option));
        }
    }
    for (char** each = environ; *each != nullptr; ++each) {
        const std::string_view line{*each};
        const std::string_view name = line.substr(0, line.find('='));
        if (!name.starts_with(kVariables) || is_service_link(name) || known.contains(name)) {
            continue;
        }
        std::vector<std::string_view> names;
        for (const std::string& variable : known) {
            names.push_back(std::string_view{variable}.substr(kVariables.size()));
        }
        const std::string_view like =
            filter::most_similar_word(name.substr(kVariables.size()), names);
        throw UsageError{fmt::format(
            "{}: no flag has this variable; {}", name,
            like.empty() ? "unset it" : fmt::format("did you mean {}{}?", kVariables, like))};
    }
}

/// Returns an example for a missing value.
const char* example_value(const CLI::Option* option) {
    return option != nullptr && is_switch(*option) ? "true" : "...";
}

/// Sets an option. Returns false if there is no value or an empty one, which the parser would read
/// as "true".
bool set_option(CLI::Option& option, const std::vector<std::string>& values,
                const std::string& source) {
    constexpr std::string_view kAlsoEmpty = "{}"; // the parser's notation for an empty value
    const bool flag = is_switch(option);
    try {
        for (const std::string& value : values) {
            if (value.empty() || (flag && value == kAlsoEmpty)) {
                return false;
            }
            option.add_result(flag ? option.get_flag_value(option.get_lnames().front(), value)
                                   : value);
        }
        if (option.count() == 0) {
            return false; // run_callback() would read a first value, which does not exist
        }
        option.run_callback();
    } catch (const CLI::Error& error) {
        const bool neither = flag && dynamic_cast<const CLI::ConversionError*>(&error) != nullptr;
        throw UsageError{neither ? fmt::format("{}: {}: expected true or false, not '{}'", source,
                                               option.get_lnames().front(), fmt::join(values, ", "))
                                 : fmt::format("{}: {}", source, describe_parser_error(error))};
    }
    return true;
}

std::string read_file(const std::string& path) {
    auto text = base::read_small_file(path, kMaxFileBytes);
    if (!text && text.error() == std::errc::file_too_large) {
        throw UsageError{fmt::format("--config {}: longer than {} bytes", path, kMaxFileBytes)};
    }
    if (!text) {
        throw UsageError{fmt::format("--config {}: {}; name a file with lines like 'server = "
                                     "\"127.0.0.1:8304\"'",
                                     path, text.error().message())};
    }
    return *std::move(text);
}

/// Removes the comment of a line in a settings file; nullopt if a quote stays open. As in the
/// parser, a quote opens at the start of a value or list element, and a backslash escapes a quote.
std::optional<std::string> without_comment(const std::string& line) {
    constexpr std::string_view kQuotes = "\"'`";
    constexpr std::string_view kBefore = "=[, \t";
    char open = '\0';
    for (std::size_t at = 0; at < line.size(); ++at) {
        const bool begins = at == 0 || kBefore.find(line[at - 1]) != std::string_view::npos;
        if (open != '\0') {
            open = line[at] == open && line[at - 1] != '\\' ? '\0' : open;
        } else if (line[at] == '#') {
            return line.substr(0, at);
        } else if (begins && kQuotes.find(line[at]) != std::string_view::npos) {
            open = line[at];
        }
    }
    return open == '\0' ? std::optional{line} : std::nullopt;
}

/// Removes the comments of a settings file line by line, because the parser would look for comments
/// within quotes, too.
/// Errors: UsageError for quotes that stay open.
std::string without_comments(const std::string& text, const std::string& path) {
    std::istringstream in{text};
    std::string plain;
    std::string line;
    for (std::size_t number = 1; std::getline(in, line); ++number) {
        boost::algorithm::trim(line);
        const auto said = line.starts_with(';') ? std::string{} : without_comment(line);
        if (!said) {
            throw UsageError{
                fmt::format("--config {}, line {}: the quotes are not closed", path, number)};
        }
        plain += *said + '\n';
    }
    return plain;
}

/// A line of a settings file with a key and no value.
struct KeyWithoutValue {
    std::string key;
    std::size_t line = 0; ///< number of the line, from 1
};

/// Finds the keys without a value, which the parser would take for set flags or skip. Handles
/// sections and lists over several lines as the parser does. `text`: without comments.
std::vector<KeyWithoutValue> find_keys_without_value(const std::string& text) {
    std::vector<KeyWithoutValue> keys;
    std::istringstream in{text};
    std::string line;
    for (std::size_t number = 1; std::getline(in, line); ++number) {
        boost::algorithm::trim(line);
        const bool section = line.starts_with('[') && line.ends_with(']');
        if (line.empty() || section) {
            continue;
        }
        const auto equals = line.find('=');
        std::string value =
            equals == std::string::npos ? "" : boost::algorithm::trim_copy(line.substr(equals + 1));
        if (value.empty()) {
            keys.push_back(
                {.key = boost::algorithm::trim_copy(line.substr(0, equals)), .line = number});
        }
        const bool list = value.size() > 1 && value.front() == '[';
        while (list && !value.ends_with(']') && std::getline(in, line)) {
            ++number;
            value += boost::algorithm::trim_copy(line);
        }
    }
    return keys;
}

std::vector<CLI::ConfigItem> parse_settings(const std::string& text, const std::string& path) {
    try {
        std::istringstream in{text};
        CLI::ConfigTOML reader;
        reader.comment('\n'); // a character that no line contains; comments were removed
        return reader.from_config(in);
    } catch (const CLI::Error& error) {
        throw UsageError{fmt::format("--config {}: {}", path, error.what())};
    }
}

/// A flag that has no effect without one of certain other flags.
struct RequiredFlag {
    const char* flag;
    std::array<const char*, 2> one_of;
};

constexpr RequiredFlag kRequiredFlags[]{
    {"--demo-version", {"--demo", "--http-recordings"}},
    {"--write-filter", {"--write"}},
    {"--write-objects", {"--sizes"}},
    {"--sync", {"--output", "--write"}},
    {"--http-host", {"--http"}},
    {"--http-open-reading", {"--http"}},
    {"--http-server-page", {"--http"}},
    {"--http-token-file", {"--http"}},
    {"--bus-name", {"--bus", "--nats"}},
    {"--bus-limits", {"--bus", "--nats"}},
    {"--bus-replicas", {"--bus", "--nats"}},
    {"--bus-file", {"--bus", "--nats"}},
    {"--spool", {"--bus", "--nats"}},
};

void check_required_flags(const CLI::App& command) {
    const auto given = [&command](const char* flag) {
        const CLI::Option* const option =
            flag == nullptr ? nullptr : command.get_option_no_throw(flag);
        return option != nullptr && option->count() != 0;
    };
    const auto is_old = [&command](const char* flag) {
        const CLI::Option* const option = command.get_option_no_throw(flag);
        return option != nullptr && !replacement_of_flag(*option).empty();
    };
    for (const RequiredFlag& need : kRequiredFlags) {
        if (given(need.flag) && std::none_of(need.one_of.begin(), need.one_of.end(), given)) {
            const char* const other = need.one_of[1];
            const bool is_told = other != nullptr && !is_old(other);
            throw UsageError{fmt::format("{} has no effect without {}{}{}", need.flag,
                                         need.one_of[0], is_told ? " or " : "",
                                         is_told ? other : "")};
        }
    }
}

} // namespace

bool has_variables() {
    char** each = environ;
    while (*each != nullptr && !std::string_view{*each}.starts_with(kVariables)) {
        ++each;
    }
    return *each != nullptr;
}

void add_color_flag(Command& command, std::string& value) {
    command.add("--color", &value, "WHEN", "Colour text on the terminal; auto obeys NO_COLOR")
        .one_of({"auto", "always", "never"});
}

Settings::Settings(Command& command) : command_{&command.app()} {
    add_color_flag(command, color_);
    command.add("--config", &file_, "FILE",
                "Read flags from this file, one 'flag-name = value' per line");
}

std::vector<process::GivenFlag> Settings::flags() const {
    std::vector<process::GivenFlag> flags;
    for (const CLI::Option* option : options_of(*command_)) {
        flags.push_back({option->get_lnames().front(), option->results()});
    }
    return flags;
}

void Settings::complete() {
    fill_flags();
    report_old_flags(*command_);
    apply_color();
}

void Settings::complete_from_process(const std::vector<process::GivenFlag>& flags) {
    for (const auto& [name, values] : flags) {
        CLI::Option& option = *command_->get_option("--" + name);
        for (const std::string& value : values) {
            option.add_result(value);
        }
        if (!values.empty()) {
            option.run_callback();
        }
    }
    apply_color();
}

void Settings::apply_color() const {
    set_colors(color_ == "always"  ? sink::Colors::always
               : color_ == "never" ? sink::Colors::never
                                   : sink::Colors::automatic);
}

void Settings::fill_flags() {
    const auto problems = try_fill_flags();
    if (!problems.empty()) {
        throw UsageError{problems.front()};
    }
}

std::vector<std::string> Settings::try_fill_flags() {
    for (const CLI::Option* option : options_of(*command_)) {
        if (option->count() != 0) {
            sources_.emplace_back(option->get_lnames().front(), kCommandLine);
        }
    }
    if (has_variables()) {
        add_problem_of_check(problems_, [this] { check_variables(*command_); });
        complete_from_variables();
    }
    is_read_ = file_.empty();
    if (!is_read_) {
        add_problem_of_check(problems_, [this] { complete_from_file(); });
    }
    add_problem_of_check(problems_, [this] { check_required_flags(*command_); });
    return std::exchange(problems_, {});
}

std::vector<std::string> Settings::sources() const {
    std::vector<std::string> lines;
    std::string_view last;
    for (const auto& [flag, source] : sources_) {
        if (source == last) {
            lines.back() += ", " + flag;
        } else {
            lines.push_back(fmt::format("{}: {}", source, flag));
        }
        last = source;
    }
    if (!overridden_.empty()) {
        lines.push_back(fmt::format("{}, but overridden: {}", file_, fmt::join(overridden_, ", ")));
    }
    return lines;
}

bool Settings::has_flag(std::string_view flag) const {
    return std::ranges::any_of(sources_, [flag](const auto& each) {
        return each.first == flag && each.second != kCommandLine;
    });
}

std::string Settings::add_source_to_message(std::string message) const {
    for (const auto& [flag, source] : sources_) {
        const std::string name = "--" + flag;
        const CLI::Option* const option = command_->get_option_no_throw(name);
        const bool is_named =
            message.starts_with(name) && message.find_first_of(" :", name.size()) == name.size();
        if (is_named && option != nullptr && source != kCommandLine) {
            return fmt::format("{} (set by {})", message,
                               source == kEnvironment ? variable_name(*option) : source);
        }
    }
    return message;
}

int Settings::run(const std::function<int()>& command) const {
    try {
        return command();
    } catch (const UsageError& error) {
        throw UsageError{add_source_to_message(error.what())};
    }
}

std::function<int()> complete_and_run(std::shared_ptr<Settings> settings,
                                      std::function<int()> command) {
    return [settings = std::move(settings), command = std::move(command)] {
        settings->complete();
        return settings->run(command);
    };
}

void Settings::complete_from_variables() {
    for (CLI::Option* option : options_of(*command_)) {
        const std::string variable = variable_name(*option);
        // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread has started yet
        const char* value = std::getenv(variable.c_str());
        if (option->count() != 0 || value == nullptr) {
            continue;
        }
        add_problem_of_check(problems_, [&] {
            if (!set_option(*option, {value}, variable)) {
                throw UsageError{fmt::format("{}: is empty; unset it, or set it to {}", variable,
                                             is_switch(*option) ? "true or false" : "a value")};
            }
        });
        sources_.emplace_back(option->get_lnames().front(), kEnvironment);
    }
}

void Settings::complete_from_file() {
    // The mark with which some editors start UTF-8 files.
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    const std::string text = read_file(file_);
    const bool marked = text.starts_with(kByteOrderMark);
    const std::string plain =
        without_comments(marked ? text.substr(kByteOrderMark.size()) : text, file_);
    auto items = parse_settings(plain, file_);
    for (const auto& [key, line] : find_keys_without_value(plain)) {
        const CLI::Option* const option = command_->get_option_no_throw("--" + key);
        problems_.push_back(
            option == nullptr
                ? fmt::format("--config {}, line {}: expected 'flag-name = value', not '{}'", file_,
                              line, key)
                : fmt::format("--config {}, line {}: '{}' needs a value: {} = {}", file_, line, key,
                              key, example_value(option)));
        std::erase_if(items, [&key = key](const auto& each) { return each.name == key; });
    }
    complete_from_items(items);
    is_read_ = true;
}

std::string describe_parser_error(const CLI::Error& error) {
    // Examples of the parser's messages: "--keep: At Most 1 required but received 2",
    // "--tick: 1 required TICK:INT in [0 - 100] missing".
    const std::string_view what{error.what()};
    const std::string_view flag = what.substr(0, what.find(':'));
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr ||
        what.find(" required ") == std::string_view::npos) {
        return std::string{what};
    }
    return what.find("At Most 1 ") != std::string_view::npos
               ? fmt::format("{}: may be given once", flag)
           : what.find("At Most ") != std::string_view::npos
               ? fmt::format("{}: has too many values", flag)
               : fmt::format("{} needs a value", flag);
}

std::string suggest_flag(const CLI::App& command, std::string_view name, std::string_view before) {
    std::vector<std::string_view> names;
    for (const CLI::Option* option : command.get_options(is_setting)) {
        names.emplace_back(option->get_lnames().front());
    }
    const std::string_view like = filter::most_similar_word(name, names);
    return like.empty() ? std::string{} : fmt::format("; did you mean {}{}?", before, like);
}

void Settings::complete_from_items(const std::vector<CLI::ConfigItem>& items) {
    const auto options = options_of(*command_);
    std::map<CLI::Option*, std::vector<std::string>> filled;
    for (const CLI::ConfigItem& item : items) {
        if (item.name == "++" || item.name == "--") {
            continue; // the parser's mark for the start and end of a section
        }
        const bool here = item.parents.empty() || (item.parents.size() == 1 &&
                                                   item.parents.front() == command_->get_name());
        const auto found =
            std::find_if(options.begin(), options.end(), [&](const CLI::Option* option) {
                return option->get_lnames().front() == item.name && item.name != "config";
            });
        if (!here || found == options.end()) {
            problems_.push_back(
                fmt::format("--config {}: unknown key '{}'{} (keys are the long flags of "
                            "'twscope {} --help' without dashes)",
                            file_, item.fullname(), suggest_flag(*command_, item.name, ""),
                            command_->get_name()));
            continue;
        }
        // A key may occur several times; flags and variables win.
        if (filled.contains(*found) || (*found)->count() == 0) {
            auto& values = filled[*found];
            values.insert(values.end(), item.inputs.begin(), item.inputs.end());
        } else if (std::ranges::find(overridden_, item.name) == overridden_.end()) {
            overridden_.push_back(item.name);
        }
    }
    for (const auto& [option, values] : filled) {
        add_problem_of_check(problems_, [&, option = option, &values = values] {
            if (!set_option(*option, values, "--config " + file_)) {
                const std::string& key = option->get_lnames().front();
                throw UsageError{fmt::format("--config {}: '{}' needs a value: {} = {}", file_, key,
                                             key, example_value(option))};
            }
        });
        sources_.emplace_back(option->get_lnames().front(), file_);
    }
}

HostPort parse_host_port(const std::string& text, const std::string& flag) {
    const auto colon = text.rfind(':');
    const bool bracketed = text.starts_with('[');
    const auto port = colon == std::string::npos
                          ? std::nullopt
                          : base::parse_number<std::uint64_t>(text.substr(colon + 1));
    if (port > std::numeric_limits<std::uint16_t>::max()) {
        throw UsageError{fmt::format("{} {}: expected a port up to 65535", flag, text)};
    }
    bool good = port.has_value();
    std::string host = good ? text.substr(0, colon) : "";
    if (bracketed) {
        good = good && host.size() > 2 && host.back() == ']';
        host = good ? host.substr(1, host.size() - 2) : "";
    } else {
        good = good && host.find(':') == std::string::npos;
    }
    if (!good) {
        throw UsageError{fmt::format("{} {}: expected HOST:PORT, for example 127.0.0.1:8303 or "
                                     "[::1]:8303",
                                     flag, text)};
    }
    return {.host = host, .port = static_cast<std::uint16_t>(*port)};
}

std::vector<std::filesystem::path> existing_folders(const std::string& flag,
                                                    const std::vector<std::string>& names) {
    std::vector<std::filesystem::path> folders;
    for (const std::string& name : names) {
        std::error_code error;
        if (!std::filesystem::is_directory(name, error)) {
            throw UsageError{fmt::format("{} {}: {}; name a folder that exists", flag, name,
                                         error ? error.message() : "is not a folder")};
        }
        folders.emplace_back(name);
    }
    return folders;
}

std::filesystem::path writable_folder(const std::string& flag, const std::string& name) {
    auto folder = existing_folders(flag, {name}).front();
    if (::access(folder.c_str(), W_OK | X_OK) != 0) {
        throw UsageError{fmt::format("{} {}: {}; name a writable folder", flag, name,
                                     std::generic_category().message(errno))};
    }
    return folder;
}

} // namespace tw::cli
