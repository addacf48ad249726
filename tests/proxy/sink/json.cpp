// Boost.JSON, header-only: built once for this program.
#include <boost/json/src.hpp>
