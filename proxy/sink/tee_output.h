#pragma once

#include "proxy/sink/output.h"

namespace tw::sink {

/// Hands blocks to two outputs. The first one's segments count; the second has none.
class TeeOutput final : public Output {
  public:
    /// Both have to outlive it.
    TeeOutput(Output& first, Output& second) : first_{&first}, second_{&second} {}

    void write(std::string_view block) override { write_in(segment(), block); }

    [[nodiscard]] std::uint32_t segment() const override { return first_->segment(); }

    void write_in(std::uint32_t segment, std::string_view block) override {
        first_->write_in(segment, block);
        second_->write(block);
    }

    void arrive(std::uint32_t segment) override { first_->arrive(segment); }

  private:
    Output* first_;
    Output* second_;
};

} // namespace tw::sink
