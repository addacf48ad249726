#pragma once

#include "proxy/analyze/explanation.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <boost/json/fwd.hpp>

namespace tw::analyze {

/// Returns a command or address that explains the finding of this session and tick.
using SelectionText = std::function<std::string(std::int64_t session, std::int64_t tick)>;

/// Lists the findings that can be explained. Shown if the selection matched no finding. `select`: null if
/// there is no command to select a finding.
[[nodiscard]] std::string explainable_findings_text(const Explanation& explanation,
                                                    const SelectionText& select = {});

/// Returns the explanation as one page of text.
[[nodiscard]] std::string explanation_text(const Explanation& explanation,
                                           const SelectionText& select = {});

/// Returns the explanation, or the findings that can be explained, as one JSON object.
[[nodiscard]] boost::json::object explanation_json(const Explanation& explanation);

/// Explains a finding from a few record lines. If the lines do not contain the finding, returns
/// explainable_findings_text().
[[nodiscard]] std::string explanation_of_lines(std::string_view lines, std::int64_t session,
                                               std::int64_t tick);

} // namespace tw::analyze
