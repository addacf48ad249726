#pragma once

#include "proxy/relay/unique_fd.h"

#include <cstdint>

namespace tw::admin {

/// A file as an answer.
struct ServedFile {
    relay::UniqueFd file;
    std::uint64_t bytes = 0; ///< of it; what is appended meanwhile is not sent
};

} // namespace tw::admin
