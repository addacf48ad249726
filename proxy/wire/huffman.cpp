#include "proxy/wire/huffman.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

namespace tw::wire::huffman {

namespace {

/// The protocol's frequency of each symbol. Every program builds the same tree from this table.
constexpr std::array<std::uint32_t, kNumSymbols> kFrequencies{
    1073741824, 4545, 2657, 431, 1950, 919, 444, 482, 2244, 617, 838, 542, 715, 1814, 304, 240,
    754,        212,  647,  186, 283,  131, 146, 166, 543,  164, 167, 136, 179, 859,  363, 113,
    157,        154,  204,  108, 137,  180, 202, 176, 872,  404, 168, 134, 151, 111,  113, 109,
    120,        126,  129,  100, 41,   20,  16,  22,  18,   18,  17,  19,  16,  37,   13,  21,
    362,        166,  99,   78,  95,   88,  81,  70,  83,   284, 91,  187, 77,  68,   52,  68,
    59,         66,   61,   638, 71,   157, 50,  46,  69,   43,  11,  24,  13,  19,   10,  12,
    12,         20,   14,   9,   20,   20,  10,  10,  15,   15,  12,  12,  7,   19,   15,  14,
    13,         18,   35,   19,  17,   14,  8,   5,   15,   17,  9,   15,  14,  18,   8,   10,
    2173,       134,  157,  68,  188,  60,  170, 60,  194,  62,  175, 71,  148, 67,   167, 78,
    211,        67,   156,  69,  1674, 90,  174, 53,  147,  89,  181, 51,  174, 63,   163, 80,
    167,        94,   128,  122, 223,  153, 218, 77,  200,  110, 190, 73,  174, 69,   145, 66,
    277,        143,  141,  60,  136,  53,  180, 57,  142,  57,  158, 61,  166, 112,  152, 92,
    26,         22,   21,   28,  20,   26,  30,  21,  32,   27,  20,  17,  23,  21,   30,  22,
    22,         21,   27,   25,  17,   27,  23,  18,  39,   26,  15,  21,  12,  18,   18,  27,
    20,         18,   15,   19,  11,   17,  33,  12,  18,   15,  19,  18,  16,  26,   17,  18,
    9,          10,   25,   22,  22,   17,  20,  16,  6,    16,  15,  20,  14,  18,   24,  335,
    1};

// NOLINTNEXTLINE(misc-no-recursion): the depth is at most that of the tree
void assign_codes(HuffmanTree& tree, std::uint16_t node, SymbolCode code) {
    if (node < kNumSymbols) {
        tree.codes[node] = code;
        return;
    }
    for (std::uint32_t bit = 0; bit < 2; ++bit) {
        assign_codes(tree, tree.children[node][bit],
                     {code.bits | bit << code.length, code.length + 1});
    }
}

/// Joins the two rarest nodes until one node is left. The codes agree with those of other programs
/// only if nodes of equal frequency keep their order in the list: the sort is stable, and a new
/// parent is inserted after all nodes of its frequency.
HuffmanTree build_tree() {
    struct Entry {
        std::uint32_t frequency;
        std::uint16_t node;
    };

    HuffmanTree tree;
    std::vector<Entry> list;
    for (std::uint16_t symbol = 0; symbol < kNumSymbols; ++symbol) {
        list.push_back({kFrequencies[symbol], symbol});
    }
    const auto is_before = [](const Entry& a, const Entry& b) { return a.frequency > b.frequency; };
    std::stable_sort(list.begin(), list.end(), is_before);
    std::uint16_t next_node = kNumSymbols;
    while (list.size() > 1) {
        const Entry last = list.back();
        list.pop_back();
        const Entry other = list.back();
        list.pop_back();
        tree.children[next_node] = {last.node, other.node};
        const Entry parent{last.frequency + other.frequency, next_node};
        list.insert(std::upper_bound(list.begin(), list.end(), parent, is_before), parent);
        ++next_node;
    }
    tree.root = list.front().node;
    assign_codes(tree, tree.root, {});
    return tree;
}

} // namespace

const HuffmanTree& huffman_tree() {
    static const HuffmanTree instance = build_tree();
    return instance;
}

} // namespace tw::wire::huffman

namespace tw::wire {

namespace {

using huffman::huffman_tree;
using huffman::HuffmanTree;
using huffman::kEndSymbol;
using huffman::kNumSymbols;
using huffman::SymbolCode;

/// Size of a window, which is the number of bits that the decoder looks up at once. A longer code
/// takes a second lookup, but few codes are longer. With 13 bits and 4 bytes per entry, the table
/// just fits into the L1 cache (32 KiB). Larger tables are slower because of cache misses.
constexpr std::uint32_t kWindowBits = 13;
constexpr std::uint32_t kLongestCode = 15;
constexpr std::uint32_t kSecondWindowBits = kLongestCode - kWindowBits;

/// The symbols whose codes lie completely within a window, which is the next kWindowBits bits of
/// the input. The symbols are packed into one word, so the decoder needs one load of an entry and
/// one store of eight bytes per window.
///
/// Layout: bits 0..7 are the number of bits used, 8..15 the number of symbols, 16..31 the first two
///         symbols. An entry ends before a third symbol that is not zero; the store writes the
///         zeros after the first two. Zero has the shortest code, and runs of zeros are frequent in
///         snapshots. If the window begins with a longer code, bits 0..15 are zero, and bits 16..31
///         are the index of the code's entries in DecoderTables::second. An entry of zero in
///         `second` is the end symbol.
class WindowEntry {
  public:
    /// The most symbols of an entry. A symbol is a byte, and an entry is written as eight bytes.
    static constexpr std::uint32_t kMaxSymbols = 8;

    static WindowEntry of_long_code(std::size_t second_step) {
        WindowEntry entry;
        entry.word_ = static_cast<std::uint32_t>(second_step << 16U);
        return entry;
    }

    /// Appends a symbol. Returns false if the entry cannot hold it.
    bool append(std::uint32_t symbol, std::uint32_t length) {
        if (count() >= kMaxSymbols || (count() >= 2 && symbol != 0)) {
            return false;
        }
        if (symbol != 0) {
            word_ |= symbol << (16 + 8 * count());
        }
        word_ += 0x100U + length;
        return true;
    }

    [[nodiscard]] std::uint32_t bits() const { return word_ & 0xFFU; }

    [[nodiscard]] std::uint32_t count() const { return word_ >> 8U & 0xFFU; }

    [[nodiscard]] std::uint32_t symbols() const { return word_ >> 16U; }

  private:
    std::uint32_t word_ = 0;
};

struct DecoderTables {
    std::array<WindowEntry, std::size_t{1} << kWindowBits> first;
    /// 2^kSecondWindowBits entries for each window that is the beginning of longer codes.
    std::vector<WindowEntry> second;
};

/// Appends to `tables.second` the entries for the codes whose first kWindowBits bits lead to
/// `node`.
void append_long_code_entries(const HuffmanTree& tree, std::uint16_t node, DecoderTables& tables) {
    for (std::uint32_t window = 0; window < 1U << kSecondWindowBits; ++window) {
        std::uint16_t leaf = node;
        std::uint32_t length = kWindowBits;
        while (leaf >= kNumSymbols) {
            leaf = tree.children[leaf][window >> (length - kWindowBits) & 1U];
            ++length;
        }
        WindowEntry entry;
        if (leaf != kEndSymbol) {
            entry.append(leaf, length);
        }
        tables.second.push_back(entry);
    }
}

DecoderTables build_tables(const HuffmanTree& tree) {
    DecoderTables tables;
    // The symbol with which each window begins; kNumSymbols if its code is longer than a window.
    std::array<std::uint16_t, std::size_t{1} << kWindowBits> begins{};
    begins.fill(kNumSymbols);
    for (std::uint16_t symbol = 0; symbol < kNumSymbols; ++symbol) {
        const SymbolCode code = tree.codes[symbol];
        for (std::size_t window = code.bits; code.length <= kWindowBits && window < begins.size();
             window += std::size_t{1} << code.length) {
            begins[window] = symbol;
        }
    }
    for (std::uint32_t window = 0; window < tables.first.size(); ++window) {
        WindowEntry& entry = tables.first[window];
        for (std::uint32_t used = 0; used < kWindowBits; used = entry.bits()) {
            const std::uint16_t symbol = begins[window >> used];
            if (symbol == kNumSymbols || used + tree.codes[symbol].length > kWindowBits ||
                !entry.append(symbol, tree.codes[symbol].length)) {
                break;
            }
        }
        if (entry.count() == 0) {
            std::uint16_t node = tree.root;
            for (std::uint32_t used = 0; used < kWindowBits; ++used) {
                node = tree.children[node][window >> used & 1U];
            }
            entry = WindowEntry::of_long_code(tables.second.size());
            append_long_code_entries(tree, node, tables);
        }
    }
    return tables;
}

const DecoderTables& decoder_tables() {
    static const DecoderTables instance = build_tables(huffman_tree());
    return instance;
}

/// Loads a little-endian word on machines of any byte order.
std::uint64_t load_word(const std::byte* from) {
    std::uint64_t word = 0;
    std::memcpy(&word, from, sizeof word);
    return std::endian::native == std::endian::little ? word : __builtin_bswap64(word);
}

void store_word(std::byte* to, std::uint64_t word) {
    word = std::endian::native == std::endian::little ? word : __builtin_bswap64(word);
    std::memcpy(to, &word, sizeof word);
}

constexpr std::ptrdiff_t kWordSize = 8;

/// The state of a decompression. `bits` holds `available` bits that were read but not yet decoded.
/// The lowest bit is decoded first. `next` is the next byte to read.
struct DecoderState {
    const std::byte* next;
    const std::byte* end;
    std::byte* out;
    std::byte* out_end;
    std::uint64_t bits = 0;
    std::uint32_t available = 0;

    /// Returns the number of input bits left to decode; negative if bits after the end were
    /// decoded.
    [[nodiscard]] std::ptrdiff_t bits_left() const { return (end - next) * 8 + available; }
};

constexpr std::uint32_t kTableMask = (1U << kWindowBits) - 1;
constexpr std::uint32_t kSecondTableMask = (1U << kSecondWindowBits) - 1;

/// How many windows the decoder looks up between two calls of fill_bits(), which provides at least
/// 56 bits. The bits also suffice if the fourth window begins a longer code.
constexpr std::ptrdiff_t kWindowsPerFill = 4;
static_assert(kWindowsPerFill * kWindowBits <= 56);
static_assert((kWindowsPerFill - 1) * kWindowBits + kLongestCode <= 56);

/// Whether the decoder needs no bounds checks until the next fill_bits(), because enough input
/// before `readable` and enough output space are left even in the worst case.
[[gnu::always_inline]] inline bool can_skip_bounds_checks(const DecoderState& at,
                                                          const std::byte* readable) {
    return readable - at.next >= kWordSize &&
           at.out_end - at.out >= kWindowsPerFill * WindowEntry::kMaxSymbols;
}

[[gnu::always_inline]] inline void fill_bits(DecoderState& at) {
    // Bits above `available` may be set already. The next fill_bits() sets them to the same values
    // again.
    at.bits |= load_word(at.next) << at.available;
    at.next += (63U - at.available) >> 3U;
    at.available |= 56U;
}

[[gnu::always_inline]] inline void write_symbols(DecoderState& at, WindowEntry entry) {
    store_word(at.out, entry.symbols());
    at.out += entry.count();
    at.bits >>= entry.bits();
    at.available -= entry.bits();
}

/// Decodes a code longer than the window. Returns true for the end symbol.
[[gnu::always_inline]] inline bool decode_long_code(DecoderState& at, const DecoderTables& table,
                                                    WindowEntry begin) {
    const WindowEntry entry =
        table.second[begin.symbols() + (at.bits >> kWindowBits & kSecondTableMask)];
    if (entry.count() != 0) {
        write_symbols(at, entry);
        return false;
    }
    at.bits >>= kLongestCode;
    at.available -= kLongestCode;
    return true;
}

/// Decompresses while can_skip_bounds_checks() holds. Returns whether the end symbol was reached.
bool decompress_unchecked(DecoderState& position, const std::byte* readable) {
    const DecoderTables& table = decoder_tables();
    // A local copy is faster: the compiler assumes that stores through `out` may change `position`.
    DecoderState at = position;
    bool ended = false;
    while (!ended && can_skip_bounds_checks(at, readable)) {
        fill_bits(at);
        for (std::ptrdiff_t step = 0; step < kWindowsPerFill; ++step) {
            const WindowEntry entry = table.first[at.bits & kTableMask];
            if (entry.count() == 0) [[unlikely]] {
                ended = decode_long_code(at, table, entry);
                break;
            }
            write_symbols(at, entry);
        }
    }
    position = at;
    return ended;
}

/// The states of two decompressions, and whether each of them reached its end symbol.
struct StatePair {
    DecoderState& left;
    DecoderState& right;
    bool left_ended = false;
    bool right_ended = false;
};

/// Decompresses two payloads in turns while can_skip_bounds_checks() holds for both. The processor
/// overlaps the table lookups of the two payloads.
void decompress_unchecked(StatePair& pair) {
    const DecoderTables& table = decoder_tables();
    DecoderState left = pair.left;
    DecoderState right = pair.right;
    while (can_skip_bounds_checks(left, left.end) && can_skip_bounds_checks(right, right.end)) {
        fill_bits(left);
        fill_bits(right);
        for (std::ptrdiff_t step = 0; step < kWindowsPerFill; ++step) {
            const WindowEntry of_left = table.first[left.bits & kTableMask];
            const WindowEntry of_right = table.first[right.bits & kTableMask];
            if (of_left.count() == 0 || of_right.count() == 0) [[unlikely]] {
                // If only one payload has a long code, the other one's window is looked up again
                // after the next fill_bits().
                pair.left_ended = of_left.count() == 0 && decode_long_code(left, table, of_left);
                pair.right_ended =
                    of_right.count() == 0 && decode_long_code(right, table, of_right);
                break;
            }
            write_symbols(left, of_left);
            write_symbols(right, of_right);
        }
        if (pair.left_ended || pair.right_ended) [[unlikely]] {
            break;
        }
    }
    pair.left = left;
    pair.right = right;
}

/// Decodes one symbol bit by bit. Returns nullopt if the input ends inside the symbol's code.
std::optional<std::uint16_t> read_symbol(DecoderState& at) {
    while (at.available < 56 && at.next < at.end) {
        at.bits |= std::to_integer<std::uint64_t>(*at.next++) << at.available;
        at.available += 8;
    }
    const HuffmanTree& codes = huffman_tree();
    std::uint16_t node = codes.root;
    std::uint32_t length = 0;
    while (node >= kNumSymbols) {
        node = codes.children[node][at.bits >> length & 1U];
        ++length;
    }
    if (static_cast<std::ptrdiff_t>(length) > at.bits_left()) {
        return std::nullopt;
    }
    at.bits >>= length;
    at.available -= length;
    return node;
}

DecoderState make_state(const HuffmanPayload& payload) {
    const auto [in, out] = payload;
    return {in.data(), in.data() + in.size(), out.data(), out.data() + out.size()};
}

Result<std::size_t> decompress_rest(DecoderState at, const HuffmanPayload& payload) {
    const auto truncated =
        tl::unexpected{WireError{WireErrc::huffman_truncated, payload.in.size()}};
    const auto written = [&](const DecoderState& end) {
        return static_cast<std::size_t>(end.out - payload.out.data());
    };
    if (decompress_unchecked(at, at.end)) {
        return written(at);
    }
    // The decoder loads whole words, so the last bytes are decoded from a copy with zeros after it.
    // At most seven bytes are left, so three words suffice.
    std::array<std::byte, 3 * kWordSize> tail{};
    if (at.end - at.next < kWordSize) {
        auto* const last = std::copy(at.next, at.end, tail.data());
        at.next = tail.data();
        at.end = last;
        if (decompress_unchecked(at, tail.data() + tail.size())) {
            return at.bits_left() >= 0 ? Result<std::size_t>{written(at)} : truncated;
        }
    }
    for (;;) {
        const auto symbol = read_symbol(at);
        if (!symbol) {
            return truncated;
        }
        if (*symbol == kEndSymbol) {
            return written(at);
        }
        if (at.out == at.out_end) {
            const auto left = static_cast<std::size_t>(at.bits_left()) / 8;
            return tl::unexpected{WireError{WireErrc::huffman_overflow, payload.in.size() - left}};
        }
        *at.out++ = static_cast<std::byte>(*symbol);
    }
}

} // namespace

Result<std::size_t> huffman_decompress(std::span<const std::byte> in, std::span<std::byte> out) {
    const HuffmanPayload payload{in, out};
    return decompress_rest(make_state(payload), payload);
}

std::array<Result<std::size_t>, 2> huffman_decompress(const HuffmanPayload& left,
                                                      const HuffmanPayload& right) {
    DecoderState of_left = make_state(left);
    DecoderState of_right = make_state(right);
    StatePair pair{of_left, of_right};
    decompress_unchecked(pair);
    const auto result = [](const DecoderState& at, bool ended, const HuffmanPayload& payload) {
        return ended ? Result<std::size_t>{static_cast<std::size_t>(at.out - payload.out.data())}
                     : decompress_rest(at, payload);
    };
    return {result(of_left, pair.left_ended, left), result(of_right, pair.right_ended, right)};
}

const std::array<std::uint8_t, 256>& huffman_code_lengths() {
    static const auto lengths = [] {
        std::array<std::uint8_t, 256> of_bytes{};
        for (std::size_t i = 0; i < of_bytes.size(); ++i) {
            of_bytes[i] = static_cast<std::uint8_t>(huffman_tree().codes[i].length);
        }
        return of_bytes;
    }();
    return lengths;
}

std::vector<std::byte> huffman_compress(std::span<const std::byte> in, HuffmanEnding ending) {
    const HuffmanTree& codes = huffman_tree();
    std::vector<std::byte> out;
    std::uint64_t bits = 0;
    std::uint32_t count = 0;
    const auto put = [&](const SymbolCode& code) {
        bits |= std::uint64_t{code.bits} << count;
        count += code.length;
        for (; count >= 8; count -= 8) {
            out.push_back(static_cast<std::byte>(bits));
            bits >>= 8U;
        }
    };
    for (const std::byte byte : in) {
        put(codes.codes[std::to_integer<std::size_t>(byte)]);
    }
    put(codes.codes[kEndSymbol]);
    if (count != 0 || ending == HuffmanEnding::with_zero_byte) {
        out.push_back(static_cast<std::byte>(bits));
    }
    return out;
}

std::size_t huffman_compressed_size(std::span<const std::byte> in) {
    const auto& lengths = huffman_code_lengths();
    std::size_t bits = huffman_tree().codes[kEndSymbol].length;
    for (const std::byte byte : in) {
        bits += lengths[std::to_integer<std::size_t>(byte)];
    }
    return (bits + 7) / 8;
}

} // namespace tw::wire
