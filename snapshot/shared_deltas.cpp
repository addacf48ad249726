#include "snapshot/shared_deltas.h"

#include "snapshot/cursor.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

namespace tw::snapshot {

namespace {

std::uint64_t word_at(const std::byte* data) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, sizeof(word));
    return word;
}

/// Number of equal leading bytes.
std::size_t count_same(const std::byte* left, const std::byte* right, std::size_t size) {
    constexpr std::size_t kWord = sizeof(std::uint64_t);
    const auto difference = [&](std::size_t at) {
        return word_at(left + at) ^ word_at(right + at);
    };
    std::size_t at = 0;
    while (at + 4 * kWord <= size &&
           (difference(at) | difference(at + kWord) | difference(at + 2 * kWord) |
            difference(at + 3 * kWord)) == 0) {
        at += 4 * kWord;
    }
    for (; at + kWord <= size; at += kWord) {
        if (const std::uint64_t bits = difference(at); bits != 0) {
            const int before = std::endian::native == std::endian::little ? std::countr_zero(bits)
                                                                          : std::countl_zero(bits);
            return at + static_cast<std::size_t>(before) / 8;
        }
    }
    while (at < size && left[at] == right[at]) {
        ++at;
    }
    return at;
}

/// Reserves space in powers of two: deltas vary in size, and buffers should not grow with each.
template <typename Vector>
void make_room(Vector& vector, std::size_t size) {
    if (vector.capacity() < size) {
        vector.reserve(std::bit_ceil(size));
    }
}

} // namespace

void SharedDeltas::Updates::clear() {
    bytes.clear();
    ints.clear();
    places.clear();
}

std::size_t SharedDeltas::Updates::memory_bytes() const {
    return bytes.capacity() + ints.capacity() * sizeof(std::int32_t) +
           places.capacity() * sizeof(Place);
}

void SharedDeltas::Updates::append(std::span<const Place> some,
                                   std::span<const std::byte> their_bytes,
                                   std::span<const std::int32_t> their_ints) {
    if (some.empty()) {
        return;
    }
    const auto bytes_on = static_cast<std::uint32_t>(bytes.size()) - some.front().byte;
    const auto ints_on = static_cast<std::uint32_t>(ints.size()) - some.front().num;
    for (Place place : some) {
        place.byte += bytes_on;
        place.num += ints_on;
        place.update.begin += ints_on;
        places.push_back(place);
    }
    bytes.insert(bytes.end(), their_bytes.begin(), their_bytes.end());
    ints.insert(ints.end(), their_ints.begin(), their_ints.end());
}

void SharedDeltas::Updates::close() {
    places.push_back({.byte = static_cast<std::uint32_t>(bytes.size()),
                      .num = static_cast<std::uint32_t>(ints.size())});
}

std::optional<std::size_t> SharedDeltas::Updates::find(ItemKey key, std::size_t first) const {
    const std::size_t last = std::min(size(), first + kReach);
    while (first != last && places[first].update.key != key) {
        ++first;
    }
    return first != last ? std::optional{first} : std::nullopt;
}

/// Reads a body from start to end. On an error, decode_delta decodes it again and reports the
/// error.
class SharedDeltas::Reader {
  public:
    Reader(std::span<const std::byte> body, Delta& out)
        : body_{body}, out_{&out}, room_{std::min(body.size(), kMaxDeltaInts)} {
        out.ints.resize(room_);
        ints_ = out.ints.data();
    }

    [[nodiscard]] std::size_t updates_left() const { return updates_left_; }

    /// The current position, as the start of an update not read yet.
    [[nodiscard]] Place place() const {
        return {.byte = static_cast<std::uint32_t>(byte_), .num = static_cast<std::uint32_t>(num_)};
    }

    void go_back(const Place& place) {
        byte_ = place.byte;
        num_ = place.num;
    }

    /// Reads everything before the updates.
    [[nodiscard]] bool take_head() {
        const auto num_deleted = take_count();
        const auto num_updates = num_deleted ? take_count() : std::nullopt;
        if (!num_updates || !take(1 + *num_deleted)) {
            return false;
        }
        num_deleted_ = *num_deleted;
        out_->updates.resize(*num_updates);
        update_ = out_->updates.data();
        updates_left_ = *num_updates;
        return true;
    }

    /// Reads the updates that equal the known ones from `first` on. Returns the index after the
    /// last.
    [[nodiscard]] std::size_t take_known(const Updates& known, std::size_t first) {
        const Place* const begin = &known.places[first];
        const std::size_t size = std::min(known.bytes.size() - begin->byte, body_.size() - byte_);
        const std::size_t end =
            begin->byte + count_same(known.bytes.data() + begin->byte, body_.data() + byte_, size);
        const Place* const last = begin + std::min(known.size() - first, updates_left_);
        const auto ints_on = static_cast<std::uint32_t>(num_) - begin->num;
        const Place* place = begin;
        DeltaUpdate* update = update_;
        for (; place != last && place[1].byte <= end; ++place, ++update) {
            *update = place->update;
            update->begin += ints_on;
        }
        const std::size_t num_ints = place->num - begin->num;
        const auto count = static_cast<std::size_t>(place - begin);
        if (num_ints > room_ - num_) {
            room_ = num_; // too many ints for a delta: no more are to be read
            return first;
        }
        if (count == 0) {
            return first;
        }
        std::memcpy(ints_ + num_, known.ints.data() + begin->num, num_ints * sizeof(std::int32_t));
        update_ = update;
        updates_left_ -= count;
        num_ += num_ints;
        byte_ += place->byte - begin->byte;
        return first + count;
    }

    /// Reads the key of the next update, without checking it.
    [[nodiscard]] std::optional<ItemKey> take_key() {
        if (!take(2)) {
            return std::nullopt;
        }
        return ItemKey{static_cast<std::uint16_t>(ints_[num_ - 2]),
                       static_cast<std::uint16_t>(ints_[num_ - 1])};
    }

    /// Reads the update after its key. The key is that of the last take_key().
    [[nodiscard]] bool take_update(ItemKey key, const AgreedSizes& sizes) {
        std::size_t at = num_ - 2;
        std::optional<std::size_t> size = agreed_size(key.type, sizes);
        if (size == 0) {
            size = take_count();
        }
        if (!size || !take(*size)) {
            return false;
        }
        const auto update = decode_update({ints_, num_}, at, sizes);
        if (!update) {
            return false;
        }
        *update_++ = *update;
        --updates_left_;
        return true;
    }

    [[nodiscard]] const DeltaUpdate& last_update() const { return update_[-1]; }

    /// Returns false if there is more data.
    [[nodiscard]] bool finish() {
        out_->ints.resize(num_);
        out_->deleted = std::span{out_->ints}.subspan(kDeltaHeaderInts, num_deleted_);
        out_->surplus_ints = 0;
        return byte_ == body_.size();
    }

  private:
    /// Reads `count` ints. Returns false if there are fewer.
    [[nodiscard]] bool take(std::size_t count) {
        for (; count != 0 && num_ != room_; --count, ++num_) {
            const std::size_t used =
                decode_varint(body_.data() + byte_, body_.size() - byte_, ints_[num_]);
            if (used == 0) {
                return false;
            }
            byte_ += used;
        }
        return count == 0;
    }

    /// Reads a count. It cannot exceed the number of ints left.
    [[nodiscard]] std::optional<std::size_t> take_count() {
        if (!take(1) || ints_[num_ - 1] < 0 || static_cast<std::size_t>(ints_[num_ - 1]) > room_) {
            return std::nullopt;
        }
        return static_cast<std::size_t>(ints_[num_ - 1]);
    }

    std::span<const std::byte> body_;
    Delta* out_;
    std::int32_t* ints_ = nullptr;
    std::size_t room_; ///< ints left
    std::size_t byte_ = 0;
    std::size_t num_ = 0;           ///< index of the next int
    DeltaUpdate* update_ = nullptr; ///< next update to be written
    std::size_t updates_left_ = 0;
    std::size_t num_deleted_ = 0;
};

std::size_t SharedDeltas::memory_bytes() const {
    std::size_t bytes = wider_.memory_bytes() + unknown_.capacity() * sizeof(Unknown);
    for (const Known& known : known_) {
        bytes += known.updates.memory_bytes();
    }
    return bytes;
}

SharedDeltas::Known& SharedDeltas::known_of(const AssembledDelta& delta) {
    const std::uint32_t hash = static_cast<std::uint32_t>(delta.tick) * 0x9E3779B1U +
                               static_cast<std::uint32_t>(delta.delta_tick) * 0x85EBCA77U;
    return known_[(hash >> 16U) % kSlots];
}

Result<void> SharedDeltas::decode(const AssembledDelta& delta, Delta& out,
                                  const AgreedSizes& sizes) {
    Known& known = known_of(delta);
    if (known.tick == delta.tick && known.base == delta.delta_tick && known.sizes == sizes &&
        make_ready(known) && decode_with(known, delta.body, out)) {
        if (unknown_.size() >= kWorthWidening && known.widenings < kMaxWidenings &&
            known.updates.ints.size() < kMaxDeltaInts) {
            ++known.widenings;
            widen(known.updates, delta.body, out);
        }
        return {};
    }
    const auto decoded = decode_delta(delta.body, out, sizes);
    if (decoded && out.surplus_ints == 0) {
        known.state = State::unusable; // until it is complete
        known.tick = delta.tick;
        known.base = delta.delta_tick;
        known.sizes = sizes;
        remember(delta.body, out, known);
    }
    return decoded;
}

void SharedDeltas::remember(std::span<const std::byte> body, const Delta& delta, Known& known) {
    known.widenings = 0;
    Updates& updates = known.updates;
    make_room(updates.bytes, body.size());
    make_room(updates.ints, delta.ints.size());
    updates.bytes.assign(body.begin(), body.end());
    updates.ints.assign(delta.ints.begin(), delta.ints.end());
    updates.places.clear();
    for (const DeltaUpdate& update : delta.updates) {
        const std::size_t num = update.begin - update_head_ints(update.key.type, known.sizes);
        updates.places.push_back({.num = static_cast<std::uint32_t>(num), .update = update});
    }
    updates.close();
    known.state = State::remembered;
}

/// Computes the byte offsets of the updates. Done only when a second delta of the tick arrives,
/// since many have none.
bool SharedDeltas::make_ready(Known& known) {
    if (known.state == State::remembered) {
        Updates& updates = known.updates;
        std::uint32_t num = 0;
        std::size_t byte = 0;
        for (Place& place : updates.places) {
            for (; num < place.num; ++num) {
                byte += varint_size(updates.ints[num]);
            }
            place.byte = static_cast<std::uint32_t>(byte);
        }
        // No int is shorter than its shortest encoding: if the sums are equal, all ints are encoded
        // that way. Otherwise it is unknown which are longer.
        known.state = byte == updates.bytes.size() ? State::ready : State::unusable;
    }
    return known.state == State::ready;
}

bool SharedDeltas::decode_with(const Known& known, std::span<const std::byte> body, Delta& out) {
    const Updates& updates = known.updates;
    Reader reader{body, out};
    unknown_.clear();
    if (!reader.take_head()) {
        return false;
    }
    std::size_t next = 0; // index of the next known update
    std::size_t shared = 0;
    while (reader.updates_left() != 0) {
        if (const std::size_t behind = reader.take_known(updates, next); behind != next) {
            shared += behind - next;
            next = behind;
            continue;
        }
        Place begin = reader.place();
        const auto key = reader.take_key();
        const auto found = key ? updates.find(*key, next) : std::nullopt;
        if (found && *found != next) { // this client does not see the updates between
            reader.go_back(begin);
            next = *found;
            continue;
        }
        if (!key || !reader.take_update(*key, known.sizes)) {
            return false;
        }
        if (found) {
            ++next; // equal key, but other ints
        } else {
            begin.update = reader.last_update();
            unknown_.push_back({begin, reader.place().byte, next});
        }
    }
    if (!reader.finish()) {
        return false;
    }
    counts_.shared += shared;
    counts_.updates += out.updates.size();
    return true;
}

void SharedDeltas::widen(Updates& known, std::span<const std::byte> body, const Delta& delta) {
    wider_.clear();
    std::size_t at = 0;
    const auto append_until = [&](std::size_t end) {
        const Place& begin = known.places[at];
        const Place& behind = known.places[end];
        wider_.append(std::span{known.places}.subspan(at, end - at),
                      std::span{known.bytes}.subspan(begin.byte, behind.byte - begin.byte),
                      std::span{known.ints}.subspan(begin.num, behind.num - begin.num));
        at = end;
    };
    for (const Unknown& unknown : unknown_) {
        append_until(unknown.before);
        const Place& begin = unknown.begin;
        const std::size_t num_ints = begin.update.begin + begin.update.size - begin.num;
        wider_.append({&begin, 1}, body.subspan(begin.byte, unknown.end_byte - begin.byte),
                      std::span{delta.ints}.subspan(begin.num, num_ints));
    }
    append_until(known.size());
    wider_.close();
    std::swap(known, wider_);
}

} // namespace tw::snapshot
