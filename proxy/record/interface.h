#pragma once

namespace tw::record {

/// The base class of interfaces: has a virtual destructor and cannot be copied or moved.
class Interface {
  public:
    Interface(const Interface&) = delete;
    Interface& operator=(const Interface&) = delete;
    virtual ~Interface() = default;

  protected:
    Interface() = default;
};

} // namespace tw::record
