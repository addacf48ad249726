#pragma once

#include "proxy/inspect/legacy.h"
#include "proxy/relay/unique_fd.h"

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace tw::run {

/// What an observer that ends leaves of each session, by the session's number at the relay.
using Legacies = std::unordered_map<std::uint32_t, inspect::Legacy>;

/// They go by a file without a name that both relays hand on. More is not handed over: those left
/// out are joined midway.
inline constexpr std::size_t kMaxLegacyBytes = std::size_t{256} << 20U;

/// Not valid, with errno, where there is none to be had.
[[nodiscard]] relay::UniqueFd create_legacy_file();

/// Returns how many were written: all, unless they are too many or the file takes no more.
[[nodiscard]] std::size_t write_legacies(int file, const Legacies& legacies);

/// The same, and logs what is left out; nothing where there is no file.
void hand_over_legacies(const relay::UniqueFd& file, const Legacies& legacies);

/// What was written there; nothing of one that is not sound, or of another version.
[[nodiscard]] Legacies read_legacies(int file);

} // namespace tw::run
