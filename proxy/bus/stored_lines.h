#pragma once

#include "proxy/bus/link.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tw::bus {

/// Numbers of lines, and their places in the stream.
using StoredLines = std::unordered_map<std::uint64_t, std::uint64_t>;

/// The header with the id of a message, by which the bus knows duplicates.
inline constexpr const char* kMessageId = "Nats-Msg-Id";

/// The id of a message.
[[nodiscard]] std::string message_id(std::string_view run, std::uint64_t line);

/// The line whose id this is; 0: another run's.
[[nodiscard]] std::uint64_t line_of_id(std::string_view id, std::string_view run);

/// The run whose id this is; empty: no twscope gave it.
[[nodiscard]] std::string_view run_of_id(std::string_view id);

/// What of a run the stream holds between two places, the first excluded. `subjects`: of the run.
[[nodiscard]] Tried<StoredLines> find_stored_lines(const Link& link, const std::string& stream,
                                                   const std::string& subjects,
                                                   const std::string& run, std::uint64_t behind,
                                                   std::uint64_t until);

} // namespace tw::bus
