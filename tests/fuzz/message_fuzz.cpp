#include "proxy/wire/message.h"
#include "proxy/wire/text.h"
#include "tests/fuzz/demand.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

/// The input is a chunk's payload: head and fields, whose strings are sanitized. Brackets must be
/// balanced, every value must lie inside the input, and sanitized strings must be UTF-8.
namespace {

using tw::fuzz::demand;
using tw::wire::FieldValue;

void check_fields(const tw::wire::DecodedFields& fields, std::span<const std::byte> body) {
    int depth = 0;
    for (const auto& value : fields.values) {
        depth += value.kind == FieldValue::Kind::array_begin ||
                         value.kind == FieldValue::Kind::object_begin
                     ? 1
                     : 0;
        depth -= value.kind == FieldValue::Kind::end ? 1 : 0;
        demand(depth >= 0);
        if (!value.bytes.empty()) {
            demand(value.bytes.data() >= body.data());
            demand(value.bytes.data() + value.bytes.size() <= body.data() + body.size());
        }
        if (value.kind == FieldValue::Kind::string) {
            for (const auto flags : std::to_array<std::uint8_t>({0, 1, 2, 6})) {
                const auto shown = tw::wire::sanitize_string(value.bytes, flags);
                demand(tw::wire::is_utf8(std::as_bytes(std::span{shown})));
            }
        }
    }
    demand(depth == 0);
    demand(!fields.error || fields.error->offset <= body.size());
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto payload = std::as_bytes(std::span{data, size});
    const auto head = tw::wire::decode_message_header(payload, tw::snapshot::Dialect::six);
    if (!head || head->spec == nullptr) {
        return 0;
    }
    tw::wire::DecodedFields fields;
    tw::wire::decode_fields(*head->spec, head->body, fields);
    check_fields(fields, head->body);
    const bool in_range = std::none_of(fields.values.begin(), fields.values.end(),
                                       [](const FieldValue& value) { return value.out_of_range; });
    demand((!fields.error && fields.trailing.empty() && in_range) ||
           !tw::wire::is_certainly_valid(*head->spec, head->body));
    return 0;
}
