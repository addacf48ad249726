#pragma once

#include <string>
#include <string_view>

namespace tw::bus {

/// The longest part of a subject.
inline constexpr std::size_t kMaxToken = 64;

/// One part of a subject made of any text: letters, digits, - and _ stay, all else becomes _, since dots
/// divide subjects and wildcards ask for many. "server" where nothing is left.
[[nodiscard]] std::string subject_token(std::string_view text);

/// Whether a name is one part of a subject as it is.
[[nodiscard]] bool is_subject_token(std::string_view text);

/// The last part of a line's subject: the type of its record.
[[nodiscard]] std::string_view subject_type(std::string_view line);

/// "nats://host:4222" without who logs in.
[[nodiscard]] std::string shown_url(std::string_view url);

} // namespace tw::bus
