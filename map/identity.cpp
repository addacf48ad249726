#include <string_view>
