#pragma once

#include <string>
#include <string_view>

namespace tw::bus {

/// Another one with every call: a UUID that begins with the time (version 7), so that what it names
/// sorts by it.
[[nodiscard]] std::string make_run_id();

/// The longest part of a subject.
inline constexpr std::size_t kMaxToken = 64;

/// One part of a subject made of any text: letters, digits, - and _ stay, all else becomes _, since dots
/// divide subjects and wildcards ask for many. "server" where nothing is left.
[[nodiscard]] std::string subject_token(std::string_view text);

/// Whether a name is one part of a subject as it is.
[[nodiscard]] bool is_subject_token(std::string_view text);

/// The last part of a line's subject: the type of its record.
[[nodiscard]] std::string_view subject_type(std::string_view line);

/// Servers that publish as one, each under the name that its lines have: what goes by no name goes by
/// this one.
[[nodiscard]] std::string many_servers(std::string_view otherwise);

/// Whether it is that, or one part of a subject.
[[nodiscard]] bool is_subject_server(std::string_view text);

/// The part of a line's subject before that: the server's, or of many_servers the line's.
[[nodiscard]] std::string_view subject_server(std::string_view server, std::string_view line);

/// The same of a whole subject, STREAM.SERVER.TYPE, whoever made it; empty: it has no such part.
[[nodiscard]] std::string_view server_of_subject(std::string_view subject);

/// What fits all of those.
[[nodiscard]] std::string_view subject_of_all(std::string_view server);

/// "nats://host:4222" without who logs in.
[[nodiscard]] std::string shown_url(std::string_view url);

} // namespace tw::bus
