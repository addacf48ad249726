#include "proxy/inspect/diagnosis/size_search.h"

#include "snapshot/delta.h"

#include <algorithm>
#include <limits>
#include <string_view>

namespace tw::inspect {

namespace {

using snapshot::AgreedSizes;
using snapshot::ItemKey;

/// The largest difference between a size and the agreed size, in ints. Mods add some ints to an
/// object, but use another type for an object of twice the size.
constexpr int kMaxChange = 12;
/// The largest size in ints that is tried for an unknown type.
constexpr int kMaxNewSize = 24;
/// The highest cost of an explanation. An unknown type or a type with a changed size costs one.
constexpr int kMaxCost = 20;
/// The cost of a type whose size deltas contain although the protocol defines the size, or omit
/// although the protocol does not. It is higher than the cost of a changed size, which is likelier.
constexpr int kWrittenCost = 2;
/// Numbered types that are only parts of other objects and messages, and never sent as items.
constexpr std::array<std::string_view, 3> kNeverSent{"player_input", "character_core", "common"};
/// This bit marks an entry of `charged_` that stands for an unusual id of an item of the type: the
/// number of a UUID type.
constexpr std::uint16_t kOddId = 0x8000;
constexpr int kOddIdCost = 2;
static_assert(kOddId > snapshot::kMaxItemType);

constexpr std::uint16_t kNumberedTypes = std::tuple_size_v<AgreedSizes>;

/// The keys of the items read so far, in order. Keys can be removed from the end.
class KeysRead {
  public:
    KeysRead() { slots_.fill(kFree); }

    [[nodiscard]] std::size_t count() const { return taken_.size(); }

    /// Returns false if the key was read before.
    [[nodiscard]] bool add(std::uint32_t key) {
        std::size_t slot = key * 2654435761U >> 20U; // Knuth's multiplicative hash, to 12 bits
        while (slots_[slot] != kFree) {
            if (slots_[slot] == key) {
                return false;
            }
            slot = (slot + 1) % kSlots;
        }
        slots_[slot] = key;
        taken_.push_back(static_cast<std::uint16_t>(slot));
        return true;
    }

    void remove_keys_after(std::size_t count) {
        for (; taken_.size() > count; taken_.pop_back()) {
            slots_[taken_.back()] = kFree;
        }
    }

  private:
    static constexpr std::size_t kSlots = 4096; // four times the most items of a snapshot
    static constexpr std::uint32_t kFree = std::numeric_limits<std::uint32_t>::max();

    std::array<std::uint32_t, kSlots> slots_{};
    std::vector<std::uint16_t> taken_;
};

/// The types that a search may use without extra cost.
class KnownTypes {
  public:
    KnownTypes(const DeltaInts& delta, const KnownSizes& known) : names_{known.types} {
        for (std::uint16_t type = 0; type < kNumberedTypes; ++type) {
            known_[type] = type == 0 || known.sizes[type] != 0;
        }
        for (const std::uint32_t key : delta.base.keys()) {
            known_.set(ItemKey::from_packed(key).type);
        }
        const auto dialect = names_ == nullptr ? snapshot::Dialect::six : names_->dialect();
        for (const snapshot::ObjectSpec& object : snapshot::object_table()) {
            if (object.dialect == dialect && object.type < kNumberedTypes) {
                never_sent_[object.type] =
                    std::ranges::find(kNeverSent, object.name) != kNeverSent.end();
            }
        }
        // Descriptor items define the UUID types of this snapshot. All ints are searched for them,
        // because their positions in the delta are not known yet.
        constexpr std::int32_t kUuidInts = 4;
        const auto ints = delta.ints;
        for (std::size_t i = 0; i + 2 < ints.size(); ++i) {
            if (ints[i] == 0 && ints[i + 1] >= snapshot::kFirstUuidType &&
                ints[i + 1] <= snapshot::kMaxItemType && ints[i + 2] == kUuidInts) {
                known_.set(static_cast<std::size_t>(ints[i + 1]));
            }
        }
    }

    /// Whether this is a numbered type that no server sends.
    [[nodiscard]] bool is_never_sent(std::uint16_t type) const { return never_sent_.test(type); }

    [[nodiscard]] bool contains(std::uint16_t type) const {
        return known_.test(type) || (names_ != nullptr && (names_->find(type) != nullptr ||
                                                           names_->object(type) != nullptr));
    }

  private:
    const record::ItemTypes* names_;
    NumberedTypeSet never_sent_;
    std::bitset<snapshot::kMaxItemType + 1> known_;
};

/// Reads a delta and finds item sizes that fit: at the first item of each type, it tries each
/// possible size of the type and reads on until an error.
class DeltaReader {
  public:
    DeltaReader(const DeltaInts& delta, const AgreedSizes& sizes) : delta_{&delta}, sizes_{sizes} {
        decided_.set();
    }

    DeltaReader(const DeltaInts& delta, const KnownSizes& known, const KnownTypes& types)
        : delta_{&delta}, types_{&types}, sizes_{known.sizes}, decided_{known.settled} {}

    /// Finds all sets of sizes that fit and have at most this cost. `budget`: null if only the
    /// known sizes must be tried.
    void find_fitting_sizes(int cost, SearchBudget* budget) {
        found_.clear();
        budget_ = budget;
        if (const auto begin = start()) {
            keys_.remove_keys_after(0);
            read_updates(*begin, cost);
        }
    }

    [[nodiscard]] std::vector<AgreedSizes>& found() { return found_; }

    [[nodiscard]] const TypeCounts& seen() const { return seen_; }

  private:
    struct ReadPosition {
        std::size_t at = 0;        ///< index of the next int
        std::int32_t num_left = 0; ///< number of updates left
        std::uint32_t sum = 0;     ///< wrapping sum of the snapshot's ints so far
    };

    enum class ReadResult : std::uint8_t { read, misfit, undecided };

    /// Subtracts the cost of an unusual item from `cost`, the remaining cost that an explanation
    /// may have. Returns false if `cost` was too low.
    [[nodiscard]] bool subtract_cost(ItemKey key, int& cost);
    /// Subtracts `price` from `cost` and adds `what` to `charged_`, unless `charged_` contains
    /// `what`.
    [[nodiscard]] bool subtract_cost_once(std::uint16_t what, int price, int& cost);

    /// Returns the position after the deleted keys; nullopt if the delta's header is invalid.
    [[nodiscard]] std::optional<ReadPosition> start();
    void read_updates(ReadPosition place, int cost);
    [[nodiscard]] ReadResult read_update(ReadPosition& place, int& cost);
    /// Returns the size of the current item in ints; nullopt if the delta ends before the size.
    [[nodiscard]] std::optional<std::size_t> size_of(ItemKey key, std::size_t& at) const;
    void try_sizes(ReadPosition place, std::uint16_t type, int cost);

    const DeltaInts* delta_;
    const KnownTypes* types_ = nullptr; ///< null: all types are allowed without a cost
    AgreedSizes sizes_;
    NumberedTypeSet decided_;
    SearchBudget* budget_ = nullptr;
    std::vector<std::uint32_t> deleted_; ///< keys of the deleted items, sorted
    std::vector<std::uint16_t> charged_; ///< types whose cost was subtracted already
    KeysRead keys_;
    TypeCounts seen_;
    std::vector<AgreedSizes> found_;
};

std::uint32_t sum_of(std::span<const std::int32_t> ints) {
    std::uint32_t sum = 0;
    for (const std::int32_t value : ints) {
        sum += static_cast<std::uint32_t>(value);
    }
    return sum;
}

std::optional<DeltaReader::ReadPosition> DeltaReader::start() {
    const auto ints = delta_->ints;
    if (ints.size() < snapshot::kDeltaHeaderInts || ints[0] < 0 || ints[1] < 0 ||
        static_cast<std::size_t>(ints[0]) > ints.size() - snapshot::kDeltaHeaderInts ||
        static_cast<std::size_t>(ints[1]) > snapshot::kMaxItems) {
        return std::nullopt;
    }
    const auto keys = ints.subspan(snapshot::kDeltaHeaderInts, static_cast<std::size_t>(ints[0]));
    ReadPosition place{.at = snapshot::kDeltaHeaderInts + keys.size(),
                       .num_left = ints[1],
                       .sum = static_cast<std::uint32_t>(delta_->base.checksum())};
    deleted_.assign(keys.begin(), keys.end());
    std::sort(deleted_.begin(), deleted_.end());
    for (std::size_t i = 0; i < deleted_.size(); ++i) {
        const auto item = delta_->base.find(ItemKey::from_packed(deleted_[i]));
        if (!item || (i > 0 && deleted_[i] == deleted_[i - 1])) {
            return std::nullopt;
        }
        place.sum -= sum_of(delta_->base[*item].data);
    }
    return place;
}

std::optional<std::size_t> DeltaReader::size_of(ItemKey key, std::size_t& at) const {
    const auto ints = delta_->ints;
    std::size_t size = snapshot::agreed_size(key.type, sizes_);
    if (size == 0) {
        if (at == ints.size() || ints[at] < 0) {
            return std::nullopt;
        }
        size = static_cast<std::size_t>(ints[at++]);
    }
    constexpr std::size_t kUuidInts = 4;
    if (size > ints.size() - at || (key.type == snapshot::kDescriptorType && size != kUuidInts)) {
        return std::nullopt;
    }
    return size;
}

bool DeltaReader::subtract_cost_once(std::uint16_t what, int price, int& cost) {
    if (std::find(charged_.begin(), charged_.end(), what) != charged_.end()) {
        return true;
    }
    charged_.push_back(what);
    cost -= price;
    return cost >= 0;
}

bool DeltaReader::subtract_cost(ItemKey key, int& cost) {
    if (key.type >= kNumberedTypes) {
        return types_->contains(key.type) || subtract_cost_once(key.type, 1, cost);
    }
    // If other ints are misread as a key, the id in it most often looks like the number of a UUID
    // type.
    const bool odd_id = key.type != snapshot::kDescriptorType && key.id >= snapshot::kFirstUuidType;
    return (!odd_id || subtract_cost_once(key.type | kOddId, kOddIdCost, cost)) &&
           (!types_->is_never_sent(key.type) || subtract_cost_once(key.type, 1, cost));
}

DeltaReader::ReadResult DeltaReader::read_update(ReadPosition& place, int& cost) {
    const auto ints = delta_->ints;
    if (ints.size() - place.at < 2 * static_cast<std::size_t>(place.num_left)) {
        return ReadResult::misfit;
    }
    const std::int32_t type = ints[place.at];
    const std::int32_t id = ints[place.at + 1];
    if (type < 0 || type > snapshot::kMaxItemType || id < 0 || id > snapshot::kMaxItemId ||
        (type == snapshot::kDescriptorType &&
         (id < snapshot::kFirstUuidType || id > snapshot::kMaxItemType))) {
        return ReadResult::misfit;
    }
    const ItemKey key{static_cast<std::uint16_t>(type), static_cast<std::uint16_t>(id)};
    if (key.type < kNumberedTypes && !decided_.test(key.type)) {
        return ReadResult::undecided;
    }
    if (types_ != nullptr && !subtract_cost(key, cost)) {
        return ReadResult::misfit;
    }
    std::size_t at = place.at + 2;
    const auto size = size_of(key, at);
    if (!size || !keys_.add(key.packed()) ||
        std::binary_search(deleted_.begin(), deleted_.end(), key.packed())) {
        return ReadResult::misfit;
    }
    if (const auto item = delta_->base.find(key);
        item && delta_->base[*item].data.size() != *size) {
        return ReadResult::misfit;
    }
    seen_.count_item(key);
    place = {.at = at + *size,
             .num_left = place.num_left - 1,
             .sum = place.sum + sum_of(ints.subspan(at, *size))};
    return ReadResult::read;
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as there are numbered types
void DeltaReader::read_updates(ReadPosition place, int cost) {
    const std::size_t keys = keys_.count();
    const std::size_t odd = charged_.size();
    ReadResult step = ReadResult::read;
    while (place.num_left > 0 && step == ReadResult::read) {
        if (budget_ != nullptr && !budget_->spend()) {
            step = ReadResult::misfit;
            break;
        }
        const ReadPosition before = place;
        step = read_update(place, cost);
        if (step == ReadResult::undecided) {
            try_sizes(before, static_cast<std::uint16_t>(delta_->ints[before.at]), cost);
        }
    }
    if (step == ReadResult::read && place.at == delta_->ints.size() &&
        place.sum == static_cast<std::uint32_t>(delta_->crc)) {
        found_.push_back(sizes_);
    }
    keys_.remove_keys_after(keys);
    charged_.resize(odd);
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as there are numbered types
void DeltaReader::try_sizes(ReadPosition place, std::uint16_t type, int cost) {
    const std::uint8_t agreed = sizes_[type];
    const bool known = agreed != 0 || types_->contains(type);
    // NOLINTNEXTLINE(misc-no-recursion): as above
    const auto attempt = [&](std::uint8_t size, int price) {
        if (price <= cost && found_.size() < kMaxSizesFound) {
            sizes_[type] = size;
            read_updates(place, cost - price);
        }
    };
    decided_.set(type);
    attempt(agreed, known ? 0 : 1);
    const int largest = agreed == 0 ? kMaxNewSize : kMaxChange;
    for (int change = 1; change <= largest; ++change) {
        attempt(static_cast<std::uint8_t>(agreed + change), agreed == 0 ? kWrittenCost : 1);
        if (change < agreed) {
            attempt(static_cast<std::uint8_t>(agreed - change), 1);
        }
    }
    if (agreed != 0) {
        attempt(0, kWrittenCost);
    }
    sizes_[type] = agreed;
    decided_.reset(type);
}

} // namespace

void SearchBudget::begin_search(std::int64_t time, std::int64_t most) {
    constexpr std::int64_t kSecond = 1'000'000'000;
    const std::int64_t passed = std::clamp<std::int64_t>(time_ ? time - *time_ : 0, 0, kSecond);
    time_ = time;
    saved_ = std::min(saved_ + passed / (kSecond / kItemsPerSecond), kItemsPerSecond);
    granted_ = std::min({saved_, kItemsPerSearch, std::max<std::int64_t>(most, 0)});
    left_ = granted_;
}

std::int64_t SearchBudget::limit_remaining_items(std::int64_t most) {
    const std::int64_t rest = std::max<std::int64_t>(left_ - most, 0);
    left_ -= rest;
    return rest;
}

std::int64_t SearchBudget::end_search() {
    const std::int64_t taken = granted_ - std::max<std::int64_t>(left_, 0);
    saved_ -= taken;
    granted_ = 0;
    left_ = 0;
    return taken;
}

snapshot::Snapshot snapshot_from_delta(const DeltaInts& delta, const AgreedSizes& sizes) {
    snapshot::Delta decoded;
    decoded.ints.assign(delta.ints.begin(), delta.ints.end());
    const auto deleted = static_cast<std::size_t>(delta.ints[0]);
    decoded.deleted = std::span{decoded.ints}.subspan(snapshot::kDeltaHeaderInts, deleted);
    std::size_t at = snapshot::kDeltaHeaderInts + deleted;
    for (std::int32_t num_left = delta.ints[1]; num_left > 0; --num_left) {
        if (const auto update = snapshot::decode_update(decoded.ints, at, sizes)) {
            decoded.updates.push_back(*update);
        }
    }
    snapshot::Snapshot made;
    snapshot::DeltaWarnings warnings;
    static_cast<void>(snapshot::apply_delta(delta.base, decoded, made, warnings));
    return made;
}

std::optional<TypeCounts> count_types_if_valid(const DeltaInts& delta, const AgreedSizes& sizes) {
    DeltaReader reader{delta, sizes};
    reader.find_fitting_sizes(0, nullptr);
    return reader.found().empty() ? std::nullopt : std::optional{reader.seen()};
}

std::vector<AgreedSizes> find_sizes(const DeltaInts& delta, const KnownSizes& known,
                                    SearchBudget& budget) {
    const KnownTypes types{delta, known};
    DeltaReader reader{delta, known, types};
    int cost = 1;
    for (; cost <= kMaxCost; ++cost) {
        reader.find_fitting_sizes(cost, &budget);
        if (!reader.found().empty() || !budget.spend()) {
            break;
        }
    }
    std::vector<AgreedSizes> found = std::move(reader.found());
    if (found.empty() || !delta.base.empty()) {
        return found;
    }
    const std::int64_t rest = budget.limit_remaining_items(SearchBudget::kItemsPerRivalSearch);
    reader.find_fitting_sizes(cost + 1, &budget);
    budget.return_unread_items(rest);
    for (const AgreedSizes& rival : reader.found()) {
        if (found.size() < kMaxSizesFound && std::ranges::find(found, rival) == found.end()) {
            found.push_back(rival);
        }
    }
    return found;
}

} // namespace tw::inspect
