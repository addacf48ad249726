#pragma once

#include "proxy/wire/message.h"
#include "proxy/wire/text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tw::wire {

/// A set of chat command names without the slash. Ignores case, as servers do.
class CommandNames {
  public:
    /// If the constructor's argument contains this name, the set contains every command.
    static constexpr std::string_view kAll = "all";
    /// The maximum number of names. Further names are ignored. DDNet has 90 commands, and large
    /// mods have 300.
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
    std::vector<std::string> names_; ///< in lower case, sorted
    bool all_ = false;
};

/// Chat commands whose arguments may be shown, in addition to the built-in harmless commands.
struct HarmlessCommands {
    /// Commands whose arguments may be shown because the operator allows it; null if there are
    /// none.
    const CommandNames* named_by_operator = nullptr;
    /// Commands that the server announced and is_described_harmless() accepts; null if there are
    /// none.
    const CommandNames* announced_harmless = nullptr;
};

/// Whether a server's description of a command shows that its arguments are no secret. Each
/// argument must have a name. These names, the command's name and the help must not mention a
/// secret, such as a password, a code or a private message. `format`: the arguments in DDNet's
/// syntax, such as "s[player name] ?i[minutes]".
[[nodiscard]] bool is_described_harmless(std::string_view name, std::string_view format,
                                         std::string_view help);

/// Whether the command's arguments may be shown: the command is in `shown` or is a built-in
/// harmless command. Arguments of all other commands may be a password or a code.
[[nodiscard]] bool may_show_arguments(std::string_view command, const HarmlessCommands& shown);

/// Returns how many bytes at the start of a client's chat line may be shown; the line's size if the
/// line contains no secret. A line is a command if it begins with '/', or with '\' or '!' for some
/// mods. Servers skip white space before and after this character. Some servers accept several
/// commands in one line, separated by ';'.
[[nodiscard]] std::size_t unredacted_prefix_size_of_chat(std::string_view line,
                                                         const HarmlessCommands& shown);

/// Returns how many bytes at the start of a command may be shown. `command`: the command with its
/// arguments, without the slash.
[[nodiscard]] std::size_t unredacted_prefix_size_of_command(std::string_view command,
                                                            const HarmlessCommands& shown);

/// Returns how many bytes at the start of a command's arguments may be shown.
[[nodiscard]] std::size_t unredacted_prefix_size_of_arguments(std::string_view command,
                                                              std::string_view arguments,
                                                              const HarmlessCommands& shown);

/// Returns how many bytes at the start of a server's chat line to one player may be shown. The text
/// after "password:", after "your code is" and after a command that the player should repeat is
/// secret. A whisper is secret as a whole.
[[nodiscard]] std::size_t unredacted_prefix_size_of_server_chat(std::string_view line);

/// The text that is shown instead of a secret.
inline constexpr std::string_view kRedacted = "[redacted]";

/// Returns the start of a string value, which may be shown even if mark_secrets marked the value as
/// secret. FieldValue::integer holds the size of the start in bytes.
[[nodiscard]] inline std::string_view unredacted_part(const FieldValue& value) {
    const auto size = std::min<std::size_t>(
        static_cast<std::size_t>(std::max<std::int64_t>(value.integer, 0)), value.bytes.size());
    return as_text(value.bytes.first(size));
}

/// Marks the secret texts and bytes of a decoded message. These are secret:
/// - the fields of a secret message (the remote console), except its `always_shown` fields;
/// - arguments of chat commands that are not known to be harmless: in chat, in 0.7's cl_command,
///   and in chat lines that the server passes on;
/// - whispers: sv_chat of team 2 and 3, chat of mode 3 in 0.7, and the chat lines in which old
///   clients get whispers;
/// - chat lines in which the server sends a code to a player.
/// decode_fields calls this function.
void mark_secrets(const MessageSpec& spec, DecodedFields& fields,
                  const HarmlessCommands& shown = {});

/// Like decode_fields in message.h, but does not mark the arguments of the commands in `shown` as
/// secret.
void decode_fields(const MessageSpec& spec, std::span<const std::byte> body, DecodedFields& out,
                   const HarmlessCommands& shown);

} // namespace tw::wire
