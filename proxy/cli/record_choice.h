#pragma once

#include <string>
#include <string_view>

namespace CLI {
class Validator;
} // namespace CLI

namespace tw::cli {

/// Sessions are counted from 1.
[[nodiscard]] CLI::Validator session_number();
/// The same, or 0 for the worlds of all sessions.
[[nodiscard]] CLI::Validator session_or_worlds();

/// A time in UTC as records have it, or its beginning up to a whole number, to be compared with theirs as
/// text; without the Z. Errors: UsageError that names the flag.
[[nodiscard]] std::string time_of(std::string_view flag, const std::string& given);

} // namespace tw::cli
