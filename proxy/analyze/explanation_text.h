#pragma once

#include "proxy/analyze/explanation.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <boost/json/fwd.hpp>

namespace tw::analyze {

/// Returns a command line or page address that shows users the explanation of a finding.
using SelectionText = std::function<std::string(std::int64_t session, std::int64_t tick)>;

/// Returns a list of the findings that can be explained, for users whose selection matched no
/// finding. `select`: makes a command for each finding; null: the list contains no commands.
/// `list_command`: the command that lists all findings; empty: the text names none.
[[nodiscard]] std::string explainable_findings_text(const Explanation& explanation,
                                                    const SelectionText& select = {},
                                                    std::string_view list_command = {});

/// Returns the explanation as one page of text.
[[nodiscard]] std::string explanation_text(const Explanation& explanation,
                                           const SelectionText& select = {});

/// Returns the explanation, or the findings that can be explained, as one JSON object.
[[nodiscard]] boost::json::object explanation_json(const Explanation& explanation);

/// Returns the explanation of a finding as text. `lines`: record lines around the finding. If the
/// lines do not contain the finding, returns explainable_findings_text().
[[nodiscard]] std::string explanation_of_lines(std::string_view lines, std::int64_t session,
                                               std::int64_t tick);

} // namespace tw::analyze
