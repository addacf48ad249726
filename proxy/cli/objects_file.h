#pragma once

#include "proxy/wire/message.h"
#include "snapshot/objects.h"

#include <string>
#include <string_view>

namespace tw::cli {

struct Command;

/// Adds --objects. `use`: the end of the help's first sentence, which says what the file is for.
void add_objects_flag(Command& command, std::string& file, const std::string& use = {});

/// Adds the objects and messages described in a mod's JSON file (snapshot/OBJECTS.md). Does nothing
/// for an empty path.
/// Errors: UsageError that names the file, the wrong entry, and the problem.
void read_objects_file(const std::string& path, wire::ModDescription& mod);

/// The UUID of a name like "object@infclass", as game programs compute it: version 3 (MD5) in
/// the namespace e05ddaaa-c4e6-4cfb-b642-5d48e80c0029 (DDNet's CalculateUuid).
[[nodiscard]] snapshot::Uuid uuid_of_name(std::string_view name);

} // namespace tw::cli
