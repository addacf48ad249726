#pragma once

#include <string>
#include <string_view>

namespace tw::bus {

/// Returns a new UUID of version 7. It starts with the time; therefore, files named after runs are
/// sorted by time.
[[nodiscard]] std::string make_run_id();

/// The maximum length of one part of a subject in bytes.
inline constexpr std::size_t kMaxSubjectTokenBytes = 64;

/// Converts any text to a valid part of a subject. Letters, digits, - and _ stay. Other characters
/// become _, because dots and wildcards have a meaning in subjects. Returns "server" for an empty
/// text.
[[nodiscard]] std::string make_subject_token(std::string_view text);

/// Returns true if the text is a valid part of a subject.
[[nodiscard]] bool is_subject_token(std::string_view text);

/// Returns the last part of the subject for a record's JSON line: the record type in the line.
[[nodiscard]] std::string_view subject_type(std::string_view line);

/// Returns a `server` that stands for all servers of one twscope: for the server that a line names,
/// or for `default_server` if the line names none.
[[nodiscard]] std::string make_all_servers_name(std::string_view default_server);

/// Returns true if the text is a result of make_all_servers_name() or a valid part of a subject.
[[nodiscard]] bool is_subject_server(std::string_view text);

/// Returns the server part of the subject for a record's JSON line: `server`, or the name in the
/// line if `server` is a make_all_servers_name().
[[nodiscard]] std::string_view subject_server_of_line(std::string_view server,
                                                      std::string_view line);

/// Returns the server part of a subject STREAM.SERVER.TYPE; empty if the subject has no second
/// part.
[[nodiscard]] std::string_view server_of_subject(std::string_view subject);

/// Returns the text in place of the server, in a subject with wildcards that receives all lines of
/// `server`. `server`: a server's name, or what make_all_servers_name() returned.
[[nodiscard]] std::string_view subject_wildcard(std::string_view server);

/// Returns a URL without user and password, such as "nats://host:4222".
[[nodiscard]] std::string url_without_password(std::string_view url);

} // namespace tw::bus
