#pragma once

#include "proxy/filter/filter.h"
#include "proxy/filter/program.h"

#include <string_view>

namespace tw::filter {

/// Turns a filter's text into what can be asked. Every comparison of the result is meaningful: its
/// key exists, and so does the word it is compared with where words are a closed set.
[[nodiscard]] tl::expected<Program, FilterError> parse_filter(std::string_view text,
                                                              const FilterOptions& options);

} // namespace tw::filter
