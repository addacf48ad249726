#pragma once

#include "proxy/record/interface.h"
#include "proxy/record/terminal_text.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace tw::sink {

/// Prints text for users. Escapes control characters, which peers may send. Ignores write errors.
inline void print_text(std::FILE* stream, const std::string& text) {
    static_cast<void>(std::fputs(record::escape_lines_for_terminal(text).c_str(), stream));
}

/// Prints whole lines as print_text() does. On a terminal, breaks long lines between words.
void print_wrapped(std::FILE* stream, const std::string& text);

/// Prints an error message on standard error: one line, which breaks only on a terminal.
template <typename... Arguments>
void print_error(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    print_wrapped(stderr,
                  "twscope: " + fmt::format(format, std::forward<Arguments>(arguments)...) + '\n');
}

/// A destination of text, which is written in blocks of complete lines.
class Output : public record::InterfaceBase {
  public:
    virtual void write(std::string_view block) = 0;

    /// Returns the segment to which new data belongs, from 1 on; 0 if the output has no segments.
    /// When the segment changes, a producer must repeat all data that is needed to read the segment
    /// alone.
    [[nodiscard]] virtual std::uint32_t current_segment() const { return 0; }

    virtual void write_to_segment(std::uint32_t /*segment*/, std::string_view block) {
        write(block);
    }

    /// Must be called when a producer will write no more data for segments before `segment`.
    virtual void advance_to_segment(std::uint32_t /*segment*/) {}
};

[[nodiscard]] inline std::uint64_t count_lines(std::string_view block) {
    return static_cast<std::uint64_t>(std::ranges::count(block, '\n'));
}

class TextOutput final : public Output {
  public:
    void write(std::string_view block) override { text += block; }

    std::string text;
};

/// Writes each block to two outputs. Only the first output may have segments.
class DuplicatingOutput final : public Output {
  public:
    /// Both outputs must outlive the object.
    DuplicatingOutput(Output& first, Output& second) : first_{&first}, second_{&second} {}

    void write(std::string_view block) override { write_to_segment(current_segment(), block); }

    [[nodiscard]] std::uint32_t current_segment() const override {
        return first_->current_segment();
    }

    void write_to_segment(std::uint32_t segment, std::string_view block) override {
        first_->write_to_segment(segment, block);
        second_->write(block);
    }

    void advance_to_segment(std::uint32_t segment) override { first_->advance_to_segment(segment); }

  private:
    Output* first_;
    Output* second_;
};

} // namespace tw::sink
