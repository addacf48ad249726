#include "proxy/wire/huffman.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>

namespace tw::wire {

namespace {

constexpr std::size_t kNumSymbols = 257;
constexpr std::uint16_t kEndSymbol = 256;

/// How often each symbol is expected; both sides build the same tree from it.
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

/// Bits of a code, the first one to be written lowest.
struct Code {
    std::uint32_t bits = 0;
    std::uint32_t length = 0;
};

/// Nodes 0..256 are the symbols, the rest have two children.
struct Tree {
    static constexpr std::size_t kNumNodes = 2 * kNumSymbols - 1;
    std::array<std::array<std::uint16_t, 2>, kNumNodes> children{};
    std::array<Code, kNumSymbols> codes{};
    std::uint16_t root = 0;
};

void assign_codes(Tree& tree, std::uint16_t node, Code code) {
    if (node < kNumSymbols) {
        tree.codes[node] = code;
        return;
    }
    for (std::uint32_t bit = 0; bit < 2; ++bit) {
        assign_codes(tree, tree.children[node][bit],
                     {code.bits | bit << code.length, code.length + 1});
    }
}

/// Joins the two rarest again and again. Ties go by position in the list, so the sort must be
/// stable and a parent takes the place of its bit 1 child: other choices give other codes.
Tree build_tree() {
    struct Entry {
        std::uint32_t frequency;
        std::uint16_t node;
    };

    Tree tree;
    std::vector<Entry> list;
    for (std::uint16_t symbol = 0; symbol < kNumSymbols; ++symbol) {
        list.push_back({kFrequencies[symbol], symbol});
    }
    std::uint16_t next_node = kNumSymbols;
    while (list.size() > 1) {
        std::stable_sort(list.begin(), list.end(),
                         [](const Entry& a, const Entry& b) { return a.frequency > b.frequency; });
        const Entry last = list.back();
        list.pop_back();
        Entry& other = list.back();
        tree.children[next_node] = {last.node, other.node};
        other = {last.frequency + other.frequency, next_node};
        ++next_node;
    }
    tree.root = list.front().node;
    assign_codes(tree, tree.root, {});
    return tree;
}

const Tree& tree() {
    static const Tree instance = build_tree();
    return instance;
}

/// The decoder looks at this many bits at once. Codes are 1 to 15 bits long, the common ones 1 to
/// 6; a table for 12 is 32 KiB and mostly stays in the first cache.
constexpr std::uint32_t kTableBits = 12;

/// All symbols whose codes stand completely in kTableBits bits, in one word so that a step is one
/// load and one store.
///
/// Layout: bits 0..7 bits used, 8..15 number of symbols, 16..63 the symbols, first one lowest.
///         Only six fit, but behind them come zeros, so an entry may also count zero bytes there:
///         runs of zeros, the shortest code, are what snapshots have most.
///         A code that is longer, the end symbol among them: 0 bits, 0 symbols.
class Entry {
  public:
    static constexpr std::uint32_t kMaxSymbols = 8;

    /// False when there is no room.
    bool append(std::uint16_t symbol, std::uint32_t length) {
        if (count() >= kMaxSymbols || (count() >= 6 && symbol != 0)) {
            return false;
        }
        if (symbol != 0) {
            word_ |= std::uint64_t{symbol} << (16 + 8 * count());
        }
        word_ += 0x100U + length;
        return true;
    }

    [[nodiscard]] std::uint32_t bits() const { return word_ & 0xFFU; }

    [[nodiscard]] std::uint32_t count() const { return word_ >> 8U & 0xFFU; }

    [[nodiscard]] std::uint64_t symbols() const { return word_ >> 16U; }

  private:
    std::uint64_t word_ = 0;
};

using Table = std::array<Entry, std::size_t{1} << kTableBits>;

Table build_table(const Tree& tree) {
    Table table{};
    for (std::uint32_t window = 0; window < table.size(); ++window) {
        Entry& entry = table[window];
        std::uint16_t node = tree.root;
        std::uint32_t length = 0;
        for (std::uint32_t used = 0; used < kTableBits; ++used) {
            node = tree.children[node][window >> used & 1U];
            ++length;
            if (node >= kNumSymbols) {
                continue;
            }
            if (node == kEndSymbol || !entry.append(node, length)) {
                break;
            }
            node = tree.root;
            length = 0;
        }
    }
    return table;
}

const Table& table() {
    static const Table instance = build_table(tree());
    return instance;
}

/// The next bits of the input, lowest first. Behind the end of the input come zeros; `left` tells.
class BitReader {
  public:
    explicit BitReader(std::span<const std::byte> in)
        : next_{in.data()}, end_{in.data() + in.size()}, begin_{in.data()} {}

    [[nodiscard]] bool can_load_word() const { return end_ - next_ >= 8; }

    /// Fills up to at least 56 bits. Precondition: can_load_word().
    void fill_word() {
        std::uint64_t word = 0;
        std::memcpy(&word, next_, sizeof word);
        if constexpr (std::endian::native == std::endian::big) {
            word = __builtin_bswap64(word);
        }
        bits_ |= word << available_;
        next_ += (63U - available_) >> 3U;
        available_ |= 56U;
    }

    /// Fills what there is, up to at least 56 bits.
    void fill() {
        if (can_load_word()) {
            fill_word();
            return;
        }
        while (available_ < 56 && next_ != end_) {
            bits_ |= std::to_integer<std::uint64_t>(*next_++) << available_;
            available_ += 8;
        }
    }

    [[nodiscard]] std::uint64_t bits() const { return bits_; }

    [[nodiscard]] std::uint32_t available() const { return available_; }

    /// Precondition: count <= available().
    void skip(std::uint32_t count) {
        bits_ >>= count;
        available_ -= count;
    }

    /// Bytes of which at least one bit was used.
    [[nodiscard]] std::size_t bytes_used() const {
        return static_cast<std::size_t>(next_ - begin_) - available_ / 8;
    }

  private:
    const std::byte* next_;
    const std::byte* end_;
    const std::byte* begin_;
    std::uint64_t bits_ = 0;
    std::uint32_t available_ = 0;
};

void store_symbols(std::byte* out, const Entry& entry) {
    std::uint64_t symbols = entry.symbols();
    if constexpr (std::endian::native == std::endian::big) {
        symbols = __builtin_bswap64(symbols);
    }
    std::memcpy(out, &symbols, sizeof symbols);
}

/// Reads one symbol bit by bit; nothing when the input ends before it does.
std::optional<std::uint16_t> read_symbol(BitReader& in) {
    const Tree& codes = tree();
    std::uint16_t node = codes.root;
    std::uint32_t length = 0;
    while (node >= kNumSymbols) {
        if (length == in.available()) {
            return std::nullopt;
        }
        node = codes.children[node][in.bits() >> length & 1U];
        ++length;
    }
    in.skip(length);
    return node;
}

} // namespace

Result<std::size_t> huffman_decompress(std::span<const std::byte> in, std::span<std::byte> out) {
    constexpr std::uint32_t kStepsPerFill = 56 / kTableBits;
    constexpr std::uint32_t kMask = (1U << kTableBits) - 1;
    const Table& entries = table();
    BitReader reader{in};
    std::byte* to = out.data();
    std::byte* const end = to + out.size();
    for (;;) {
        // While there is plenty of both: no checks. A step on a long code changes nothing, so only
        // the last one needs a look.
        while (reader.can_load_word() && end - to >= kStepsPerFill * Entry::kMaxSymbols) {
            reader.fill_word();
            Entry entry;
            for (std::uint32_t step = 0; step < kStepsPerFill; ++step) {
                entry = entries[reader.bits() & kMask];
                store_symbols(to, entry);
                to += entry.count();
                reader.skip(entry.bits());
            }
            if (entry.count() == 0) {
                break;
            }
        }
        reader.fill();
        const Entry entry = entries[reader.bits() & kMask];
        if (entry.count() != 0 && entry.bits() <= reader.available() &&
            end - to >= Entry::kMaxSymbols) {
            store_symbols(to, entry);
            to += entry.count();
            reader.skip(entry.bits());
            continue;
        }
        const auto symbol = read_symbol(reader);
        if (!symbol) {
            return tl::unexpected{WireError{WireErrc::huffman_truncated, in.size()}};
        }
        if (*symbol == kEndSymbol) {
            return static_cast<std::size_t>(to - out.data());
        }
        if (to == end) {
            return tl::unexpected{WireError{WireErrc::huffman_overflow, reader.bytes_used()}};
        }
        *to++ = static_cast<std::byte>(*symbol);
    }
}

std::vector<std::byte> huffman_compress(std::span<const std::byte> in, HuffmanEnding ending) {
    const Tree& codes = tree();
    std::vector<std::byte> out;
    std::uint64_t bits = 0;
    std::uint32_t count = 0;
    const auto put = [&](const Code& code) {
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

} // namespace tw::wire
