#pragma once

#include "proxy/cli/json_reader.h"
#include "snapshot/objects.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tw::cli {

/// A UUID, and the name it was made of; empty if only the UUID was given.
struct NamedUuid {
    snapshot::Uuid uuid{};
    std::string name;
};

/// The UUID of a name like "object@infclass", as game programs compute it: version 3 (MD5) in
/// the namespace e05ddaaa-c4e6-4cfb-b642-5d48e80c0029 (DDNet's CalculateUuid).
[[nodiscard]] snapshot::Uuid uuid_of_name(std::string_view name);

/// A UUID or the name of one. Errors: UsageError.
[[nodiscard]] NamedUuid parse_uuid(const JsonReader& in, std::string_view key);

/// `names`: numbers to the words they mean. Errors: UsageError.
[[nodiscard]] std::vector<std::pair<std::int64_t, std::string>>
parse_value_names(const JsonReader& in);

} // namespace tw::cli
