#include "proxy/process/state_folder.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/memory_file.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

/// The input is a key file with any content. A file of sufficient length is the key; any other must be
/// reported as invalid. The file must never be changed.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using tw::fuzz::demand;
    const tw::fuzz::MemoryFile file{data, size};
    for (int run = 0; run < 2; ++run) {
        const auto kept =
            tw::process::read_or_create_key(tw::fuzz::MemoryFile::folder(), file.name());
        const bool is_key = size >= kept.key.size();
        demand(kept.warning.empty() == is_key);
        demand(!is_key || std::equal(kept.key.begin(), kept.key.end(), data, [](auto a, auto b) {
            return static_cast<std::uint8_t>(a) == b;
        }));
    }
    return 0;
}
