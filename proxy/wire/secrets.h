#pragma once

#include "proxy/wire/message.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tw::wire {

/// A set of chat command names, without the slash. Names are compared as servers do: whole, and
/// ignoring case.
class CommandNames {
  public:
    /// The name by which an operator means every command.
    static constexpr std::string_view kAll = "all";
    /// Further names are ignored: DDNet has 90 commands, large mods 300.
    static constexpr std::size_t kMaxNames = 512;
    static constexpr std::size_t kMaxNameSize = 64;

    CommandNames() = default;
    explicit CommandNames(const std::vector<std::string>& names);

    [[nodiscard]] bool contains(std::string_view name) const;
    void add(std::string_view name);
    void remove(std::string_view name);

    void clear() { names_.clear(); }

    [[nodiscard]] std::size_t memory_bytes() const;

  private:
    std::vector<std::string> names_; ///< lower case, sorted
    bool all_ = false;
};

/// Commands whose arguments may be shown, in addition to the built-in harmless ones.
struct ShownCommands {
    const CommandNames* asked = nullptr;     ///< named by the operator; null: none
    const CommandNames* announced = nullptr; ///< announced by the server as harmless; null: none
};

/// Whether a server's description of a command gives no hint of a secret: each argument has a name,
/// and neither the names nor the command or its help mention a password, a code, a private message
/// or the like. `format` in DDNet's syntax: "s[player name] ?i[minutes]".
[[nodiscard]] bool is_announced_harmless(std::string_view name, std::string_view format,
                                         std::string_view help);

/// Whether the command's arguments may be shown. Any other command may contain a password or a
/// code.
[[nodiscard]] bool may_show_arguments(std::string_view command, const ShownCommands& shown);

/// Number of bytes of a client's chat line that may be shown; its full size if it has no secret. A
/// line is a command if it begins with '/', or with '\' or '!', which some mods use. Servers skip
/// white space before that and before the name. Some accept several commands in one line, separated
/// by ';'.
[[nodiscard]] std::size_t shown_size_of_chat(std::string_view line, const ShownCommands& shown);

/// Number of bytes of a command without the slash that may be shown.
[[nodiscard]] std::size_t shown_size_of_command(std::string_view command,
                                                const ShownCommands& shown);

/// Number of bytes of a command's arguments that may be shown.
[[nodiscard]] std::size_t shown_size_of_arguments(std::string_view command,
                                                  std::string_view arguments,
                                                  const ShownCommands& shown);

/// Number of bytes of a server's chat line to a player that may be shown. Text after "password:",
/// "your code is" or a command that the player should repeat is secret; a whisper is secret as a
/// whole.
[[nodiscard]] std::size_t shown_size_of_server_line(std::string_view line);

/// Replaces a text or bytes that must not be shown.
inline constexpr std::string_view kRedacted = "[redacted]";

/// The first bytes of a secret string, which may be shown. Their number is the value's integer.
[[nodiscard]] inline std::string_view shown_part(const FieldValue& value) {
    const auto size = std::min<std::size_t>(
        static_cast<std::size_t>(std::max<std::int64_t>(value.integer, 0)), value.bytes.size());
    return {reinterpret_cast<const char*>(value.bytes.data()), size};
}

/// Marks secret texts and bytes: all of a secret message (the remote console) except its `shown`
/// fields; the arguments of chat commands not known to be harmless, in chat, in 0.7's cl_command
/// and in lines the server relays; whispers (sv_chat of team 2 and 3, chat of mode 3 in 0.7, and
/// the server's lines that old clients receive instead); and lines in which the server tells a
/// player a code. decode_fields marks secret fields of other messages.
void mark_secrets(const MessageSpec& spec, DecodedFields& fields, const ShownCommands& shown = {});

/// Like decode_fields in message.h; the arguments of `shown` commands are not marked secret.
void decode_fields(const MessageSpec& spec, std::span<const std::byte> body, DecodedFields& out,
                   const ShownCommands& shown);

} // namespace tw::wire
