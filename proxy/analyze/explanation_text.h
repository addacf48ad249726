#pragma once

#include "proxy/analyze/explanation.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <boost/json/fwd.hpp>

namespace tw::analyze {

/// Returns how a user selects the finding of a session and a tick.
using SelectionText = std::function<std::string(std::int64_t session, std::int64_t tick)>;

/// Lists the findings that can be explained, for a selection that matched none. `select`: null if
/// there is no command for it.
[[nodiscard]] std::string explainable_findings_text(const Explanation& story,
                                                    const SelectionText& select = {});

/// Returns the explanation as one page of text.
[[nodiscard]] std::string explanation_text(const Explanation& story,
                                           const SelectionText& select = {});

/// Returns the explanation, or the findings that can be explained, as one JSON object.
[[nodiscard]] boost::json::object explanation_json(const Explanation& story);

/// Returns the explanation from a few record lines; if they contain no such finding,
/// explainable_findings_text().
[[nodiscard]] std::string explanation_of_lines(std::string_view lines, std::int64_t session,
                                               std::int64_t tick);

} // namespace tw::analyze
