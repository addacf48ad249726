#pragma once

#include <algorithm>
#include <cstdint>
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
};

/// How many records are lost with a block.
[[nodiscard]] inline std::uint64_t lines_in(std::string_view block) {
    return static_cast<std::uint64_t>(std::count(block.begin(), block.end(), '\n'));
}

} // namespace tw::sink
