#pragma once

#include "proxy/sink/file_queue.h"

#include <cstdint>
#include <string>

namespace tw::sink {

/// The file that a capture goes to, opened before it is known when writing begins.
class CaptureTarget {
  public:
    enum class Begin : std::uint8_t {
        empty,  ///< what was in the file is gone
        behind, ///< a section of its own, behind the last whole block
    };

    /// Of a pipe its reader is waited for, for some seconds; when it takes nothing later, what was
    /// not taken is lost.
    /// Errors: throws std::system_error for what cannot be opened, and for what is neither a file on a
    /// disk nor a pipe; std::runtime_error for `behind` where something other
    /// than a capture is in the file.
    CaptureTarget(const std::string& path, Begin begin);
    ~CaptureTarget();
    CaptureTarget(const CaptureTarget&) = delete;
    CaptureTarget& operator=(const CaptureTarget&) = delete;
    CaptureTarget(CaptureTarget&&) = delete;
    CaptureTarget& operator=(CaptureTarget&&) = delete;

    /// Gives the file to a queue.
    [[nodiscard]] FileQueue::File give_to(FileQueue& files);
    /// Cuts off what was never finished, and begins a section. Nobody else may write there any more.
    /// To be called once, after give_to and before anything is appended.
    void begin(FileQueue& files, FileQueue::File file) const;

  private:
    std::string path_;
    int descriptor_ = -1;
    bool pipe_ = false;
};

} // namespace tw::sink
