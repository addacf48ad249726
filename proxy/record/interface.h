#pragma once

namespace tw::record {

/// The base class of interfaces: has a virtual destructor and cannot be copied or moved.
class InterfaceBase {
  public:
    InterfaceBase(const InterfaceBase&) = delete;
    InterfaceBase& operator=(const InterfaceBase&) = delete;
    virtual ~InterfaceBase() = default;

  protected:
    InterfaceBase() = default;
};

} // namespace tw::record
