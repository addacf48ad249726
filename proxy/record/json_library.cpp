// Boost.JSON, header-only: built here once for the program.
#include <boost/json/src.hpp>
