#pragma once

#include <string>
#include <string_view>

namespace tw::bus {

/// Returns a new UUID of version 7. The UUID starts with the time. Therefore, files with such names
/// are sorted by time.
[[nodiscard]] std::string make_run_id();

/// The maximum length of one part of a subject in bytes.
inline constexpr std::size_t kMaxSubjectTokenBytes = 64;

/// Converts any text to a valid part of a subject. Truncates it to kMaxSubjectTokenBytes, and
/// replaces all characters except letters, digits, - and _ by _. Returns "server" for an empty
/// text.
[[nodiscard]] std::string make_subject_token(std::string_view text);

/// Returns true if the text is a valid part of a subject.
[[nodiscard]] bool is_subject_token(std::string_view text);

/// Returns the last part of the subject for a record's JSON line: the record's type, or "other" if
/// the line has no valid type.
[[nodiscard]] std::string_view subject_type_of_line(std::string_view line);

/// Returns a value for the parameter `server` of the functions below that stands for all servers of
/// one twscope. Lines that name no server belong to `default_server`.
[[nodiscard]] std::string make_all_servers_name(std::string_view default_server);

/// Returns true if the text is a result of make_all_servers_name() or a valid part of a subject.
[[nodiscard]] bool is_server_parameter(std::string_view text);

/// Returns the server part of the subject for a record's JSON line. This is `server`, except if
/// `server` is a result of make_all_servers_name(). It is then the server that the line names.
[[nodiscard]] std::string_view subject_server_of_line(std::string_view server,
                                                      std::string_view line);

/// Returns the server part of a subject STREAM.SERVER.TYPE; empty if the subject has no second
/// part.
[[nodiscard]] std::string_view server_of_subject(std::string_view subject);

/// Returns the server part of the subject that selects all lines of `server` in a subscription.
/// This is `server`, or a wildcard if `server` is a result of make_all_servers_name().
[[nodiscard]] std::string_view server_part_to_subscribe(std::string_view server);

/// Returns a URL without user and password, such as "nats://host:4222".
[[nodiscard]] std::string url_without_password(std::string_view url);

} // namespace tw::bus
