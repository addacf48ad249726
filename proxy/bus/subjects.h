#pragma once

#include <string>
#include <string_view>

namespace tw::bus {

/// Returns a new UUID that starts with the time (version 7), so that names made from it sort by
/// time.
[[nodiscard]] std::string make_run_id();

/// The most bytes of a part of a subject.
inline constexpr std::size_t kMaxToken = 64;

/// Turns any text into one part of a subject: letters, digits, - and _ stay; other characters
/// become _, as dots and wildcards have a meaning. Returns "server" if nothing is left.
[[nodiscard]] std::string subject_token(std::string_view text);

/// True if a name is a valid part of a subject.
[[nodiscard]] bool is_subject_token(std::string_view text);

/// Returns the last part of a line's subject: the type of its record.
[[nodiscard]] std::string_view subject_type(std::string_view line);

/// Returns a name for several servers that publish together, each under the name in its lines.
/// Lines without a name use `otherwise`.
[[nodiscard]] std::string many_servers(std::string_view otherwise);

/// True if the text came from many_servers() or is a valid part of a subject.
[[nodiscard]] bool is_subject_server(std::string_view text);

/// Returns the server in a line's subject: `server`, or for many_servers() the name in the line.
[[nodiscard]] std::string_view subject_server(std::string_view server, std::string_view line);

/// Returns the server in a whole subject, STREAM.SERVER.TYPE, from any publisher; empty if the
/// subject has no such part.
[[nodiscard]] std::string_view server_of_subject(std::string_view subject);

/// Returns a wildcard for the subjects of a server, or of many_servers().
[[nodiscard]] std::string_view subject_of_all(std::string_view server);

/// Returns a URL such as "nats://host:4222", without user and password.
[[nodiscard]] std::string shown_url(std::string_view url);

} // namespace tw::bus
