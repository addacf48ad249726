#pragma once

#include <string>
#include <string_view>

namespace tw::bus {

/// Returns a new UUID that starts with the time (version 7), so that files and messages named after
/// it are in order of time.
[[nodiscard]] std::string make_run_id();

/// The most bytes of one part of a subject.
inline constexpr std::size_t kMaxToken = 64;

/// Turns any text into one part of a subject. Letters, digits, - and _ stay. Other characters
/// become _, because dots and wildcards have a meaning in subjects. Returns "server" if nothing is left.
[[nodiscard]] std::string subject_token(std::string_view text);

/// True if the text is a valid part of a subject.
[[nodiscard]] bool is_subject_token(std::string_view text);

/// Returns the last part of a line's subject, which is the record's type.
[[nodiscard]] std::string_view subject_type(std::string_view line);

/// Returns a name that stands for several servers that publish together. Each line is published under
/// the server name in the line, or under `default_server` if the line has no server name.
[[nodiscard]] std::string multi_server_name(std::string_view default_server);

/// True if the text is a result of multi_server_name() or a valid part of a subject.
[[nodiscard]] bool is_subject_server(std::string_view text);

/// Returns the server part of a line's subject: `server`, or the name in the line if `server` is a
/// multi_server_name().
[[nodiscard]] std::string_view subject_server(std::string_view server, std::string_view line);

/// Returns the server part of a subject STREAM.SERVER.TYPE; empty if the subject has no second part.
[[nodiscard]] std::string_view server_of_subject(std::string_view subject);

/// Returns the server part of a subject with wildcards that matches all lines of `server`, which may be a
/// multi_server_name().
[[nodiscard]] std::string_view subject_wildcard(std::string_view server);

/// Returns a URL without user and password, such as "nats://host:4222".
[[nodiscard]] std::string url_without_password(std::string_view url);

} // namespace tw::bus
