#include "proxy/run/admission_report.h"

#include <utility>

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
    if (!text.empty()) {
        text.insert(0, "datagrams rejected at the door: ");
    }
    const std::uint64_t repeated =
        counters.repeated_answers - std::exchange(repeated_told_, counters.repeated_answers);
    if (repeated != 0) {
        text += fmt::format("{}requests answered with the server's last answer: {}",
                            text.empty() ? "" : "; ", repeated);
    }
    return text.empty() ? std::nullopt : std::optional{text};
}

} // namespace tw::run
