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

/// Names of chat commands, without the slash. They are compared as servers compare them: whole, and
/// without regard to case.
class CommandNames {
  public:
    /// The name that stands for every command, in what an operator writes.
    static constexpr std::string_view kAll = "all";
    /// Names beyond this are not taken: DDNet has 90 commands, large mods 300.
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

/// Commands whose arguments may be shown, besides those that are harmless on every server.
struct ShownCommands {
    const CommandNames* asked = nullptr;     ///< by the operator; null: none
    const CommandNames* announced = nullptr; ///< by the server, as harmless; null: none
};

/// Whether a server that describes a command this way gives no hint of a secret: every argument has
/// a name, and neither those names nor the command's own name or help speak of a password, a code, a
/// private message or the like. `format` is DDNet's: "s[player name] ?i[minutes]".
[[nodiscard]] bool is_announced_harmless(std::string_view name, std::string_view format,
                                         std::string_view help);

/// Whether the command's arguments may be shown. Every command may carry a password or a code unless
/// it is known not to.
[[nodiscard]] bool may_show_arguments(std::string_view command, const ShownCommands& shown);

/// How many bytes of a client's chat line may be shown; its size if that is all of it. A line is a
/// command if it begins with '/', or, as some mods have it, with '\' or '!'. Servers skip white
/// space before that and before the name. Some run several commands in one line, with ';' between
/// them.
[[nodiscard]] std::size_t shown_size_of_chat(std::string_view line, const ShownCommands& shown);

/// The same of a command without the slash.
[[nodiscard]] std::size_t shown_size_of_command(std::string_view command,
                                                const ShownCommands& shown);

/// The same of the arguments of a command.
[[nodiscard]] std::size_t shown_size_of_arguments(std::string_view command,
                                                  std::string_view arguments,
                                                  const ShownCommands& shown);

/// The same of a line that the server says to a player. What follows "password:", "your code is" or
/// a command that the player is told to repeat is not shown; of a whisper nothing is.
[[nodiscard]] std::size_t shown_size_of_server_line(std::string_view line);

/// What stands for a text or bytes that must not be shown.
inline constexpr std::string_view kRedacted = "[redacted]";

/// Of a string that is marked secret: its first bytes, which may be shown. Their number stands in the
/// value's integer.
[[nodiscard]] inline std::string_view shown_part(const FieldValue& value) {
    const auto size = std::min<std::size_t>(
        static_cast<std::size_t>(std::max<std::int64_t>(value.integer, 0)), value.bytes.size());
    return {reinterpret_cast<const char*>(value.bytes.data()), size};
}

/// Marks the texts and bytes that must not be shown: of a secret message (the remote console) all
/// but what the message table says may be shown; the arguments of chat commands that are not known to
/// be harmless, in chat, in 0.7's cl_command and in lines that a server passes on; whispers (sv_chat of
/// team 2 and 3, chat of mode 3 in 0.7, and the server's lines that old clients get instead), and lines
/// in which the server tells a player a code. Secret fields of other messages are marked as they are
/// decoded.
void mark_secrets(const MessageSpec& spec, DecodedFields& fields, const ShownCommands& shown = {});

/// As decode_fields in message.h, with chat commands whose arguments are no secret.
void decode_fields(const MessageSpec& spec, std::span<const std::byte> body, DecodedFields& out,
                   const ShownCommands& shown);

} // namespace tw::wire
