#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tw::test {

/// Metrics in Prometheus' text format, checked by the rules of the format and of its naming guide.
struct PrometheusText {
    std::map<std::string, std::string> types;  ///< family -> "counter", "gauge", "summary"
    std::map<std::string, double> samples;     ///< `name{label="value"}` -> value
    std::map<std::string, std::string> labels; ///< each label name, with one family that has it
    std::vector<std::string> complaints;       ///< violations of the rules
};

[[nodiscard]] PrometheusText read_prometheus_text(std::string_view text);

} // namespace tw::test
