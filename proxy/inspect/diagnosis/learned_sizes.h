#pragma once

#include "snapshot/objects.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <tuple>

namespace tw::inspect {

/// An item size that differs from the size agreed in the protocol, with the evidence for it.
struct LearnedSize {
    std::uint16_t type = 0;
    std::uint8_t size = 0;  ///< number of ints; 0: deltas contain the size
    bool confirmed = false; ///< a session of the server has reported the size
    /// Number of items of this type that the session read from deltas; 0: another session learned
    /// the size.
    std::uint32_t items = 0;
    /// Number of the session's verified snapshots that contain the type.
    std::uint32_t snapshots = 0;

    friend bool operator==(const LearnedSize&, const LearnedSize&) = default;
};

/// The item sizes that the sessions of a run have learned, by server. Later sessions of a server
/// try these sizes first. Thread-safe.
class LearnedSizes {
  public:
    /// The most servers whose sizes are stored. The sessions of further servers share no sizes.
    static constexpr std::size_t kMaxServers = 256;

    class Server {
      public:
        /// Returns the size of this type that a session learned last; nullopt if none did.
        [[nodiscard]] std::optional<std::uint8_t> find_size(snapshot::Dialect dialect,
                                                            std::uint16_t type) const {
            const std::uint16_t size =
                sizes_[static_cast<std::size_t>(dialect)][type].load(std::memory_order_relaxed);
            return size == 0 ? std::nullopt : std::optional{static_cast<std::uint8_t>(size - 1)};
        }

        void set_size(snapshot::Dialect dialect, std::uint16_t type, std::uint8_t size) {
            sizes_[static_cast<std::size_t>(dialect)][type].store(
                static_cast<std::uint16_t>(size + 1), std::memory_order_relaxed);
        }

      private:
        friend class LearnedSizes;

        /// For each type, its size plus 1; 0 if the size is unknown.
        using Sizes =
            std::array<std::atomic<std::uint16_t>, std::tuple_size_v<snapshot::AgreedSizes>>;

        std::atomic<std::size_t> name_{0}; ///< hash of the address; 0: free slot
        std::array<Sizes, snapshot::kDialects> sizes_{};
    };

    /// Returns the server with this address, valid as long as this table. Adds the server if
    /// necessary; null if the table is full.
    [[nodiscard]] Server* find_or_add_server(std::string_view address) {
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
