#include "proxy/bus/run_id.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <system_error>

#include <fmt/format.h>
#include <sys/random.h>

namespace tw::bus {

std::string make_run_id() {
    std::array<std::uint16_t, 5> chance{};
    if (::getrandom(chance.data(), sizeof chance, 0) != static_cast<ssize_t>(sizeof chance)) {
        throw std::system_error{errno, std::generic_category(), "getrandom"};
    }
    const auto now =
        static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                       std::chrono::system_clock::now().time_since_epoch())
                                       .count());
    constexpr unsigned kVersion = 0x7000;
    constexpr unsigned kVariant = 0x8000;
    return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:04x}{:04x}{:04x}", now >> 16U & 0xffffffffU,
                       now & 0xffffU, kVersion | (chance[0] & 0xfffU),
                       kVariant | (chance[1] & 0x3fffU), chance[2], chance[3], chance[4]);
}

} // namespace tw::bus
