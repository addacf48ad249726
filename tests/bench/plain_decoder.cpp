#include "tests/bench/plain_decoder.h"

#include "proxy/wire/huffman.h"
#include "snapshot/delta.h"
#include "snapshot/objects.h"

#include <algorithm>

namespace tw::bench::plain {

namespace {

constexpr std::uint16_t kEnd = 256;
/// Servers use snapshots of the last three seconds as bases.
constexpr std::int32_t kKeptTicks = 150;

/// The bits of a Huffman code, from the lowest bit of each byte.
struct BitString {
    std::vector<std::byte> bytes;

    [[nodiscard]] std::size_t at(std::size_t index) const {
        return std::to_integer<std::size_t>(bytes[index / 8]) >> index % 8 & 1U;
    }
};

const std::byte* unpack_int(const std::byte* from, const std::byte* end, std::int32_t& out) {
    if (from == end) {
        return nullptr;
    }
    auto byte = std::to_integer<std::uint32_t>(*from++);
    const std::uint32_t sign = byte >> 6U & 1U;
    std::uint32_t value = byte & 0x3FU;
    constexpr std::uint32_t kLastShift = 27;
    for (std::uint32_t shift = 6; (byte & 0x80U) != 0 && shift <= kLastShift; shift += 7) {
        if (from == end) {
            return nullptr;
        }
        byte = std::to_integer<std::uint32_t>(*from++);
        value |= (byte & (shift == kLastShift ? 0x0FU : 0x7FU)) << shift;
    }
    out = static_cast<std::int32_t>(value ^ (0U - sign));
    return from;
}

} // namespace

Huffman::Huffman() {
    // Compressing one byte gives the codes of the byte and of the end symbol; compressing no byte gives only the latter.
    std::uint16_t used = kEnd + 1;
    const auto root = used++;
    const auto insert = [&](std::uint16_t symbol, const BitString& bits, std::size_t length) {
        std::uint16_t node = root;
        for (std::size_t i = 0; i + 1 < length; ++i) {
            std::uint16_t& child = nodes_[node].children[bits.at(i)];
            child = child == 0 ? used++ : child;
            node = child;
        }
        nodes_[node].children[bits.at(length - 1)] = symbol;
        nodes_[symbol].length = static_cast<std::uint32_t>(length);
        nodes_[symbol].symbol = symbol;
    };
    std::size_t end_length = 0;
    double left = 1; // share of the code space that the other symbols leave to the end symbol
    for (std::uint16_t symbol = 0; symbol < kEnd; ++symbol) {
        const std::byte byte{static_cast<std::uint8_t>(symbol)};
        const std::size_t length = wire::huffman_code_lengths().at(symbol);
        insert(symbol,
               {wire::huffman_compress(std::span{&byte, 1}, wire::HuffmanEnding::with_zero_byte)},
               length);
        left -= 1.0 / static_cast<double>(std::uint64_t{1} << length);
    }
    for (; left < 1; left *= 2) {
        ++end_length;
    }
    insert(kEnd, {wire::huffman_compress({}, wire::HuffmanEnding::with_zero_byte)}, end_length);
    for (std::uint32_t window = 0; window < table_.size(); ++window) {
        std::uint16_t node = root;
        for (std::uint32_t i = 0; i < kTableBits && nodes_[node].length == 0; ++i) {
            node = nodes_[node].children[window >> i & 1U];
        }
        table_[window] = node;
    }
}

std::optional<std::size_t> Huffman::decompress(std::span<const std::byte> in,
                                               std::span<std::byte> out) const {
    const std::byte* from = in.data();
    const std::byte* const end = from + in.size();
    std::byte* to = out.data();
    std::byte* const limit = to + out.size();
    std::uint32_t bits = 0;
    std::uint32_t count = 0;
    while (true) {
        while (count < 24 && from != end) {
            bits |= std::to_integer<std::uint32_t>(*from++) << count;
            count += 8;
        }
        const Node* node = &nodes_[table_[bits % table_.size()]];
        if (node->length != 0) {
            bits >>= node->length;
            count -= node->length;
        } else {
            bits >>= kTableBits;
            count -= kTableBits;
            while (node->length == 0) {
                if (count == 0 || count > 32) {
                    return std::nullopt;
                }
                node = &nodes_[node->children[bits & 1U]];
                bits >>= 1U;
                --count;
            }
        }
        if (node->symbol == kEnd) {
            return static_cast<std::size_t>(to - out.data());
        }
        if (to == limit || count > 32) {
            return std::nullopt;
        }
        *to++ = static_cast<std::byte>(node->symbol);
    }
}

const Items::Item* Items::find(std::int32_t key) const {
    for (const Item& item : items) {
        if (item.key == key) {
            return &item;
        }
    }
    return nullptr;
}

std::int32_t* Items::add(std::int32_t key, std::size_t size) {
    const std::size_t begin = ints.size();
    items.push_back({key, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(size)});
    ints.resize(begin + size);
    return ints.data() + begin;
}

std::int32_t Items::checksum() const {
    std::uint32_t sum = 0;
    for (const std::int32_t value : ints) {
        sum += static_cast<std::uint32_t>(value);
    }
    return static_cast<std::int32_t>(sum);
}

void Session::forget_old_snapshots(std::int32_t tick) {
    snapshots_.erase(snapshots_.begin(), snapshots_.lower_bound(tick - kKeptTicks));
    if (!snapshots_.empty() && snapshots_.rbegin()->first > tick) {
        snapshots_.clear(); // the capture starts again
    }
}

void Session::repeat_snapshot(std::int32_t tick, std::int32_t base_tick) {
    if (const auto base = snapshots_.find(base_tick); base != snapshots_.end()) {
        snapshots_[tick] = base->second;
    }
}

const Items* Session::find(std::int32_t tick) const {
    const auto found = snapshots_.find(tick);
    return found == snapshots_.end() ? nullptr : &found->second;
}

bool Session::unpack_ints(std::span<const std::byte> body) {
    ints_.clear();
    for (const std::byte* from = body.data(); from != body.data() + body.size();) {
        from = unpack_int(from, body.data() + body.size(), ints_.emplace_back());
        if (from == nullptr) {
            return false;
        }
    }
    if (ints_.empty()) {
        ints_.resize(snapshot::kDeltaHeaderInts); // a delta without changes
    }
    return ints_.size() <= snapshot::kMaxDeltaInts && ints_.size() >= 3 && ints_[0] >= 0 &&
           ints_.size() - 3 >= static_cast<std::size_t>(ints_[0]);
}

namespace {

/// Applies the updated item at `at`. Returns the start of the next item; null if the data is invalid.
const std::int32_t* apply_item_update(const Items& base, Items& next, const std::int32_t* at,
                                      const std::int32_t* end) {
    if (end - at < 3 || at[0] < 0 || at[0] > snapshot::kMaxItemType || at[1] < 0 ||
        at[1] > snapshot::kMaxItemId) {
        return nullptr;
    }
    const std::int32_t key = at[0] << 16U | at[1];
    std::size_t size =
        snapshot::agreed_size(static_cast<std::uint16_t>(at[0]), snapshot::kAgreedSizes);
    at += 2;
    size = size == 0 ? static_cast<std::size_t>(*at++) : size;
    if (static_cast<std::size_t>(end - at) < size) {
        return nullptr;
    }
    const Items::Item* const there = next.find(key);
    const Items::Item* const old = base.find(key);
    if ((there != nullptr && there->size != size) || (old != nullptr && old->size != size)) {
        return nullptr;
    }
    std::int32_t* const out =
        there == nullptr ? next.add(key, size) : next.ints.data() + there->begin;
    for (std::size_t i = 0; i < size; ++i) {
        const std::int32_t before = old == nullptr ? 0 : base.ints[old->begin + i];
        out[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(before) +
                                           static_cast<std::uint32_t>(at[i]));
    }
    return at + size;
}

} // namespace

std::optional<std::int32_t> Session::decode(std::int32_t tick, std::int32_t base_tick,
                                            std::span<const std::byte> body) {
    forget_old_snapshots(tick);
    if (!unpack_ints(body)) {
        return std::nullopt;
    }
    static const Items nothing;
    const auto found = snapshots_.find(base_tick);
    if (base_tick >= 0 && found == snapshots_.end()) {
        return std::nullopt;
    }
    const Items& base = base_tick < 0 ? nothing : found->second;
    const std::span deleted{ints_.data() + 3, static_cast<std::size_t>(ints_[0])};
    Items next;
    for (const Items::Item& item : base.items) {
        if (std::find(deleted.begin(), deleted.end(), item.key) == deleted.end()) {
            std::copy_n(base.ints.data() + item.begin, item.size, next.add(item.key, item.size));
        }
    }
    const std::int32_t* at = ints_.data() + 3 + ints_[0];
    for (std::int32_t updates = ints_[1]; updates > 0; --updates) {
        at = apply_item_update(base, next, at, ints_.data() + ints_.size());
        if (at == nullptr) {
            return std::nullopt;
        }
    }
    if (next.items.size() > snapshot::kMaxItems ||
        8 + 8 * next.items.size() + 4 * next.ints.size() > snapshot::kMaxSnapshotBytes) {
        return std::nullopt;
    }
    const std::int32_t checksum = next.checksum();
    snapshots_.insert_or_assign(tick, std::move(next));
    return checksum;
}

} // namespace tw::bench::plain
