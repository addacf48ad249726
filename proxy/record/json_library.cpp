// Boost.JSON is used header-only. This file compiles it once for the program.
#include <boost/json/src.hpp>
