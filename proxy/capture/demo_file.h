#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace tw::capture {

/// A file's bytes, in memory. A demo that its recorder still writes shows what was
/// written when it was opened.
class DemoFile {
  public:
    /// Whether a file begins as demos do. False also for what cannot be read, and for "-": who reads
    /// it as a capture says why.
    [[nodiscard]] static bool is_demo(const std::string& path);

    /// More than a day of a full server.
    static constexpr std::size_t kMaxBytes = std::size_t{1} << 30U;

    /// Errors: CaptureError.
    explicit DemoFile(const std::string& path);

    [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

  private:
    std::vector<std::byte> bytes_; // not mapped: who cuts the file must not kill its reader
};

} // namespace tw::capture
