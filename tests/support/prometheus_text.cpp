#include "tests/support/prometheus_text.h"

#include <cstdlib>
#include <regex>
#include <sstream>

namespace tw::test {

namespace {

const std::regex kComment{R"(# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+))"};
const std::regex kSample{
    R"(([a-zA-Z_:][a-zA-Z0-9_:]*)(\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+))"};
const std::regex kLabel{R"xx(([a-zA-Z_][a-zA-Z0-9_]*)="(?:[^"\\\n]|\\["\\n])*")xx"};

/// Returns the family of a sample; the samples of a summary have suffixes.
std::string family_of(const PrometheusText& text, const std::string& name) {
    for (const std::string suffix : {"_sum", "_count"}) {
        if (name.ends_with(suffix)) {
            std::string stem = name.substr(0, name.size() - suffix.size());
            if (const auto found = text.types.find(stem);
                found != text.types.end() && found->second == "summary") {
                return stem;
            }
        }
    }
    return name;
}

void read_sample(const std::string& line, PrometheusText& out) {
    std::smatch parts;
    if (!std::regex_match(line, parts, kSample)) {
        out.complaints.push_back("no sample: " + line);
        return;
    }
    const std::string family = family_of(out, parts[1]);
    if (!out.types.contains(family)) {
        out.complaints.push_back("no TYPE before: " + line);
    }
    const std::string labels = parts[3];
    for (std::sregex_iterator at{labels.begin(), labels.end(), kLabel}, end; at != end; ++at) {
        out.labels.emplace((*at)[1], family);
    }
    char* rest = nullptr;
    const std::string number = parts[4];
    const double value = std::strtod(number.c_str(), &rest);
    if (rest != number.c_str() + number.size()) {
        out.complaints.push_back("no number: " + line);
    }
    if (!out.samples.emplace(std::string{parts[1]} + std::string{parts[2]}, value).second) {
        out.complaints.push_back("twice: " + line);
    }
}

void read_comment(const std::string& line, PrometheusText& out) {
    std::smatch parts;
    if (!std::regex_match(line, parts, kComment)) {
        out.complaints.push_back("no HELP or TYPE: " + line);
        return;
    }
    const std::string name = parts[2];
    const std::string word = parts[3];
    if (parts[1] == "HELP") {
        return;
    }
    if (!out.types.emplace(name, word).second) {
        out.complaints.push_back("two families of one name: " + name);
    }
    if ((word == "counter") != name.ends_with("_total")) {
        out.complaints.push_back("_total is for counters: " + name);
    }
    for (const std::string unit : {"_ms", "_us", "_milliseconds", "_microseconds", "_kilobytes"}) {
        if (name.find(unit + '_') != std::string::npos || name.ends_with(unit)) {
            out.complaints.push_back("no base unit: " + name);
        }
    }
}

} // namespace

PrometheusText read_prometheus_text(std::string_view text) {
    PrometheusText out;
    std::istringstream lines{std::string{text}};
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with('#')) {
            read_comment(line, out);
        } else if (!line.empty()) {
            read_sample(line, out);
        }
    }
    if (text.empty() || text.back() != '\n') {
        out.complaints.emplace_back("the last line has no end");
    }
    return out;
}

} // namespace tw::test
