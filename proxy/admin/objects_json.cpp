#include "proxy/admin/objects_json.h"

#include "proxy/record/json.h"

#include <utility>

namespace tw::admin {

namespace json = boost::json;

namespace {

std::string_view kind_name(snapshot::FieldKind kind) {
    switch (kind) {
    case snapshot::FieldKind::boolean:
        return "boolean";
    case snapshot::FieldKind::tick:
        return "tick";
    case snapshot::FieldKind::named:
        return "named";
    case snapshot::FieldKind::int_string:
        return "text";
    case snapshot::FieldKind::integers:
        return "integers";
    default:
        return "integer";
    }
}

json::object field_json(const snapshot::FieldSpec& field) {
    json::object object{{"name", field.name},
                        {"kind", kind_name(field.kind)},
                        {"offset", field.offset},
                        {"count", field.count}};
    if (field.names != nullptr) {
        json::array values;
        for (const snapshot::NamedValue& value : field.names->values) {
            values.push_back(json::array{value.value, value.name});
        }
        object[field.names->flags ? "flags" : "names"] = std::move(values);
        object["names_when"] = field.names_when;
    }
    return object;
}

json::object object_json(const snapshot::ObjectSpec& spec) {
    json::array fields;
    for (const snapshot::FieldSpec& field : spec.fields) {
        fields.push_back(field_json(field));
    }
    json::object object{{"name", spec.name},
                        {"event", spec.kind == snapshot::ObjectKind::event},
                        {"fields", std::move(fields)}};
    if (spec.position) {
        object["position"] = json::object{{"x", spec.position->x},
                                          {"y", spec.position->y},
                                          {"per_unit", spec.position->per_unit}};
    }
    if (spec.client) {
        if (spec.client->field) {
            object["client"] = *spec.client->field;
        } else {
            object["client"] = "id";
        }
    }
    return object;
}

} // namespace

std::string objects_json(const snapshot::ObjectSet& objects) {
    json::array list;
    for (const auto table : {snapshot::object_table(), objects.custom()}) {
        for (const snapshot::ObjectSpec& spec : table) {
            list.push_back(object_json(spec));
        }
    }
    return record::json_text(json::object{{"v", 1}, {"objects", std::move(list)}}) + '\n';
}

} // namespace tw::admin
