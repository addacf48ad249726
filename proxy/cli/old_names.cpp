#include "proxy/cli/old_names.h"

#include "proxy/sink/output.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace tw::cli {

namespace {

struct OldCommand {
    std::string_view name;
    std::string_view command; ///< the command that has its report now
    std::string_view flag;    ///< the flag that asks for the report; empty if none is needed
    std::string_view output;  ///< what its -o is now; empty if it had none
};

constexpr std::array<OldCommand, 3> kOldCommands{
    {{.name = "stats", .command = "decode", .flag = "--stats", .output = {}},
     {.name = "sizes", .command = "decode", .flag = "--sizes", .output = "--write-objects"},
     {.name = "findings", .command = "explain", .flag = {}, .output = {}}}};

struct OldFlag {
    std::string_view name; ///< without dashes
    std::string_view now;
};

constexpr std::array<OldFlag, 12> kOldFlags{
    {{.name = "raw", .now = "--items raw"},
     {.name = "nats", .now = "--bus"},
     {.name = "nats-stream", .now = "the path of --bus: nats://HOST:PORT/STREAM"},
     {.name = "nats-creds", .now = "--bus-file"},
     {.name = "nats-tls", .now = "the scheme of --bus: tls://HOST:PORT"},
     {.name = "nats-tls-ca", .now = "--bus-file"},
     {.name = "nats-tls-cert", .now = "--bus-file"},
     {.name = "nats-tls-key", .now = "--bus-file"},
     {.name = "nats-name", .now = "--bus-name"},
     {.name = "nats-limits", .now = "--bus-limits"},
     {.name = "nats-replicas", .now = "--bus-replicas"},
     {.name = "nats-consumer", .now = "--bus-consumer"}}};

/// Renames -o and --output, with or without their value in the same argument.
void rename_output(std::string& argument, std::string_view now) {
    constexpr std::string_view kShort = "-o";
    constexpr std::string_view kLong = "--output";
    if (argument == kLong || argument.starts_with("--output=")) {
        argument.replace(0, kLong.size(), now);
    } else if (argument.starts_with(kShort)) {
        const std::string value = argument.substr(kShort.size());
        argument = std::string{now} + (value.empty() ? "" : "=") + value;
    }
}

} // namespace

std::string replace_old_command(std::vector<std::string>& arguments) {
    constexpr std::size_t kCommand = 1;
    if (arguments.size() <= kCommand) {
        return {};
    }
    const auto* const old = std::ranges::find(kOldCommands, arguments[kCommand], &OldCommand::name);
    if (old == kOldCommands.end()) {
        return {};
    }
    arguments[kCommand] = old->command;
    if (!old->output.empty()) {
        std::for_each(arguments.begin() + kCommand + 1, arguments.end(),
                      [old](std::string& argument) { rename_output(argument, old->output); });
    }
    if (!old->flag.empty()) {
        arguments.insert(arguments.begin() + kCommand + 1, std::string{old->flag});
    }
    return fmt::format("'{}' is now '{}{}{}'", old->name, old->command,
                       old->flag.empty() ? "" : " ", old->flag);
}

std::string_view replacement_of_flag(const CLI::Option& option) {
    const auto& names = option.get_lnames();
    const auto* const old = names.empty()
                                ? kOldFlags.end()
                                : std::ranges::find(kOldFlags, names.front(), &OldFlag::name);
    return old == kOldFlags.end() ? std::string_view{} : old->now;
}

void hide_old_flags(CLI::App& command) {
    for (CLI::Option* option : command.get_options()) {
        if (!replacement_of_flag(*option).empty()) {
            option->group("");
        }
    }
}

void report_old_flags(const CLI::App& command) {
    for (const CLI::Option* option : command.get_options()) {
        const std::string_view now = replacement_of_flag(*option);
        if (option->count() != 0 && !now.empty()) {
            sink::print_error("--{} is now {}", option->get_lnames().front(), now);
        }
    }
}

} // namespace tw::cli
