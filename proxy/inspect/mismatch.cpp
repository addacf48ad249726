#include "proxy/inspect/mismatch.h"

#include "snapshot/varint.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <numeric>

namespace tw::inspect {

namespace {

using snapshot::DeltaUpdate;

/// Sum of an item as this update alone would make it, wrapping.
std::uint32_t update_sum(const Mismatch& mismatch, const DeltaUpdate& update) {
    std::uint32_t sum = 0;
    for (std::uint32_t i = 0; i < update.size; ++i) {
        sum += static_cast<std::uint32_t>(mismatch.delta->ints[update.begin + i]);
    }
    if (const auto index = mismatch.base.find(update.key)) {
        for (const std::int32_t value : mismatch.base[*index].data) {
            sum += static_cast<std::uint32_t>(value);
        }
    }
    return sum;
}

std::optional<MismatchCause> second_item(const Mismatch& mismatch) {
    const auto missing =
        static_cast<std::uint32_t>(mismatch.wanted) - static_cast<std::uint32_t>(mismatch.got);
    for (const snapshot::DeltaWarningAt& warning : mismatch.warnings->list()) {
        if (warning.kind != snapshot::DeltaWarning::duplicate_update) {
            continue;
        }
        for (const DeltaUpdate& update : mismatch.delta->updates) {
            if (update.key == warning.key && update_sum(mismatch, update) == missing) {
                return MismatchCause{"duplicate_update",
                                     "the server's snapshot contained this item twice; the sum of "
                                     "the lost one is exactly the difference",
                                     update.key, update.begin};
            }
        }
    }
    if (mismatch.warnings->count != 0) {
        const snapshot::DeltaWarningAt& first = mismatch.warnings->list().front();
        return MismatchCause{"odd_delta",
                             "the delta treats this item oddly; see the earlier findings",
                             first.key, first.int_index};
    }
    return std::nullopt;
}

/// Whether flipping one bit of a varint's encoding turns one value into the other.
bool one_bit_apart(std::int32_t from, std::int32_t to) {
    std::array<std::byte, snapshot::kMaxVarintBytes> bytes{};
    std::vector<std::byte> encoded;
    snapshot::encode_varint(from, encoded);
    std::memcpy(bytes.data(), encoded.data(), encoded.size());
    for (std::size_t bit = 0; bit < encoded.size() * 8; ++bit) {
        if (bit % 8 == 7) {
            continue; // the extend bit changes what follows, too
        }
        auto flipped = bytes;
        flipped[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
        std::int32_t value = 0;
        if (snapshot::decode_varint(flipped.data(), encoded.size(), value) == encoded.size() &&
            value == to) {
            return true;
        }
    }
    return false;
}

/// How much closer to the last right snapshot a value would be without the damage.
std::int64_t improvement(const Mismatch& mismatch, const DeltaUpdate& update, std::uint32_t field,
                         std::int32_t excess) {
    const auto result = mismatch.result.find(update.key);
    if (!result) {
        return 0;
    }
    const std::int32_t now = mismatch.result[*result].data[field];
    const auto mended = static_cast<std::int32_t>(static_cast<std::uint32_t>(now) -
                                                  static_cast<std::uint32_t>(excess));
    std::int64_t before = 0;
    if (const auto index = mismatch.previous.find(update.key);
        index && field < mismatch.previous[*index].data.size()) {
        before = mismatch.previous[*index].data[field];
    }
    return std::llabs(now - before) - std::llabs(mended - before);
}

std::optional<MismatchCause> damaged_value(const Mismatch& mismatch) {
    const auto excess = static_cast<std::int32_t>(static_cast<std::uint32_t>(mismatch.got) -
                                                  static_cast<std::uint32_t>(mismatch.wanted));
    std::optional<MismatchCause> best;
    std::int64_t best_gain = 0;
    for (const DeltaUpdate& update : mismatch.delta->updates) {
        for (std::uint32_t i = 0; i < update.size; ++i) {
            const std::int32_t value = mismatch.delta->ints[update.begin + i];
            const auto mended = static_cast<std::int32_t>(static_cast<std::uint32_t>(value) -
                                                          static_cast<std::uint32_t>(excess));
            const std::int64_t gain = improvement(mismatch, update, i, excess);
            if ((!best || gain > best_gain) && one_bit_apart(value, mended)) {
                best_gain = gain;
                best =
                    MismatchCause{"damaged_value",
                                  "one flipped bit in this value explains the difference exactly",
                                  update.key, update.begin + i};
            }
        }
    }
    return best;
}

} // namespace

MismatchCause explain_mismatch(const Mismatch& mismatch) {
    if (const auto cause = second_item(mismatch)) {
        return *cause;
    }
    if (const auto cause = damaged_value(mismatch)) {
        return *cause;
    }
    return {
        "unknown",
        "no single update explains the difference: an item was added, lost or changed where the "
        "delta says nothing",
        std::nullopt, std::nullopt};
}

} // namespace tw::inspect
