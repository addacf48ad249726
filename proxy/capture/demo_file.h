#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace tw::capture {

/// A file's bytes, as long as it is there. A demo that its recorder still writes shows what was
/// written when it was opened.
class DemoFile {
  public:
    /// Whether a file begins as demos do. False also for what cannot be read, and for "-": who reads
    /// it as a capture says why.
    [[nodiscard]] static bool is_demo(const std::string& path);

    /// Errors: CaptureError.
    explicit DemoFile(const std::string& path);
    ~DemoFile();
    DemoFile(const DemoFile&) = delete;
    DemoFile& operator=(const DemoFile&) = delete;
    DemoFile(DemoFile&&) = delete;
    DemoFile& operator=(DemoFile&&) = delete;

    [[nodiscard]] std::span<const std::byte> bytes() const {
        return {static_cast<const std::byte*>(begin_), size_};
    }

  private:
    void* begin_ = nullptr; ///< mapped
    std::size_t size_ = 0;
};

} // namespace tw::capture
