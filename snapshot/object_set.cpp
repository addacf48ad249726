#include "snapshot/object_set.h"

#include <algorithm>
#include <functional>

namespace tw::snapshot {

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
    // Pointers into different arrays may only be compared by std::less.
    const std::less<const ObjectSpec*> before;
    if (!before(&spec, table.data()) && before(&spec, table.data() + table.size())) {
        return static_cast<std::size_t>(&spec - table.data());
    }
    return table.size() + static_cast<std::size_t>(&spec - custom_.data());
}

bool ObjectSet::add(const CustomObject& object) {
    const bool numbered = object.type != 0;
    const ObjectSpec* const found =
        numbered ? find(object.type, object.dialect) : find(object.uuid);
    const ObjectSpec* const known =
        numbered ? find_object(object.type, object.dialect) : find_object(object.uuid);
    if (found != known || object.type >= kFirstUuidType) {
        return false;
    }
    AgreedSizes& sizes = sizes_[static_cast<std::size_t>(object.dialect)];
    if (object.agreed && (!numbered || object.type >= sizes.size())) {
        return false;
    }
    if (custom_.size() == kMaxCustom) {
        return false;
    }
    auto owned = std::make_unique<Owned>();
    owned->object = object;
    for (const CustomObject::Field& field : owned->object.fields) {
        FieldSpec spec{.name = field.name,
                       .kind = field.kind,
                       .offset = field.offset,
                       .count = field.count,
                       .names = field.known_names,
                       .names_when = field.names_when,
                       .merge = field.merge,
                       .in_six = field.in_six};
        if (!field.names.empty()) {
            auto& values = owned->values.emplace_back();
            for (const auto& [value, name] : field.names) {
                values.push_back({.value = value, .name = name});
            }
            owned->tables.push_back({.name = field.name, .flags = field.flags, .values = values});
            spec.names = &owned->tables.back();
            spec.names_when = 0;
            spec.kind = FieldKind::named;
        }
        owned->fields.push_back(spec);
    }
    custom_.push_back({.type = object.type,
                       .uuid = object.uuid,
                       .name = owned->object.name,
                       .uuid_name = owned->object.uuid_name,
                       .kind = object.kind,
                       .size = object.size,
                       .min_size = 0,
                       .fields = owned->fields,
                       .position = object.position,
                       .client = object.client,
                       .dialect = object.dialect,
                       .merge = object.merge});
    if (numbered && object.type < sizes.size()) {
        sizes[object.type] = object.agreed ? object.size : 0;
    }
    owned_.push_back(std::move(owned));
    return true;
}

} // namespace tw::snapshot
