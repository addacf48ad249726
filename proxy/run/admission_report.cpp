#include "proxy/run/admission_report.h"

#include <fmt/format.h>

namespace tw::run {

std::optional<std::string> AdmissionReport::check(const relay::Counters& counters) {
    std::string text;
    const auto add = [&](std::uint64_t number, std::string_view why) {
        if (number != 0) {
            text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", number, why);
        }
    };
    for (const relay::AdmissionRow& row : relay::admission_rows()) {
        if (row.unit == relay::AdmissionUnit::datagrams) {
            add(counters.admission.*row.value - told_.*row.value, row.sentence);
        }
    }
    add(counters.sessions_refused - refused_told_, "no session is free");
    told_ = counters.admission;
    refused_told_ = counters.sessions_refused;
    if (text.empty()) {
        return std::nullopt;
    }
    return "datagrams rejected at the door: " + text;
}

} // namespace tw::run
