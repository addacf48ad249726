#include "snapshot/objects.h"

#include <algorithm>
#include <functional>

namespace tw::snapshot {

namespace {

constexpr std::uint16_t kSevenTypes = 24; ///< number of 0.7 objects, at the end of the table
constexpr std::size_t kProjectileVelY = 3;
// A bit of a projectile's vel_y. DDNet sets it if the item has the layout of a DDNet projectile
// ("is_ddnet" of legacyprojectileflag). In a plain projectile, vel_y is at most 100, so a positive
// vel_y never has this bit.
constexpr std::int32_t kDdnetLayoutBit = 1 << 9;
constexpr PositionSpec kDdnetLayoutPosition{.x = 0, .y = 1, .per_unit = 100};

bool has_ddnet_layout(const ObjectSpec& object, std::span<const std::int32_t> data) {
    return object.type == kProjectileType && data.size() > kProjectileVelY &&
           data[kProjectileVelY] >= 0 && (data[kProjectileVelY] & kDdnetLayoutBit) != 0;
}

} // namespace

std::optional<std::string_view> NameTable::find(std::int32_t value) const {
    if (flags) {
        return std::nullopt;
    }
    const auto named = std::find_if(values.begin(), values.end(), [value](const NamedValue& each) {
        return each.value == value;
    });
    return named == values.end() ? std::nullopt : std::optional{named->name};
}

const ObjectSpec* find_object(std::uint16_t type, Dialect dialect) {
    const auto table = object_table();
    if (dialect == Dialect::six) {
        return agreed_size(type, kAgreedSizes) == 0 ? nullptr : &table[type - 1U];
    }
    return type == 0 || type > kSevenTypes ? nullptr
                                           : &table[table.size() - kSevenTypes + type - 1U];
}

const ObjectSpec* find_object(const Uuid& uuid) {
    const auto table = object_table();
    const auto found = std::find_if(table.begin(), table.end(), [&](const ObjectSpec& object) {
        return object.type == 0 && object.uuid == uuid;
    });
    return found == table.end() ? nullptr : &*found;
}

std::optional<PositionSpec> position_of(const ObjectSpec& object,
                                        std::span<const std::int32_t> data) {
    if (!object.position || std::max(object.position->x, object.position->y) >= data.size()) {
        return std::nullopt;
    }
    return has_ddnet_layout(object, data) ? kDdnetLayoutPosition : *object.position;
}

std::optional<std::uint16_t> client_of(const ObjectSpec& object, ItemKey key,
                                       std::span<const std::int32_t> data) {
    if (!object.client) {
        return std::nullopt;
    }
    if (!object.client->field) {
        return key.id;
    }
    const std::size_t field = *object.client->field;
    if (field >= data.size() || data[field] < 0 || data[field] > kMaxItemId) {
        return std::nullopt;
    }
    return static_cast<std::uint16_t>(data[field]);
}

std::optional<Uuid> descriptor_uuid(std::span<const std::int32_t> data) {
    Uuid uuid{};
    if (data.size() < uuid.size() / 4) {
        return std::nullopt;
    }
    for (std::size_t i = 0; i < uuid.size(); ++i) {
        const auto bits = static_cast<std::uint32_t>(data[i / 4]);
        uuid[i] = static_cast<std::uint8_t>(bits >> (24U - 8U * (i % 4)));
    }
    return uuid;
}

void encode_int_string(std::string_view text, std::span<std::int32_t> ints) {
    for (std::size_t i = 0; i < ints.size(); ++i) {
        std::uint32_t bits = 0;
        for (std::size_t at = kIntStringBytes * i; at < kIntStringBytes * (i + 1); ++at) {
            const auto byte = at < text.size() ? static_cast<std::uint8_t>(text[at]) : 0U;
            bits = bits << 8U | (byte ^ 0x80U);
        }
        ints[i] = static_cast<std::int32_t>(bits);
    }
    // The last byte ends the text. It is 0, whereas a 0 in the text is stored as 128.
    if (!ints.empty()) {
        ints.back() = static_cast<std::int32_t>(static_cast<std::uint32_t>(ints.back()) & ~0xFFU);
    }
}

std::size_t decode_int_string(std::span<const std::int32_t> ints, std::span<char> out) {
    // The last byte ends the text and does not belong to it.
    const std::size_t size = ints.empty() ? 0 : std::min(4 * ints.size() - 1, out.size());
    for (std::size_t i = 0; i < size; ++i) {
        const auto bits = static_cast<std::uint32_t>(ints[i / 4]);
        const auto byte = static_cast<std::uint8_t>(bits >> (24U - 8U * (i % 4)) ^ 0x80U);
        if (byte == 0) {
            return i;
        }
        out[i] = static_cast<char>(byte);
    }
    return size;
}

std::array<char, 36> format_uuid(const Uuid& uuid) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::array<char, 36> text{};
    std::size_t at = 0;
    for (std::size_t i = 0; i < uuid.size(); ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            text[at++] = '-';
        }
        text[at++] = kDigits[uuid[i] / 16U];
        text[at++] = kDigits[uuid[i] % 16U];
    }
    return text;
}

ObjectSet::ObjectSet() {
    custom_.reserve(kMaxCustom);
}

const ObjectSet& ObjectSet::standard() {
    static const ObjectSet set;
    return set;
}

const ObjectSpec* ObjectSet::find(std::uint16_t type, Dialect dialect) const {
    const auto found = std::find_if(custom_.begin(), custom_.end(), [&](const ObjectSpec& spec) {
        return type != 0 && spec.type == type && spec.dialect == dialect;
    });
    return found == custom_.end() ? find_object(type, dialect) : &*found;
}

const ObjectSpec* ObjectSet::find(const Uuid& uuid) const {
    const auto found = std::find_if(custom_.begin(), custom_.end(), [&](const ObjectSpec& spec) {
        return spec.type == 0 && spec.uuid == uuid;
    });
    return found == custom_.end() ? find_object(uuid) : &*found;
}

std::size_t ObjectSet::index_of(const ObjectSpec& spec) const {
    const auto table = object_table();
    // std::less is defined for pointers to elements of different arrays; `<` is not.
    const std::less<const ObjectSpec*> before;
    if (!before(&spec, table.data()) && before(&spec, table.data() + table.size())) {
        return static_cast<std::size_t>(&spec - table.data());
    }
    return table.size() + static_cast<std::size_t>(&spec - custom_.data());
}

bool ObjectSet::add(const ObjectSpec& object, bool is_size_agreed) {
    const bool numbered = object.type != 0;
    const ObjectSpec* const found =
        numbered ? find(object.type, object.dialect) : find(object.uuid);
    const ObjectSpec* const known =
        numbered ? find_object(object.type, object.dialect) : find_object(object.uuid);
    AgreedSizes& sizes = sizes_[static_cast<std::size_t>(object.dialect)];
    if (found != known || object.type >= kFirstUuidType || custom_.size() == kMaxCustom ||
        (is_size_agreed && (!numbered || object.type >= sizes.size()))) {
        return false;
    }
    custom_.push_back(object);
    if (numbered && object.type < sizes.size()) {
        sizes[object.type] = is_size_agreed ? object.size : 0;
    }
    return true;
}

} // namespace tw::snapshot
