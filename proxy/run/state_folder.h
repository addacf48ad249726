#pragma once

#include "proxy/relay/sip_hash.h"

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace tw::run {

/// What is kept in a file from run to run.
struct KeptFile {
    std::string content;
    std::string problem; ///< "FILE: why"; empty: it is kept, and the same in the next run
};

/// The first so many bytes of `folder`/NAME; made of `fresh` when it is not there: the folder with
/// mode 0700, the file with 0600. `is_good`: whether what was found is what it should be. Where it
/// is not, or cannot be kept, `fresh`.
[[nodiscard]] KeptFile keep_file(const std::filesystem::path& folder, const std::string& name,
                                 std::string fresh, bool (*is_good)(std::string_view));

/// So many random bytes. Throws std::system_error when there is no randomness.
[[nodiscard]] std::string random_bytes(std::size_t size);

/// A key, and what has to be said about it.
struct KeptKey {
    relay::SipKey key{};
    std::string warning; ///< empty: it is kept, and the same in the next run
};

/// The key in `folder`/NAME, made when it is not there (see keep_file). Where it cannot be kept, one
/// for this run. Throws std::system_error when there is no randomness.
[[nodiscard]] KeptKey keep_key(const std::filesystem::path& folder, const std::string& name);

} // namespace tw::run
