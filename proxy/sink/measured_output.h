#pragma once

#include "proxy/sink/output.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tw::sink {

/// Hands text on to another output in pieces, and shows how far it is.
class MeasuredOutput final : public Output {
  public:
    /// Both have to outlive it; `written` counts bytes, lost ones included.
    MeasuredOutput(Output& target, std::atomic<std::uint64_t>& written)
        : target_{&target}, written_{&written} {}

    void write(std::string_view block) override {
        constexpr std::size_t kPiece = 65'536;
        while (!block.empty()) {
            const std::string_view piece = block.substr(0, kPiece);
            target_->write(piece);
            written_->fetch_add(piece.size(), std::memory_order_relaxed);
            block.remove_prefix(piece.size());
        }
    }

  private:
    Output* target_;
    std::atomic<std::uint64_t>* written_;
};

} // namespace tw::sink
