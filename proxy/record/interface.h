#pragma once

namespace tw::record {

/// The base of interfaces. An implementation is used and destroyed through a pointer or reference, and is
/// neither copied nor moved.
class Interface {
  public:
    Interface(const Interface&) = delete;
    Interface& operator=(const Interface&) = delete;
    virtual ~Interface() = default;

  protected:
    Interface() = default;
};

} // namespace tw::record
