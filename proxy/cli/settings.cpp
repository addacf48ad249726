#include "proxy/cli/settings.h"

#include "proxy/base/files.h"
#include "proxy/base/numbers.h"
#include "proxy/cli/log.h"
#include "proxy/process/observer_process.h"
#include "proxy/sink/output.h"

#include <cstdlib>
#include <iterator>
#include <limits>

#include <boost/algorithm/string/trim.hpp>
#include <fmt/ranges.h>
#include <unistd.h>

namespace tw::cli {

namespace {

constexpr std::size_t kMaxConfigFileBytes = std::size_t{64} << 10U;

/// The values of Flag::source for flags that do not come from a file.
constexpr const char* kCommandLine = "command line";
constexpr const char* kEnvironment = "environment";

std::string read_config_file(const std::string& path) {
    auto text = base::read_small_file(path, kMaxConfigFileBytes);
    if (!text && text.error() == std::errc::file_too_large) {
        throw usage_error("--config {}: is no configuration file: longer than {} bytes", path,
                          kMaxConfigFileBytes);
    }
    if (!text) {
        throw usage_error("--config {}: {}; name a file with lines like 'server = "
                          "\"127.0.0.1:8304\"'",
                          path, text.error().message());
    }
    if (text->find('\0') != std::string::npos) {
        throw usage_error("--config {}: is no configuration file: contains a NUL byte; save it as "
                          "plain text (UTF-8)",
                          path);
    }
    return *std::move(text);
}

/// A key of a configuration file and its values. A list of values may span several lines.
struct ConfigLine {
    std::string key;
    std::size_t number = 0; ///< number of the first line, from 1
    bool has_equals = false;
    Texts values{};
};

/// Reads a configuration file with lines such as "key = value", "key = [value, value]" and
/// "[section]". A list may span several lines. Values may be quoted. Comments begin with a #
/// outside of quotes, or with a ; at the start of a line.
class ConfigReader {
  public:
    /// `is_repeatable`: whether a key may have several values, with or without brackets.
    ConfigReader(std::string_view text, std::string path,
                 std::function<bool(const std::string& key)> is_repeatable)
        : rest_{text}, path_{std::move(path)}, is_repeatable_{std::move(is_repeatable)} {}

    /// Returns the next line with a key; nullopt at the end. The key of a line in a section begins
    /// with "SECTION.".
    /// Errors: UsageError.
    [[nodiscard]] std::optional<ConfigLine> next_line() {
        for (skip_space(true); !rest_.empty(); skip_space(true)) {
            const std::string text = take_until("=\n#");
            if (text.starts_with('[') && text.ends_with(']')) {
                section_ = text.substr(1, text.size() - 2) + '.';
                continue;
            }
            if (text.starts_with(';')) {
                static_cast<void>(take_until("\n"));
                continue;
            }
            ConfigLine line{
                .key = section_ + text, .number = number_, .has_equals = begins_with('=')};
            if (line.has_equals) {
                take_character();
                skip_space(false);
                read_values(line);
            }
            return line;
        }
        return std::nullopt;
    }

  private:
    [[nodiscard]] bool begins_with(char character) const { return rest_.starts_with(character); }

    void take_character() {
        number_ += begins_with('\n') ? 1U : 0U;
        rest_.remove_prefix(1);
    }

    /// Takes the text before the first of the characters in `ends`. Returns the text without
    /// surrounding blanks.
    std::string take_until(std::string_view ends) {
        const std::size_t end = std::min(rest_.find_first_of(ends), rest_.size());
        std::string text = boost::algorithm::trim_copy(std::string{rest_.substr(0, end)});
        rest_.remove_prefix(end);
        return text;
    }

    void skip_space(bool with_newlines) {
        while (!rest_.empty()) {
            if (begins_with('#')) {
                static_cast<void>(take_until("\n"));
            } else if (begins_with(' ') || begins_with('\t') || begins_with('\r') ||
                       (with_newlines && begins_with('\n'))) {
                take_character();
            } else {
                return;
            }
        }
    }

    void read_values(ConfigLine& line) {
        const bool is_list = begins_with('[');
        if (is_list) {
            take_character();
        }
        const bool has_commas = is_list || is_repeatable_(line.key);
        skip_space(is_list);
        while (!rest_.empty() && !begins_with('\n') && !(is_list && begins_with(']'))) {
            line.values.push_back(take_value(is_list ? ",]\n#" : has_commas ? ",\n#" : "\n#"));
            skip_space(is_list);
            if (has_commas && begins_with(',')) {
                take_character();
                skip_space(is_list);
            }
        }
        if (is_list && rest_.empty()) {
            throw usage_error("--config {}, line {}: the list has no ']'", path_, line.number);
        }
        if (is_list) {
            take_character();
        }
    }

    std::string take_value(std::string_view ends) {
        constexpr std::string_view kQuotes = "\"'`";
        if (kQuotes.find(rest_.front()) == std::string_view::npos) {
            return take_until(ends);
        }
        const char quote = rest_.front();
        std::string value;
        for (take_character(); !begins_with(quote); take_character()) {
            if (rest_.size() > 1 && rest_[0] == '\\' && rest_[1] == quote) {
                take_character(); // skips the backslash of an escaped quote
            }
            if (rest_.empty() || begins_with('\n')) {
                throw usage_error("--config {}, line {}: the quotes are not closed", path_,
                                  number_);
            }
            value += rest_.front();
        }
        take_character();
        return value;
    }

    std::string_view rest_;
    std::string path_;
    std::function<bool(const std::string& key)> is_repeatable_;
    std::string section_;
    std::size_t number_ = 1;
};

void add_dependent_flag_problems(Command& command) {
    const auto is_given = [&command](const std::string& flag) {
        const Flag* const found = command.find_flag(flag);
        return found != nullptr && !found->values.empty();
    };
    const auto is_in_help = [&command](const std::string& flag) {
        const Flag* const found = command.find_flag(flag);
        return found != nullptr && found->replacement.empty();
    };
    for (const DependentFlags& group : command.dependent_flags) {
        if (std::ranges::any_of(group.one_of, is_given)) {
            continue;
        }
        Texts shown;
        std::ranges::copy_if(group.one_of, std::back_inserter(shown), is_in_help);
        for (const std::string& flag : group.flags) {
            if (!is_given(flag)) {
                continue;
            }
            const auto text =
                fmt::format("{} has no effect without {}", flag, fmt::join(shown, " or "));
            if (group.is_error) {
                command.problems.push_back(text);
            } else {
                sink::print_error("{}", text);
            }
        }
    }
}

/// Returns the error text for a line that sets no flag of the command.
std::string invalid_line_text(const ConfigLine& line, const Command& command) {
    if (!line.has_equals) {
        return fmt::format("expected 'flag-name = value', not '{}'", line.key);
    }
    const bool is_in_section = line.key.find('.') != std::string::npos;
    return fmt::format("unknown key '{}'{} (keys are the long flags of 'twscope {} --help' without "
                       "dashes{})",
                       line.key, line.key == "config" ? "" : command.suggest_flag(line.key, ""),
                       command.name, is_in_section ? ", and not in sections such as [x]" : "");
}

} // namespace

std::string environment_variable_name(const Flag& flag) {
    std::string name = std::string{kVariablePrefix} + flag.name;
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char character) {
        return character == '-' ? '_' : static_cast<char>(std::toupper(character));
    });
    return name;
}

void add_color_flag(Command& command) {
    command
        .add("--color", &command.color, "WHEN", "Colour text on the terminal; auto obeys NO_COLOR")
        .allowed_words = {"auto", "always", "never"};
}

Settings::Settings(Command& command) : command_{&command} {
    add_color_flag(command);
    command.add("--config", &file_, "FILE",
                "Read flags from this file, one 'flag-name = value' per line");
}

std::vector<process::GivenFlag> Settings::flags() const {
    std::vector<process::GivenFlag> flags;
    for (const Flag& flag : command_->flags) {
        if (is_config_setting(flag)) {
            flags.push_back({flag.name, flag.values});
        }
    }
    return flags;
}

void Settings::fill_flags_and_set_color() {
    fill_missing_flags();
    print_replaced_flags();
    apply_color();
}

void Settings::print_replaced_flags() const {
    for (const Flag& flag : command_->flags) {
        if (!flag.values.empty() && !flag.replacement.empty()) {
            sink::print_error("{} is now {}", flag.dashed_name(), flag.replacement);
        }
    }
}

void Settings::set_flags_from_process(const std::vector<process::GivenFlag>& flags) {
    for (const auto& [name, values] : flags) {
        if (!values.empty()) {
            static_cast<void>(command_->find_flag("--" + name)->set_values(values));
        }
    }
    apply_color();
}

void Settings::apply_color() const {
    set_log_colors(command_->color == "always"  ? sink::Colors::always
                   : command_->color == "never" ? sink::Colors::never
                                                : sink::Colors::automatic);
}

void Settings::fill_missing_flags() {
    const auto problems = try_fill_missing_flags();
    if (!problems.empty()) {
        throw UsageError{problems.front()};
    }
}

std::vector<std::string> Settings::try_fill_missing_flags() {
    for (Flag& flag : command_->flags) {
        flag.source = flag.values.empty() ? "" : kCommandLine;
    }
    fill_flags_from_environment();
    is_file_read_ = file_.empty();
    if (!is_file_read_) {
        add_problem_of_check(command_->problems, [this] { fill_flags_from_file(); });
    }
    add_dependent_flag_problems(*command_);
    return std::exchange(command_->problems, {});
}

std::vector<std::string> Settings::describe_sources() const {
    std::vector<std::string> lines;
    for (const std::string& source :
         {std::string{kCommandLine}, std::string{kEnvironment}, file_}) {
        Texts names;
        for (const Flag& flag : command_->flags) {
            if (is_config_setting(flag) && !source.empty() && flag.source == source) {
                names.push_back(flag.name);
            }
        }
        if (!names.empty()) {
            lines.push_back(fmt::format("{}: {}", source, fmt::join(names, ", ")));
        }
    }
    if (!overridden_.empty()) {
        lines.push_back(fmt::format("{}, but overridden: {}", file_, fmt::join(overridden_, ", ")));
    }
    return lines;
}

bool Settings::is_given(const std::string& flag) const {
    const Flag* const found = command_->find_flag("--" + flag);
    return found != nullptr && !found->source.empty();
}

std::string Settings::add_source_to_message(std::string message) const {
    const Flag* const flag = command_->find_flag(message.substr(0, message.find_first_of(" :")));
    // Only the command line causes this error, even if another source has set the flag.
    const bool is_value_missing = message.find(kMissingValueText) != std::string::npos;
    return flag == nullptr || is_value_missing || flag->source.empty() ||
                   flag->source == kCommandLine
               ? message
               : fmt::format("{} (set by {})", message,
                             flag->source == kEnvironment ? environment_variable_name(*flag)
                                                          : flag->source);
}

int Settings::run_command(const std::function<int()>& command) const {
    try {
        return command();
    } catch (const UsageError& error) {
        throw UsageError{add_source_to_message(error.what())};
    }
}

void Settings::fill_flags_from_environment() {
    for (Flag& flag : command_->flags) {
        const std::string variable = environment_variable_name(flag);
        // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread has started yet
        const char* const value = std::getenv(variable.c_str());
        if (!is_config_setting(flag) || !flag.values.empty() || value == nullptr) {
            continue;
        }
        set_flag(flag, {value}, variable,
                 fmt::format("is empty; unset it, or set it to {}",
                             flag.is_switch() ? "true or false" : "a value"));
        flag.source = kEnvironment;
    }
}

void Settings::fill_flags_from_file() {
    // Some editors write this mark at the start of UTF-8 files.
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    const std::string content = read_config_file(file_);
    std::string_view text{content};
    text.remove_prefix(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
    const auto find_flag = [this](std::string_view key) -> Flag* {
        const std::string section = command_->name + '.';
        key.remove_prefix(key.starts_with(section) ? section.size() : 0);
        Flag* const flag = command_->find_flag(fmt::format("--{}", key));
        return flag != nullptr && is_config_setting(*flag) && key != "config" ? flag : nullptr;
    };
    ConfigReader reader{text, file_, [&](const std::string& key) {
                            const Flag* const flag = find_flag(key);
                            return flag != nullptr && flag->max_values == Flag::kUnlimited;
                        }};
    std::vector<std::pair<Flag*, ConfigLine>> found;
    while (const auto line = reader.next_line()) {
        Flag* const flag = find_flag(line->key);
        const std::string where = fmt::format("--config {}, line {}", file_, line->number);
        const auto same = std::ranges::find(found, flag, &std::pair<Flag*, ConfigLine>::first);
        if (flag == nullptr) {
            command_->problems.push_back(
                fmt::format("{}: {}", where, invalid_line_text(*line, *command_)));
        } else if (same != found.end() && !line->values.empty()) { // a key may occur several times
            same->second.values.insert(same->second.values.end(), line->values.begin(),
                                       line->values.end());
        } else if (flag->values.empty() || line->values.empty()) {
            found.emplace_back(flag, *line);
        } else if (std::ranges::find(overridden_, flag->name) == overridden_.end()) {
            overridden_.push_back(flag->name); // the command line or a variable set the flag
        }
    }
    for (const auto& [flag, line] : found) {
        set_flag(*flag, line.values, fmt::format("--config {}, line {}", file_, line.number),
                 fmt::format("'{0}' needs a value: {0} = {1}", flag->name,
                             flag->is_switch() ? "true" : "..."));
        flag->source = file_;
    }
    is_file_read_ = true;
}

void Settings::set_flag(Flag& flag, const Texts& values, const std::string& source,
                        const std::string& if_empty) {
    add_problem_of_check(command_->problems, [&] {
        try {
            if (!flag.set_values(values)) {
                throw UsageError{if_empty};
            }
        } catch (const UsageError& error) {
            throw usage_error("{}: {}", source, error.what());
        }
    });
}

HostPort parse_host_port(const std::string& text, const std::string& flag,
                         const char* suggested_host) {
    const auto colon = text.rfind(':');
    const auto port = colon == std::string::npos
                          ? std::nullopt
                          : base::parse_number<std::uint64_t>(text.substr(colon + 1));
    if (port > std::numeric_limits<std::uint16_t>::max()) {
        throw usage_error("{} {}: expected a port up to 65535", flag, text);
    }
    std::string host = text.substr(0, colon);
    const bool has_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (colon == std::string::npos && base::parse_number<std::uint16_t>(text)) {
        throw usage_error("{} {}: expected HOST:PORT; did you mean {}:{}?", flag, text,
                          suggested_host, text);
    }
    if (!port || (!has_brackets && host.find_first_of("[:") != std::string::npos)) {
        throw usage_error("{} {}: expected HOST:PORT, for example 127.0.0.1:8303 or "
                          "[::1]:8303",
                          flag, text);
    }
    host = has_brackets ? host.substr(1, host.size() - 2) : host;
    return {.host = std::move(host), .port = static_cast<std::uint16_t>(*port)};
}

HostPort parse_server(const std::string& text) {
    HostPort where = parse_host_port(text, "--server");
    if (where.host.empty() || where.port == 0) {
        throw usage_error("--server {}: expected HOST:PORT, for example 127.0.0.1:8304", text);
    }
    return where;
}

boost::asio::ip::udp::endpoint parse_endpoint(const std::string& text, const std::string& flag,
                                              const char* default_address) {
    const HostPort where = parse_host_port(
        text, flag, default_address == std::string_view{"0.0.0.0"} ? "" : default_address);
    boost::system::error_code error;
    const auto address =
        boost::asio::ip::make_address(where.host.empty() ? default_address : where.host, error);
    if (error) {
        throw usage_error("{} {}: expected an address like 127.0.0.1:8303 or [::]:8303, not a name",
                          flag, text);
    }
    return {address, where.port};
}

std::filesystem::path resolve_path(const std::filesystem::path& path) {
    std::error_code ignored;
    // weakly_canonical() alone returns a relative path for a file that does not exist.
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path, ignored), ignored);
}

std::filesystem::path require_folder(const std::string& flag, const std::string& name) {
    std::error_code error;
    if (!std::filesystem::is_directory(name, error)) {
        throw usage_error("{} {}: {}; name a folder that exists", flag, name,
                          error ? error.message() : "is not a folder");
    }
    return name;
}

std::filesystem::path require_writable_folder(const std::string& flag, const std::string& name) {
    auto folder = require_folder(flag, name);
    if (::access(folder.c_str(), W_OK | X_OK) != 0) {
        throw usage_error("{} {}: {}; name a writable folder", flag, name,
                          std::generic_category().message(errno));
    }
    return folder;
}

} // namespace tw::cli
