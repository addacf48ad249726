#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace tw::admin {

/// What is wrong with a text that somebody typed.
struct Complaint {
    std::string message;    ///< one line
    std::size_t offset = 0; ///< bytes into the text
};

/// Whether a record, as its JSON line, is wanted.
using LineFilter = std::function<bool(std::string_view line)>;
/// Makes one of a text in the language of filters.
using MakeLineFilter = std::function<tl::expected<LineFilter, Complaint>(const std::string& text)>;

/// What a viewer asks to be shown. A key that a message does not name stays as it was.
struct Wishes {
    std::optional<std::uint32_t> watch{}; ///< a session; 0: the world of all; kNothing: neither
    std::optional<int> pace{};            ///< frames a second
    std::optional<std::string> log{};     ///< filter of the log; empty: all of it
    std::optional<bool> log_on{};
    std::optional<bool> bytes{};
    bool again = false; ///< a frame with all there is, please

    static constexpr std::uint32_t kNothing = 0xffffffff;
};

/// Reads a message of a viewer: {"watch": 1, "pace": 20, "log": "type == finding", "bytes": true,
/// "again": true}; "watch" may be "all" or null, "log" null.
/// Errors: one line that says what is wrong.
[[nodiscard]] tl::expected<Wishes, std::string> read_wishes(std::string_view text);

} // namespace tw::admin
