#pragma once

#include <stdexcept>

namespace tw::relay {

/// The relay cannot start; what() is one line for the user.
class StartError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// Something that may come yet is not there: a name, an address, a port that another one has.
class NotYetError : public StartError {
  public:
    using StartError::StartError;
};

/// Clients would share an address at the server, and nobody said that they may.
class SharedAddressError : public StartError {
  public:
    using StartError::StartError;
};

} // namespace tw::relay
