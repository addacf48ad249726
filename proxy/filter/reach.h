#pragma once

#include "proxy/filter/program.h"

#include <cstddef>

/// Which types of records a filter can let pass, whatever stands in them.
namespace tw::filter {

/// Whether some record of this type (its index in record::Record) may match. Never says no where one
/// does; may say yes where none does, as conditions are not held against each other.
[[nodiscard]] bool may_match(const Program& program, std::size_t type);

/// Messages may match, and nothing else.
[[nodiscard]] bool is_about_messages(const Program& program);

} // namespace tw::filter
