#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tw::sink {

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

} // namespace tw::sink
