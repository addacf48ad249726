#pragma once

#include "proxy/record/findings.h"
#include "proxy/record/stats.h"
#include "proxy/report/outcome.h"

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace tw::report {

/// The findings that make a run fail: ids or severities ("warning" means warning and worse).
class FailOn {
  public:
    /// Errors: the word that is neither.
    [[nodiscard]] static tl::expected<FailOn, std::string>
    parse(const std::vector<std::string>& words);

    /// Those findings.
    [[nodiscard]] std::array<bool, record::kFindingCount> findings() const;

    /// One check a word: whether none of its findings occurred.
    [[nodiscard]] std::vector<Check> checks(const record::SessionStats& totals,
                                            std::string_view asked_by) const;

  private:
    FailOn() = default;

    struct Word {
        std::string text;
        std::array<bool, record::kFindingCount> fails{};
    };

    std::vector<Word> words_;
};

} // namespace tw::report
