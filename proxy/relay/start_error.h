#pragma once

#include <stdexcept>

namespace tw::relay {

/// The relay cannot start; what() is one line for the user.
class StartError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

} // namespace tw::relay
