#include "proxy/analyze/type_sizes.h"

#include "proxy/record/terminal_text.h"

#include <exception>

#include <fmt/format.h>

namespace tw::analyze {

namespace {

using snapshot::FieldKind;
using snapshot::FieldSpec;
using snapshot::ObjectSpec;

using NumberedType = std::pair<snapshot::Dialect, std::uint16_t>;

std::string type_name(const NumberedType& type) {
    const ObjectSpec* object = snapshot::find_object(type.second, type.first);
    return object == nullptr ? fmt::format("type_{}", type.second) : std::string{object->name};
}

std::size_t agreed_size(const NumberedType& type) {
    return snapshot::agreed_size(type.second, snapshot::agreed_sizes(type.first));
}

/// Returns the fields that fit into an item of this size.
std::vector<const FieldSpec*> fields_within(const ObjectSpec* object, std::size_t size) {
    std::vector<const FieldSpec*> fields;
    if (object != nullptr) {
        for (const FieldSpec& field : object->fields) {
            if (std::size_t{field.offset} + field.count <= size) {
                fields.push_back(&field);
            }
        }
    }
    return fields;
}

std::string field_json(const FieldSpec& field) {
    std::string text = fmt::format(R"({{ "name": "{}")", field.name);
    if (field.kind == FieldKind::int_string) {
        text += R"(, "kind": "string")";
    } else if (field.kind == FieldKind::tick) {
        text += R"(, "kind": "tick")";
    }
    if (field.count > 1 || field.kind == FieldKind::int_string) {
        text += fmt::format(R"(, "count": {})", field.count);
    }
    if (field.names != nullptr && field.names_when == 0) {
        text += field.names->flags ? R"(, "flags": true, "names": {)" : R"(, "names": {)";
        std::string_view comma;
        for (const snapshot::NamedValue& each : field.names->values) {
            text +=
                fmt::format(R"({} "{}": "{}")", std::exchange(comma, ","), each.value, each.name);
        }
        text += " }";
    }
    return text + " }";
}

std::string position_json(const ObjectSpec& object, const std::vector<const FieldSpec*>& fields) {
    const auto field_at = [&](std::size_t offset) {
        return std::ranges::find_if(fields, [offset](const FieldSpec* field) {
            return field->offset == offset && field->count == 1;
        });
    };
    if (!object.position) {
        return {};
    }
    const auto x = field_at(object.position->x);
    const auto y = field_at(object.position->y);
    if (x == fields.end() || y == fields.end()) {
        return {};
    }
    return fmt::format(
        ",\n      \"position\": {{ \"x\": \"{}\", \"y\": \"{}\", \"per_unit\": {} }}", (*x)->name,
        (*y)->name, object.position->per_unit);
}

std::string object_json(const NumberedType& type, std::size_t size, bool agreed) {
    const bool seven = type.first == snapshot::Dialect::seven;
    const ObjectSpec* object = snapshot::find_object(type.second, type.first);
    const auto fields = fields_within(object, size);
    std::vector<std::string> lines;
    std::size_t named = 0;
    for (const FieldSpec* field : fields) {
        lines.push_back("        " + field_json(*field));
        named = std::size_t{field->offset} + field->count;
    }
    for (; named < size; ++named) {
        lines.push_back(fmt::format(R"(        {{ "name": "int_{}" }})", named));
    }
    return fmt::format("    {{\n      \"name\": \"{}\", \"type\": {}, {}\"agreed_size\": {},\n"
                       "      \"fields\": [\n{}\n      ]{}\n    }}",
                       type_name(type), type.second, seven ? R"("protocol": "0.7", )" : "", agreed,
                       fmt::join(lines, ",\n"),
                       object == nullptr ? "" : position_json(*object, fields));
}

std::string objects_file_text(const std::vector<std::string>& objects) {
    return fmt::format("{{\n  \"objects\": [\n{}\n  ]\n}}\n", fmt::join(objects, ",\n"));
}

} // namespace

void TypeSizes::on_record(const record::Record& record) {
    if (const auto* const* session = std::get_if<const record::SessionRecord*>(&record)) {
        sessions_[(*session)->head.session] = (*session)->protocol.starts_with("0.7")
                                                  ? snapshot::Dialect::seven
                                                  : snapshot::Dialect::six;
        return;
    }
    if (const auto* const* found = std::get_if<const record::FindingRecord*>(&record)) {
        if ((*found)->id == record::FindingId::snapshot_size_differs) {
            differing_[{sessions_[(*found)->head.session], (*found)->item->type_id}] =
                static_cast<std::size_t>(*(*found)->value);
        }
        return;
    }
    const auto* const* each = std::get_if<const record::SnapshotRecord*>(&record);
    if (each == nullptr || !(*each)->rebuilt) {
        return;
    }
    ++num_snapshots_;
    const snapshot::Dialect dialect = sessions_[(*each)->head.session];
    const snapshot::SnapshotView& items = (*each)->items;
    for (std::size_t i = 0; i < items.size(); ++i) {
        const snapshot::ItemView item = items[i];
        if (item.key.type >= snapshot::kFirstUuidType) {
            break;
        }
        if (item.key.type == snapshot::kDescriptorType) {
            continue;
        }
        SizeCounts& seen = types_[{dialect, item.key.type}];
        if (std::exchange(seen.counted, num_snapshots_) != num_snapshots_) {
            ++seen.snapshots[item.data.size()];
        }
    }
}

std::optional<std::size_t> TypeSizes::size_in_objects_file(const NumberedType& type) const {
    const std::size_t size = snapshot::agreed_size(type.second, objects_->sizes(type.first));
    return size == agreed_size(type) ? std::nullopt : std::optional{size};
}

bool TypeSizes::is_in_objects_file(const NumberedType& type, std::size_t size) const {
    const auto described = size_in_objects_file(type);
    return described && (*described == 0 || *described == size);
}

bool TypeSizes::is_unreported_difference(const NumberedType& type, std::size_t size) const {
    const std::size_t agreed = agreed_size(type);
    return agreed != 0 && size != agreed && !is_in_objects_file(type, size) &&
           !differing_.contains(type);
}

std::string_view TypeSizes::size_note(const NumberedType& type, std::size_t size) const {
    const auto differs = differing_.find(type);
    if (is_unreported_difference(type, size)) {
        return "  not as agreed";
    }
    if (differs == differing_.end()) {
        return is_in_objects_file(type, size) ? "  as in the objects file" : "";
    }
    return differs->second == 0         ? "  written in each delta"
           : differs->second != size    ? ""
           : size != agreed_size(type)  ? "  differs"
           : size_in_objects_file(type) ? "  not as in the objects file"
                                        : "";
}

bool TypeSizes::has_unreported_differences() const {
    return std::ranges::any_of(types_, [this](const auto& each) {
        return std::ranges::any_of(each.second.snapshots, [&](const auto& seen) {
            return is_unreported_difference(each.first, seen.first);
        });
    });
}

std::string TypeSizes::sizes_table() const {
    std::string text = fmt::format("{:>5}  {:<20} {:>6} {:>6} {:>10}\n", "type", "object", "agreed",
                                   "ints", "snapshots");
    for (const auto& [type, seen] : types_) {
        const std::size_t agreed = agreed_size(type);
        const bool seven = type.first == snapshot::Dialect::seven;
        for (const auto& [size, snapshots] : seen.snapshots) {
            text += fmt::format("{:>5}  {:<20} {:>6} {:>6} {:>10}{}{}\n", type.second,
                                type_name(type), agreed == 0 ? "-" : std::to_string(agreed), size,
                                snapshots, size_note(type, size), seven ? "  0.7" : "");
        }
    }
    return text;
}

std::vector<SizeDifference> TypeSizes::differences() const {
    std::vector<SizeDifference> found;
    for (const auto& [type, size] : differing_) {
        const auto seen = types_.find(type);
        if (seen == types_.end()) {
            continue;
        }
        const auto described = size_in_objects_file(type);
        const bool is_as_agreed = size == agreed_size(type);
        for (const auto& [ints, snapshots] : seen->second.snapshots) {
            if ((size != 0 && ints != size) || (is_as_agreed && !described)) {
                continue;
            }
            SizeDifference& each =
                found.emplace_back(SizeDifference{.object = type_name(type),
                                                  .type_id = type.second,
                                                  .agreed_ints = agreed_size(type),
                                                  .actual_ints = ints,
                                                  .snapshots = snapshots,
                                                  .text = {},
                                                  .is_file_wrong = is_as_agreed});
            const std::string expected =
                is_as_agreed ? ", as agreed" : fmt::format(" instead of {}", each.agreed_ints);
            each.text = fmt::format("{}: {}{}{}{}; read this way, {} the right checksum",
                                    each.object, record::count_with_noun(ints, "int[s]"),
                                    size == 0 ? ", written in each delta," : "", expected,
                                    !described ? ""
                                    : *described == 0
                                        ? " (in the objects file, written in each delta)"
                                        : fmt::format(" (in the objects file: {})", *described),
                                    record::count_with_noun(snapshots, "snapshot[s] [has|have]"));
        }
    }
    return found;
}

boost::json::object TypeSizes::sizes_json() const {
    namespace json = boost::json;
    json::array types;
    for (const auto& [type, seen] : types_) {
        json::array sizes;
        for (const auto& [size, snapshots] : seen.snapshots) {
            sizes.push_back(json::object{{"ints", size}, {"snapshots", snapshots}});
        }
        const auto differs = differing_.find(type);
        const std::size_t agreed = agreed_size(type);
        types.push_back(
            json::object{{"type", type.second},
                         {"object", type_name(type)},
                         {"protocol", type.first == snapshot::Dialect::seven ? "0.7" : "0.6"},
                         {"agreed", agreed == 0 ? json::value{} : json::value(agreed)},
                         {"sizes", std::move(sizes)},
                         {"differs", differs != differing_.end()},
                         {"in_each_delta", differs != differing_.end() && differs->second == 0}});
    }
    return {{"types", std::move(types)}};
}

std::string TypeSizes::objects_json() const {
    std::vector<std::string> objects;
    for (const auto& [type, size] : differing_) {
        const auto seen = types_.find(type);
        const bool agreed = size != 0;
        const std::size_t ints = agreed ? size
                                 : seen == types_.end() || seen->second.snapshots.empty()
                                     ? 0
                                     : seen->second.snapshots.rbegin()->first;
        objects.push_back(object_json(type, ints, agreed));
    }
    return objects_file_text(objects);
}

bool is_unedited_objects_json(std::string_view text) {
    namespace json = boost::json;
    try {
        const json::value file = json::parse(text);
        std::vector<std::string> objects;
        for (const json::value& each : file.at("objects").as_array()) {
            const json::object& object = each.as_object();
            std::size_t ints = 0;
            for (const json::value& field : object.at("fields").as_array()) {
                const json::value* const count = field.as_object().if_contains("count");
                ints += count == nullptr ? 1U : std::size_t{count->to_number<std::uint8_t>()};
            }
            const auto dialect =
                object.contains("protocol") ? snapshot::Dialect::seven : snapshot::Dialect::six;
            objects.push_back(object_json({dialect, object.at("type").to_number<std::uint16_t>()},
                                          ints, object.at("agreed_size").as_bool()));
        }
        return text == objects_file_text(objects);
    } catch (const std::exception&) {
        return false; // not JSON, or another structure
    }
}

} // namespace tw::analyze
