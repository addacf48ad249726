#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace tw::capture {

/// Hands on a capture's bytes so that all sections of a pcapng file have the byte order of its first
/// one: libpcap reads no others. Everything else passes as it is.
///
/// Bounded: it keeps one block of a section in the other order, which has at most kMaxBlock bytes.
/// Source:  draft-ietf-opsawg-pcapng, sections 3 and 4.
class SectionOrder {
  public:
    static constexpr std::uint32_t kMaxBlock = std::uint32_t{16} << 20U; ///< libpcap's

    /// Fills a room as far as bytes are there; 0: the end, or an error.
    using Read = std::function<std::size_t(std::span<std::byte>)>;

    /// Reads at least one byte, unless `source` has none.
    [[nodiscard]] std::size_t read(std::span<std::byte> room, const Read& source);

  private:
    struct Head {
        std::uint32_t type;
        std::uint32_t size;
    };

    /// The block that begins here; nothing: its head is not all there, or no block of pcapng.
    [[nodiscard]] std::optional<Head> head_of(std::span<const std::byte> bytes);
    /// How many of these bytes, which follow those handed on, may be handed on as they are.
    [[nodiscard]] std::size_t passing(std::span<const std::byte> bytes);
    /// Moves what is complete from held_ to ready_.
    void make_ready();

    bool is_pcapng_ = true; ///< as far as was seen
    bool begun_ = false;
    bool swapped_ = false;         ///< the first section's order is not this machine's
    bool foreign_ = false;         ///< the section at hand has another order than the first one
    std::uint64_t left_ = 0;       ///< of a block that is handed on as it is
    std::vector<std::byte> held_;  ///< bytes of a block that is not all there
    std::vector<std::byte> ready_; ///< in the right order
    std::size_t handed_ = 0;       ///< of these
};

} // namespace tw::capture
