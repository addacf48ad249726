#include "tests/support/test_data.h"

namespace tw::test {

// The only file that knows where it is: the others compile to the same bytes in any folder, for the compiler's cache.
std::string test_data(std::string_view name) {
    return std::string{TW_TEST_DATA "/"}.append(name);
}

} // namespace tw::test
