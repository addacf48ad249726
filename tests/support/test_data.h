#pragma once

#include <string>
#include <string_view>

namespace tw::test {

/// Returns the path of a file of tests/data, such as "spec/vectors.json".
[[nodiscard]] std::string test_data(std::string_view name);

} // namespace tw::test
