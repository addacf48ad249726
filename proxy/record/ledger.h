#pragma once

#include "proxy/wire/message.h"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tw::record {

/// What bytes of a datagram serve.
enum class ByteGroup : std::uint8_t {
    packet,     ///< header, token, the end of the compressed stream
    control,    ///< by kind
    connless,   ///< by name
    chunk,      ///< chunk headers, and what stands where chunks should
    message,    ///< by name, without the deltas of snapshots
    delta,      ///< of snapshots: the counts in front, and what no item owns
    deletion,   ///< by item type
    item,       ///< updates, by item type
    duplicate,  ///< chunks that the receiver had before, header included, by message
    behind_gap, ///< chunks that the receiver drops because one before them is missing, by message
    unused,     ///< what nobody reads: malformed, rejected, incomplete, repeated, 0.7
};

inline constexpr std::size_t kByteGroups = static_cast<std::size_t>(ByteGroup::unused) + 1;

/// Which part of the named thing.
enum class BytePart : std::uint8_t {
    whole,
    head,     ///< message: id or UUID; item: type, id and size
    fields,   ///< message: fields; item: ints
    trailing, ///< message: behind the last field
};

[[nodiscard]] std::string_view byte_group_name(ByteGroup group);
/// Empty for `whole`.
[[nodiscard]] std::string_view byte_part_name(BytePart part);

/// Bytes with one purpose.
struct ByteCount {
    std::uint64_t count = 0; ///< how many things these are
    std::uint64_t bytes = 0; ///< after decompression
    std::uint64_t bits = 0;  ///< on the wire: 8 a byte, or the lengths of the Huffman codes

    void add(const ByteCount& other) {
        count += other.count;
        bytes += other.bytes;
        bits += other.bits;
    }

    void subtract(const ByteCount& other) {
        count -= other.count;
        bytes -= other.bytes;
        bits -= other.bits;
    }

    friend bool operator==(const ByteCount&, const ByteCount&) = default;
};

/// One line of the account.
struct LedgerRow {
    wire::Direction direction = wire::Direction::c2s;
    ByteGroup group = ByteGroup::packet;
    BytePart part = BytePart::whole;
    std::string name;
    ByteCount total;
};

/// Where the bytes of any number of sessions went. The bits of a direction's rows add up to eight
/// times its UDP payload.
class Ledger {
  public:
    /// Names come from the wire in part (unknown UUIDs); what does not fit is booked on kOthers.
    static constexpr std::size_t kMaxRows = 4096;
    static constexpr std::string_view kOthers = "others";

    void charge(wire::Direction direction, ByteGroup group, BytePart part, std::string_view name,
                const ByteCount& what);
    /// Undoes a charge: the bytes turned out to be something else.
    /// Precondition: they were charged.
    void take_back(wire::Direction direction, ByteGroup group, BytePart part, std::string_view name,
                   const ByteCount& what);
    /// Adds up the accounts of several workers.
    void merge(const Ledger& other);

    /// Most bits first.
    [[nodiscard]] std::vector<LedgerRow> rows(wire::Direction direction) const;
    [[nodiscard]] ByteCount total(wire::Direction direction) const;

  private:
    struct KeyView {
        wire::Direction direction;
        ByteGroup group;
        BytePart part;
        std::string_view name;

        friend auto operator<=>(const KeyView&, const KeyView&) = default;
    };

    struct Key {
        wire::Direction direction;
        ByteGroup group;
        BytePart part;
        std::string name;

        [[nodiscard]] KeyView view() const { return {direction, group, part, name}; }
    };

    /// Rows that were asked for lately: a few dozen of them are all that most traffic ever asks for.
    class Recent {
      public:
        Recent() = default;

        // The rows of another ledger are none of this one's.
        Recent(const Recent& /*other*/) noexcept {}

        Recent(Recent&& other) noexcept { other.places_ = {}; }

        Recent& operator=(const Recent& /*other*/) noexcept {
            places_ = {};
            return *this;
        }

        Recent& operator=(Recent&& other) noexcept {
            places_ = other.places_ = {};
            return *this;
        }

        ~Recent() = default;

        struct Place {
            const Key* key = nullptr;
            ByteCount* row = nullptr;
        };

        [[nodiscard]] Place& place_of(const KeyView& key);

      private:
        std::array<Place, 256> places_{};
    };

    /// The row of a key; where there is no room for one more, that of the others.
    ByteCount& row(const KeyView& key);
    ByteCount& add_row(KeyView key);

    struct Less {
        // NOLINTNEXTLINE(readability-identifier-naming): the name that std::map looks for
        using is_transparent = void;

        bool operator()(const Key& a, const Key& b) const { return a.view() < b.view(); }

        bool operator()(const Key& a, const KeyView& b) const { return a.view() < b; }

        bool operator()(const KeyView& a, const Key& b) const { return a < b.view(); }
    };

    std::map<Key, ByteCount, Less> rows_;
    Recent recent_; ///< of `rows_`, which stay where they are
};

} // namespace tw::record
