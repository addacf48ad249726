#include "tests/proxy/wire/fields_text.h"

#include <vector>

namespace tw::wire::test {
namespace {

using Kind = FieldValue::Kind;

std::string scalar(const FieldValue& value) {
    switch (value.kind) {
    case Kind::string:
        return '"' +
               std::string{reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size()} +
               '"';
    case Kind::raw:
    case Kind::uuid:
        return 'x' + to_hex(value.bytes);
    case Kind::boolean:
        return value.integer == 0   ? "no"
               : value.integer == 1 ? "yes"
                                    : std::to_string(value.integer);
    default:
        return std::to_string(value.integer);
    }
}

} // namespace

std::string to_text(const DecodedFields& fields) {
    std::string out;
    std::vector<char> closing;
    for (const auto& value : fields.values) {
        out += out.empty() ? "" : " ";
        out += value.name;
        if (value.kind == Kind::array_begin || value.kind == Kind::object_begin) {
            const bool array = value.kind == Kind::array_begin;
            out += array ? '[' : '{';
            closing.push_back(array ? ']' : '}');
        } else if (value.kind == Kind::end) {
            out += closing.empty() ? '?' : closing.back();
            if (!closing.empty()) {
                closing.pop_back();
            }
        } else {
            out += (value.name.empty() ? "" : "=") + scalar(value);
            out += value.out_of_range ? "!" : "";
            out += value.secrecy == Secrecy::secret ? "*" : "";
        }
    }
    if (!fields.trailing.empty()) {
        out += " +" + std::to_string(fields.trailing.size());
    }
    if (fields.error) {
        out += out.empty() ? "" : " ";
        out += std::string{snapshot::error_info(fields.error->code).name} + '@' +
               std::to_string(fields.error->offset);
    }
    return out;
}

bool is_balanced(const DecodedFields& fields) {
    int depth = 0;
    for (const auto& value : fields.values) {
        depth += value.kind == Kind::array_begin || value.kind == Kind::object_begin ? 1 : 0;
        depth -= value.kind == Kind::end ? 1 : 0;
        if (depth < 0) {
            return false;
        }
    }
    return depth == 0;
}

} // namespace tw::wire::test
