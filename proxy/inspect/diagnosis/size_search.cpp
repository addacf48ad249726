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
constexpr int kMaxSizeChange = 12;
/// The largest size in ints that is tried for an unknown type.
constexpr int kMaxUnknownTypeSize = 24;
/// The highest cost of an explanation. An unknown type or a type with a changed size costs one.
constexpr int kMaxExplanationCost = 20;
/// The cost of a type with an agreed size whose size deltas contain, or of a type without an agreed
/// size whose size deltas omit. A changed size costs less, because it is likelier.
constexpr int kSizeInDeltaCost = 2;
/// Numbered types that are only parts of other objects and messages, and never sent as items.
constexpr std::array<std::string_view, 3> kNeverSentTypes{"player_input", "character_core",
                                                          "common"};
/// Marks an entry of `charged_types_` as the cost of an unusual id. An id is unusual if it could be
/// the number of a UUID type.
constexpr std::uint16_t kUnusualIdBit = 0x8000;
constexpr int kUnusualIdCost = 2;
static_assert(kUnusualIdBit > snapshot::kMaxItemType);

/// The keys of the items read so far, in order. Keys can be removed from the end.
class SeenKeys {
  public:
    SeenKeys() { slots_.fill(kFree); }

    [[nodiscard]] std::size_t num_keys() const { return used_slots_.size(); }

    /// Returns false if the key was read before.
    [[nodiscard]] bool add_key_if_new(std::uint32_t key) {
        std::size_t slot = key * 2654435761U >> 20U; // Knuth's multiplicative hash, to 12 bits
        while (slots_[slot] != kFree) {
            if (slots_[slot] == key) {
                return false;
            }
            slot = (slot + 1) % kSlots;
        }
        slots_[slot] = key;
        used_slots_.push_back(static_cast<std::uint16_t>(slot));
        return true;
    }

    void remove_keys_after(std::size_t count) {
        for (; used_slots_.size() > count; used_slots_.pop_back()) {
            slots_[used_slots_.back()] = kFree;
        }
    }

  private:
    static constexpr std::size_t kSlots = 4096; // four times kMaxItems
    static constexpr std::uint32_t kFree = std::numeric_limits<std::uint32_t>::max();

    std::array<std::uint32_t, kSlots> slots_{};
    std::vector<std::uint16_t> used_slots_;
};

/// The types that a search may use without extra cost.
class PlausibleTypes {
  public:
    PlausibleTypes(const DeltaWithUnknownSizes& delta, const KnownSizes& known)
        : item_types_{known.item_types} {
        for (std::uint16_t type = 0; type < kNumberedTypes; ++type) {
            plausible_types_[type] = type == 0 || known.sizes[type] != 0;
        }
        for (const std::uint32_t key : delta.base.keys()) {
            plausible_types_.set(ItemKey::from_packed(key).type);
        }
        const auto dialect =
            item_types_ == nullptr ? snapshot::Dialect::six : item_types_->dialect();
        for (const snapshot::ObjectSpec& object : snapshot::object_table()) {
            if (object.dialect == dialect && object.type < kNumberedTypes) {
                never_sent_types_[object.type] =
                    std::ranges::find(kNeverSentTypes, object.name) != kNeverSentTypes.end();
            }
        }
        // Descriptor items define the UUID types of this snapshot. All ints are searched for them,
        // because their positions in the delta are not known yet.
        constexpr std::int32_t kUuidInts = 4;
        const auto ints = delta.ints;
        for (std::size_t i = 0; i + 2 < ints.size(); ++i) {
            if (ints[i] == 0 && ints[i + 1] >= snapshot::kFirstUuidType &&
                ints[i + 1] <= snapshot::kMaxItemType && ints[i + 2] == kUuidInts) {
                plausible_types_.set(static_cast<std::size_t>(ints[i + 1]));
            }
        }
    }

    /// Whether this is a numbered type that no server sends.
    [[nodiscard]] bool is_never_sent(std::uint16_t type) const {
        return never_sent_types_.test(type);
    }

    [[nodiscard]] bool contains(std::uint16_t type) const {
        return plausible_types_.test(type) ||
               (item_types_ != nullptr &&
                (item_types_->find(type) != nullptr || item_types_->object(type) != nullptr));
    }

  private:
    const record::ItemTypes* item_types_;
    NumberedTypeSet never_sent_types_;
    std::bitset<snapshot::kMaxItemType + 1> plausible_types_;
};

/// Reads a delta and finds item sizes that fit: at the first item of each type, it tries each
/// possible size of the type and reads on until an error.
class FittingSizeFinder {
  public:
    FittingSizeFinder(const DeltaWithUnknownSizes& delta, const AgreedSizes& sizes)
        : delta_{&delta}, sizes_{sizes} {
        decided_types_.set();
    }

    FittingSizeFinder(const DeltaWithUnknownSizes& delta, const KnownSizes& known,
                      const PlausibleTypes& types)
        : delta_{&delta}, plausible_types_{&types}, sizes_{known.sizes}, decided_types_{
                                                                             known.certain_types} {}

    /// Finds all sets of sizes that fit and have at most this cost. `budget`: null if only the
    /// known sizes are tried.
    void find_fitting_sizes(int cost, SearchBudget* budget) {
        found_sizes_.clear();
        search_budget_ = budget;
        if (const auto begin = read_delta_header()) {
            read_keys_.remove_keys_after(0);
            read_updates(*begin, cost);
        }
    }

    [[nodiscard]] std::vector<AgreedSizes>& found_sizes() { return found_sizes_; }

    [[nodiscard]] const ItemTypeCounts& seen_types() const { return seen_types_; }

  private:
    struct ReadPosition {
        std::size_t next_int = 0;          ///< index of the next int
        std::int32_t num_updates_left = 0; ///< number of updates left
        std::uint32_t sum = 0;             ///< wrapping sum of the snapshot's ints so far
    };

    enum class ReadResult : std::uint8_t { read, misfit, undecided };

    /// Subtracts the cost of an unusual item from `cost`, the remaining cost that an explanation
    /// may have. Returns false if `cost` was too low.
    [[nodiscard]] bool subtract_cost(ItemKey key, int& cost);
    /// Subtracts `price` from `cost` and adds `what` to `charged_types_`, unless `charged_types_`
    /// contains `what`.
    [[nodiscard]] bool subtract_cost_once(std::uint16_t what, int price, int& cost);

    /// Returns the position after the deleted keys; nullopt if the delta's header is invalid.
    [[nodiscard]] std::optional<ReadPosition> read_delta_header();
    void read_updates(ReadPosition place, int cost);
    [[nodiscard]] ReadResult read_update(ReadPosition& place, int& cost);
    /// Returns the size of the current item in ints; nullopt if the delta ends before the size.
    [[nodiscard]] std::optional<std::size_t> read_item_size(ItemKey key, std::size_t& at) const;
    void try_sizes(ReadPosition place, std::uint16_t type, int cost);

    const DeltaWithUnknownSizes* delta_;
    /// Null if all types are allowed without a cost.
    const PlausibleTypes* plausible_types_ = nullptr;
    AgreedSizes sizes_;
    NumberedTypeSet decided_types_;
    SearchBudget* search_budget_ = nullptr;
    std::vector<std::uint32_t> deleted_keys_;  ///< keys of the deleted items, sorted
    std::vector<std::uint16_t> charged_types_; ///< types whose cost was subtracted already
    SeenKeys read_keys_;
    ItemTypeCounts seen_types_;
    std::vector<AgreedSizes> found_sizes_;
};

std::uint32_t wrapping_sum_of_ints(std::span<const std::int32_t> ints) {
    std::uint32_t sum = 0;
    for (const std::int32_t value : ints) {
        sum += static_cast<std::uint32_t>(value);
    }
    return sum;
}

std::optional<FittingSizeFinder::ReadPosition> FittingSizeFinder::read_delta_header() {
    const auto ints = delta_->ints;
    if (ints.size() < snapshot::kDeltaHeaderInts || ints[0] < 0 || ints[1] < 0 ||
        static_cast<std::size_t>(ints[0]) > ints.size() - snapshot::kDeltaHeaderInts ||
        static_cast<std::size_t>(ints[1]) > snapshot::kMaxItems) {
        return std::nullopt;
    }
    const auto keys = ints.subspan(snapshot::kDeltaHeaderInts, static_cast<std::size_t>(ints[0]));
    ReadPosition place{.next_int = snapshot::kDeltaHeaderInts + keys.size(),
                       .num_updates_left = ints[1],
                       .sum = static_cast<std::uint32_t>(delta_->base.checksum())};
    deleted_keys_.assign(keys.begin(), keys.end());
    std::ranges::sort(deleted_keys_);
    for (std::size_t i = 0; i < deleted_keys_.size(); ++i) {
        const auto item = delta_->base.find(ItemKey::from_packed(deleted_keys_[i]));
        if (!item || (i > 0 && deleted_keys_[i] == deleted_keys_[i - 1])) {
            return std::nullopt;
        }
        place.sum -= wrapping_sum_of_ints(delta_->base[*item].data);
    }
    return place;
}

std::optional<std::size_t> FittingSizeFinder::read_item_size(ItemKey key, std::size_t& at) const {
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

bool FittingSizeFinder::subtract_cost_once(std::uint16_t what, int price, int& cost) {
    if (std::ranges::find(charged_types_, what) != charged_types_.end()) {
        return true;
    }
    charged_types_.push_back(what);
    cost -= price;
    return cost >= 0;
}

bool FittingSizeFinder::subtract_cost(ItemKey key, int& cost) {
    if (key.type >= kNumberedTypes) {
        return plausible_types_->contains(key.type) || subtract_cost_once(key.type, 1, cost);
    }
    // If other ints are misread as a key, its id most often looks like the number of a UUID type.
    const bool odd_id = key.type != snapshot::kDescriptorType && key.id >= snapshot::kFirstUuidType;
    return (!odd_id || subtract_cost_once(key.type | kUnusualIdBit, kUnusualIdCost, cost)) &&
           (!plausible_types_->is_never_sent(key.type) || subtract_cost_once(key.type, 1, cost));
}

FittingSizeFinder::ReadResult FittingSizeFinder::read_update(ReadPosition& place, int& cost) {
    const auto ints = delta_->ints;
    if (ints.size() - place.next_int < 2 * static_cast<std::size_t>(place.num_updates_left)) {
        return ReadResult::misfit;
    }
    const std::int32_t type = ints[place.next_int];
    const std::int32_t id = ints[place.next_int + 1];
    if (type < 0 || type > snapshot::kMaxItemType || id < 0 || id > snapshot::kMaxItemId ||
        (type == snapshot::kDescriptorType &&
         (id < snapshot::kFirstUuidType || id > snapshot::kMaxItemType))) {
        return ReadResult::misfit;
    }
    const ItemKey key{static_cast<std::uint16_t>(type), static_cast<std::uint16_t>(id)};
    if (key.type < kNumberedTypes && !decided_types_.test(key.type)) {
        return ReadResult::undecided;
    }
    if (plausible_types_ != nullptr && !subtract_cost(key, cost)) {
        return ReadResult::misfit;
    }
    std::size_t at = place.next_int + 2;
    const auto size = read_item_size(key, at);
    if (!size || !read_keys_.add_key_if_new(key.packed()) ||
        std::ranges::binary_search(deleted_keys_, key.packed())) {
        return ReadResult::misfit;
    }
    if (const auto item = delta_->base.find(key);
        item && delta_->base[*item].data.size() != *size) {
        return ReadResult::misfit;
    }
    seen_types_.count_item(key);
    place = {.next_int = at + *size,
             .num_updates_left = place.num_updates_left - 1,
             .sum = place.sum + wrapping_sum_of_ints(ints.subspan(at, *size))};
    return ReadResult::read;
}

// NOLINTNEXTLINE(misc-no-recursion): one level for each numbered type
void FittingSizeFinder::read_updates(ReadPosition place, int cost) {
    const std::size_t keys = read_keys_.num_keys();
    const std::size_t odd = charged_types_.size();
    ReadResult step = ReadResult::read;
    while (place.num_updates_left > 0 && step == ReadResult::read) {
        if (search_budget_ != nullptr && !search_budget_->spend_items()) {
            step = ReadResult::misfit;
            break;
        }
        const ReadPosition before = place;
        step = read_update(place, cost);
        if (step == ReadResult::undecided) {
            try_sizes(before, static_cast<std::uint16_t>(delta_->ints[before.next_int]), cost);
        }
    }
    if (step == ReadResult::read && place.next_int == delta_->ints.size() &&
        place.sum == static_cast<std::uint32_t>(delta_->crc)) {
        found_sizes_.push_back(sizes_);
    }
    read_keys_.remove_keys_after(keys);
    charged_types_.resize(odd);
}

// NOLINTNEXTLINE(misc-no-recursion): one level for each numbered type
void FittingSizeFinder::try_sizes(ReadPosition place, std::uint16_t type, int cost) {
    const std::uint8_t agreed = sizes_[type];
    const bool known = agreed != 0 || plausible_types_->contains(type);
    // NOLINTNEXTLINE(misc-no-recursion): as above
    const auto attempt = [&](std::uint8_t size, int price) {
        if (price <= cost && found_sizes_.size() < kMaxSizeSolutions) {
            sizes_[type] = size;
            read_updates(place, cost - price);
        }
    };
    decided_types_.set(type);
    attempt(agreed, known ? 0 : 1);
    const int largest = agreed == 0 ? kMaxUnknownTypeSize : kMaxSizeChange;
    for (int change = 1; change <= largest; ++change) {
        attempt(static_cast<std::uint8_t>(agreed + change), agreed == 0 ? kSizeInDeltaCost : 1);
        if (change < agreed) {
            attempt(static_cast<std::uint8_t>(agreed - change), 1);
        }
    }
    if (agreed != 0) {
        attempt(0, kSizeInDeltaCost);
    }
    sizes_[type] = agreed;
    decided_types_.reset(type);
}

} // namespace

void SearchBudget::begin_search(std::int64_t time, std::int64_t most) {
    constexpr std::int64_t kSecond = 1'000'000'000;
    const std::int64_t passed =
        std::clamp<std::int64_t>(last_search_time_ ? time - *last_search_time_ : 0, 0, kSecond);
    last_search_time_ = time;
    available_items_ =
        std::min(available_items_ + passed / (kSecond / kItemsPerSecond), kItemsPerSecond);
    items_at_search_start_ =
        std::min({available_items_, kItemsPerSearch, std::max<std::int64_t>(most, 0)});
    items_left_ = items_at_search_start_;
}

std::int64_t SearchBudget::limit_remaining_items(std::int64_t most) {
    const std::int64_t rest = std::max<std::int64_t>(items_left_ - most, 0);
    items_left_ -= rest;
    return rest;
}

std::int64_t SearchBudget::end_search() {
    const std::int64_t taken = items_at_search_start_ - std::max<std::int64_t>(items_left_, 0);
    available_items_ -= taken;
    items_at_search_start_ = 0;
    items_left_ = 0;
    return taken;
}

snapshot::Snapshot apply_delta_with_sizes(const DeltaWithUnknownSizes& delta,
                                          const AgreedSizes& sizes) {
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

std::optional<ItemTypeCounts> count_types_if_sizes_fit(const DeltaWithUnknownSizes& delta,
                                                       const AgreedSizes& sizes) {
    FittingSizeFinder reader{delta, sizes};
    reader.find_fitting_sizes(0, nullptr);
    return reader.found_sizes().empty() ? std::nullopt : std::optional{reader.seen_types()};
}

std::vector<AgreedSizes> find_item_sizes(const DeltaWithUnknownSizes& delta,
                                         const KnownSizes& known, SearchBudget& budget) {
    const PlausibleTypes types{delta, known};
    FittingSizeFinder reader{delta, known, types};
    int cost = 1;
    for (; cost <= kMaxExplanationCost; ++cost) {
        reader.find_fitting_sizes(cost, &budget);
        if (!reader.found_sizes().empty() || !budget.spend_items()) {
            break;
        }
    }
    std::vector<AgreedSizes> found = std::move(reader.found_sizes());
    if (found.empty() || !delta.base.empty()) {
        return found;
    }
    const std::int64_t rest = budget.limit_remaining_items(SearchBudget::kItemsPerRivalSearch);
    reader.find_fitting_sizes(cost + 1, &budget);
    budget.return_unread_items(rest);
    for (const AgreedSizes& rival : reader.found_sizes()) {
        if (found.size() < kMaxSizeSolutions && std::ranges::find(found, rival) == found.end()) {
            found.push_back(rival);
        }
    }
    return found;
}

} // namespace tw::inspect
