#pragma once

#include "proxy/filter/program.h"

#include <string>
#include <string_view>
#include <vector>

namespace tw::filter {

/// What stands in every line that fulfils a filter, letter by letter: the keys that it has to have, and texts that
/// it compares with. Most lines that do not fulfil it are told by that alone.
class Needles {
  public:
    explicit Needles(const Program& program);

    /// False: the line does not fulfil the filter. True: it may.
    [[nodiscard]] bool are_in(std::string_view line) const;

  private:
    std::vector<std::string> keys_;
    std::vector<std::string> texts_; ///< may stand there with escapes, too
};

/// Whether the text holds this part, of two bytes at least.
[[nodiscard]] bool holds(std::string_view text, std::string_view part);

} // namespace tw::filter
