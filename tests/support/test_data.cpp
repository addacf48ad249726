#include "tests/support/test_data.h"

namespace tw::test {

// The only file that contains the source folder's path, so that the compiler's cache works for all
// others.
std::string test_data(std::string_view name) {
    return std::string{TW_TEST_DATA "/"}.append(name);
}

} // namespace tw::test
