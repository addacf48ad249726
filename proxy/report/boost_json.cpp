// Boost.JSON is used as headers; this is where its functions are compiled.
#include <boost/json/src.hpp>
