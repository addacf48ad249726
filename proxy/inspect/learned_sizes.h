#pragma once

#include "snapshot/objects.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace tw::inspect {

/// Sizes that the sessions of a run have named, by server: a later session of the same server tries
/// them first. May be used by several threads.
class LearnedSizes {
  public:
    /// Servers beyond this many share nothing; their sessions still learn, each by itself.
    static constexpr std::size_t kMaxServers = 256;

    class Server {
      public:
        /// The size of this type that a session named last; nullopt: none did.
        [[nodiscard]] std::optional<std::uint8_t> find(snapshot::Dialect dialect,
                                                       std::uint16_t type) const {
            const std::uint16_t size =
                sizes_[static_cast<std::size_t>(dialect)][type].load(std::memory_order_relaxed);
            return size == 0 ? std::nullopt : std::optional{static_cast<std::uint8_t>(size - 1)};
        }

        void set(snapshot::Dialect dialect, std::uint16_t type, std::uint8_t size) {
            sizes_[static_cast<std::size_t>(dialect)][type].store(
                static_cast<std::uint16_t>(size + 1), std::memory_order_relaxed);
        }

      private:
        friend class LearnedSizes;

        using Sizes = std::array<std::atomic<std::uint16_t>,
                                 std::tuple_size_v<snapshot::AgreedSizes>>; ///< plus 1; 0: none

        std::atomic<std::size_t> name_{0}; ///< its hash; 0: the place is free
        std::array<Sizes, snapshot::kDialects> sizes_{};
    };

    /// The server of this address, which lives as long as this table; null: the table is full.
    [[nodiscard]] Server* server(std::string_view address) {
        const std::size_t name = std::hash<std::string_view>{}(address) | 1U;
        for (Server& each : servers_) {
            std::size_t taken = 0;
            if (each.name_.compare_exchange_strong(taken, name) || taken == name) {
                return &each;
            }
        }
        return nullptr;
    }

  private:
    std::array<Server, kMaxServers> servers_;
};

} // namespace tw::inspect
