#pragma once

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

} // namespace tw::sink
