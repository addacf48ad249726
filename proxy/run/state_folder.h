#pragma once

#include "proxy/relay/sip_hash.h"

#include <filesystem>
#include <string>

namespace tw::run {

/// A key, and what has to be said about it.
struct KeptKey {
    relay::SipKey key{};
    std::string warning; ///< empty: it is kept, and the same in the next run
};

/// The key in `folder`/NAME, made when it is not there: the folder with mode 0700, the file with
/// 0600. Where it cannot be kept, one for this run. Throws std::system_error when there is no
/// randomness.
[[nodiscard]] KeptKey keep_key(const std::filesystem::path& folder, const std::string& name);

} // namespace tw::run
