#include "map/uuid_items.h"

#include "map/map.h"

#include <algorithm>
#include <string_view>

namespace tw::map {
namespace {

constexpr std::size_t kUuidInts = 4;

Uuid decode_uuid(std::span<const std::int32_t> ints) {
    Uuid uuid{};
    for (std::size_t i = 0; i < uuid.size(); ++i) {
        const auto value = static_cast<std::uint32_t>(ints[i / 4]);
        uuid.at(i) = static_cast<std::uint8_t>(value >> (24U - 8U * (i % 4)));
    }
    return uuid;
}

} // namespace

std::string to_text(const Uuid& uuid) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    for (std::size_t i = 0; i < uuid.size(); ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            text.push_back('-');
        }
        text.push_back(kDigits[uuid.at(i) >> 4U]);
        text.push_back(kDigits[uuid.at(i) & 15U]);
    }
    return text;
}

std::vector<UuidType> uuid_types(const Datafile& file) {
    std::vector<UuidType> types;
    std::vector<bool> seen(std::size_t{0xffff} + 1);
    const auto range = file.find_type(kItemUuidIndex);
    for (std::size_t i = 0; range && i < range->num; ++i) {
        const ItemView item = file.item(range->start + i);
        if (item.ints.size() >= kUuidInts && !seen[item.id]) {
            seen[item.id] = true;
            types.push_back({item.id, decode_uuid(item.ints)});
        }
    }
    return types;
}

std::optional<std::uint16_t> find_uuid_type(const Datafile& file, const Uuid& uuid) {
    const auto types = uuid_types(file);
    const auto found = std::find_if(types.begin(), types.end(),
                                    [&uuid](const UuidType& type) { return type.uuid == uuid; });
    return found == types.end() ? std::nullopt : std::optional{found->type};
}

std::optional<ItemView> find_uuid_item(const Datafile& file, const Uuid& uuid, std::int64_t index) {
    const auto type = find_uuid_type(file, uuid);
    return type ? file.find_item(*type, index) : std::nullopt;
}

std::vector<Automapper> read_automappers(const Datafile& file) {
    std::vector<Automapper> found;
    const auto type = find_uuid_type(file, kUuidAutomapper);
    const auto range = type ? file.find_type(*type) : std::nullopt;
    for (std::size_t i = 0; range && i < range->num; ++i) {
        const auto ints = file.item(range->start + i).ints;
        if (ints.size() >= 6) {
            found.push_back({ints[0], ints[1], ints[2], ints[3], ints[4], (ints[5] & 1) != 0});
        }
    }
    return found;
}

std::vector<GroupExtra> read_group_extras(const Datafile& file) {
    std::vector<GroupExtra> found;
    const auto type = find_uuid_type(file, kUuidGroup);
    const auto range = type ? file.find_type(*type) : std::nullopt;
    for (std::size_t i = 0; range && i < range->num; ++i) {
        const auto ints = file.item(range->start + i).ints;
        if (ints.size() >= 2) {
            found.push_back({ints[0], ints[1]});
        }
    }
    return found;
}

} // namespace tw::map
