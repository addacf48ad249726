#pragma once

#include "proxy/sink/record_target.h"

namespace tw::run {

/// Says in the log what becomes of the file of records: once when it cannot be written, once when it
/// can be written again.
class DiskReport {
  public:
    /// From time to time, and at the end.
    void check(sink::RecordTarget& file);

  private:
    int error_ = 0; ///< as last said
};

} // namespace tw::run
