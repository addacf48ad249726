#pragma once

#include "proxy/record/interface.h"
#include "proxy/record/terminal_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace tw::sink {

/// Prints text for users. Control characters are escaped, because they may come from file names or peers.
/// Write errors are ignored.
inline void say(std::FILE* stream, const std::string& text) {
    static_cast<void>(std::fputs(record::terminal_lines(text).c_str(), stream));
}

/// Prints an error message as one line on standard error.
template <typename... Arguments>
void print_error(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    say(stderr, "twscope: " + fmt::format(format, std::forward<Arguments>(arguments)...) + '\n');
}

/// A destination of finished text. The text comes in blocks of whole lines.
class Output : public record::Interface {
  public:
    virtual void write(std::string_view block) = 0;

    /// The segment for data that is made now, from 1 on; 0 if the output has no segments. At the start
    /// of a segment, a producer repeats everything that is needed to read the segment on its own.
    [[nodiscard]] virtual std::uint32_t segment() const { return 0; }

    /// Writes a block that was made for this segment.
    virtual void write_in(std::uint32_t /*segment*/, std::string_view block) { write(block); }

    /// The caller promises to write no more data for segments before this one.
    virtual void arrive(std::uint32_t /*segment*/) {}
};

/// Returns the number of records in a block.
[[nodiscard]] inline std::uint64_t lines_in(std::string_view block) {
    return static_cast<std::uint64_t>(std::ranges::count(block, '\n'));
}

/// Keeps what is written.
class TextOutput final : public Output {
  public:
    void write(std::string_view block) override { text += block; }

    std::string text;
};

/// Writes blocks to two outputs. The segments are those of the first output; the second has none.
class TeeOutput final : public Output {
  public:
    /// Both outputs must outlive the object.
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
