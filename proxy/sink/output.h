#pragma once

#include "proxy/record/terminal_text.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace tw::sink {

/// For people: what a terminal may obey, in names of files and of what peers say, is escaped. What
/// cannot be written is lost, and nothing else: there is nobody left to tell.
inline void say(std::FILE* stream, const std::string& text) {
    static_cast<void>(std::fputs(record::terminal_lines(text).c_str(), stream));
}

/// Says on standard error, on a line of its own, what went wrong.
template <typename... Arguments>
void print_error(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    say(stderr, "twscope: " + fmt::format(format, std::forward<Arguments>(arguments)...) + '\n');
}

/// Where finished text goes: blocks of whole lines.
class Output {
  public:
    Output() = default;
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;
    Output(Output&&) = delete;
    Output& operator=(Output&&) = delete;
    virtual ~Output() = default;

    virtual void write(std::string_view block) = 0;

    /// Of an output in segments: which one takes what is made now, from 1 on. Who makes records
    /// begins a new one with all that is needed to read it alone. 0: there are none.
    [[nodiscard]] virtual std::uint32_t segment() const { return 0; }

    /// As write, of a block that was made for this segment.
    virtual void write_in(std::uint32_t /*segment*/, std::string_view block) { write(block); }

    /// Nothing for an earlier segment than this comes any more from who says so.
    virtual void arrive(std::uint32_t /*segment*/) {}
};

/// How many records are lost with a block.
[[nodiscard]] inline std::uint64_t lines_in(std::string_view block) {
    std::uint64_t lines = 0;
    while (!block.empty()) {
        const void* const end = std::memchr(block.data(), '\n', block.size());
        if (end == nullptr) {
            break;
        }
        block.remove_prefix(static_cast<std::size_t>(static_cast<const char*>(end) - block.data()) +
                            1);
        ++lines;
    }
    return lines;
}

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
