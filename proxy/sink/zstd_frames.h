#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct ZSTD_CCtx_s;

namespace tw::sink {

/// Compresses text into frames of zstd, one behind the other. Each can be read alone, and any reader
/// of zstd reads them as one text.
class FrameWriter {
  public:
    FrameWriter();
    ~FrameWriter();
    FrameWriter(const FrameWriter&) = delete;
    FrameWriter& operator=(const FrameWriter&) = delete;
    FrameWriter(FrameWriter&&) = delete;
    FrameWriter& operator=(FrameWriter&&) = delete;

    /// Appends to `out` what is ready of the frame.
    void add(std::string_view text, std::string& out);
    /// Ends the frame; the next text begins another one.
    void end(std::string& out);

  private:
    void run(std::string_view text, int directive, std::string& out);

    std::unique_ptr<ZSTD_CCtx_s, std::size_t (*)(ZSTD_CCtx_s*)> context_;
    std::vector<char> room_;
};

/// What a file of frames holds.
struct FrameScan {
    std::uint64_t whole = 0; ///< bytes of the whole frames at its beginning
    std::uint64_t size = 0;  ///< bytes in all
    /// Behind the whole ones stands no beginning of a frame: something else wrote there.
    bool foreign = false;
};

/// Reads the headers of all frames and blocks, not what is in them. Zeros up to the end are what a
/// machine leaves that lost its power, and count as unfinished. Nothing when it cannot be read.
[[nodiscard]] std::optional<FrameScan> scan_frames(int file);

} // namespace tw::sink
