#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <boost/asio/ip/address.hpp>

namespace tw::capture {

/// One IP fragment of a UDP datagram.
struct Fragment {
    std::int64_t time = 0; ///< nanoseconds
    boost::asio::ip::address source{};
    boost::asio::ip::address destination{};
    std::uint32_t id = 0;
    std::size_t offset = 0; ///< of its bytes in the datagram
    bool more = false;      ///< it is not the last one
    std::span<const std::byte> bytes{};
};

/// Puts IP fragments together, in any order, as the hosts that receive them do.
///
/// Bounded: so many datagrams at a time, the oldest of which leaves for the next; so long; so many
/// pieces of each. Those that are whole are remembered where there is room, since what is captured in
/// two places is there twice.
/// Source:  RFC 791, RFC 8200 section 4.5; RFC 5722: overlapping pieces make the whole void.
class Fragments {
  public:
    static constexpr std::size_t kMaxDatagrams = 64;
    /// 64 KiB in the smallest pieces that IPv6 makes, and some.
    static constexpr std::size_t kMaxPieces = 64;
    /// As long as Linux waits for the rest (ipfrag_time).
    static constexpr std::int64_t kPatience = 30'000'000'000;
    /// A UDP length has 16 bits.
    static constexpr std::size_t kMaxBytes = 65535;

    /// What came of a fragment.
    struct Whole {
        std::span<const std::byte> bytes; ///< valid until the next call
        std::size_t pieces = 0;           ///< of which it was made
    };

    /// The datagram that is whole with it, if one is.
    [[nodiscard]] std::optional<Whole> add(const Fragment& fragment);

    /// Fragments that had been there before.
    [[nodiscard]] std::uint64_t repeats() const { return repeats_; }

  private:
    struct Piece {
        std::size_t begin;
        std::size_t end;
    };

    struct Partial {
        bool used = false;
        bool spoiled = false; ///< until its time is over: whatever else comes of it is void
        bool whole = false;   ///< handed out; kept to tell what comes again
        boost::asio::ip::address source{};
        boost::asio::ip::address destination{};
        std::uint32_t id = 0;
        std::int64_t began = 0;
        std::optional<std::size_t> size{}; ///< once the last piece is there
        std::size_t have = 0;              ///< bytes
        std::size_t num_pieces = 0;        ///< kept
        std::array<Piece, kMaxPieces> pieces{};
        std::vector<std::byte> bytes{}; ///< kept for its memory
    };

    /// What a piece is to those that are there.
    enum class Fit : std::uint8_t { fits, again, spoils };

    [[nodiscard]] Partial& place_of(const Fragment& fragment);
    static void begin(Partial& partial, const Fragment& fragment);
    [[nodiscard]] static bool is_of_whole(const Partial& partial, const Fragment& fragment);
    [[nodiscard]] static Fit fit_of(const Partial& partial, const Fragment& fragment);

    std::array<Partial, kMaxDatagrams> partials_{};
    std::uint64_t repeats_ = 0;
};

} // namespace tw::capture
