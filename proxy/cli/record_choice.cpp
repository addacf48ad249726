#include "proxy/cli/record_choice.h"

#include "proxy/cli/settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace tw::cli {

namespace {

/// Whether a number of a time is one that clocks show.
bool is_on_clocks(std::string_view text, std::size_t at, int least, int most) {
    if (text.size() <= at) {
        return true;
    }
    int number = 0;
    std::from_chars(text.data() + at, text.data() + at + 2, number);
    return number >= least && number <= most;
}

int days_of(std::string_view month) {
    int year = 0;
    int number = 0;
    std::from_chars(month.data(), month.data() + 4, year);
    std::from_chars(month.data() + 5, month.data() + 7, number);
    const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    constexpr std::array<int, 12> kDays{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return number == 2 && leap ? 29 : kDays.at(static_cast<std::size_t>(number - 1));
}

/// What begins with a zero would be read as octal.
bool is_session(const std::string& text) {
    std::uint32_t number = 0;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number);
    return read.ec == std::errc{} && read.ptr == end && text.front() != '0';
}

} // namespace

CLI::Validator session_number() {
    return CLI::Validator{[](const std::string& text) {
                              return is_session(text) ? std::string{}
                                                      : "expected a session number, from 1";
                          },
                          ""};
}

CLI::Validator session_or_worlds() {
    return CLI::Validator{[](const std::string& text) {
                              return text == "0" || is_session(text)
                                         ? std::string{}
                                         : "expected a session number, or 0 for worlds";
                          },
                          ""};
}

std::string time_of(std::string_view flag, const std::string& given) {
    constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:dd.dddddd";
    constexpr std::array<std::size_t, 6> kEnds{4, 7, 10, 13, 16, 19};
    constexpr std::size_t kSecond = 19;
    std::string text = given;
    if (text.size() >= kSecond && text.back() == 'Z') {
        text.pop_back();
    }
    const bool whole = std::find(kEnds.begin(), kEnds.end(), text.size()) != kEnds.end() ||
                       (text.size() > kSecond + 1 && text.size() <= kShape.size());
    const bool shaped =
        whole && std::equal(text.begin(), text.end(), kShape.begin(), [](char got, char shape) {
            return shape == 'd' ? got >= '0' && got <= '9' : got == shape;
        });
    const bool fits = shaped && is_on_clocks(text, 5, 1, 12) &&
                      (text.size() <= 8 || is_on_clocks(text, 8, 1, days_of(text))) &&
                      is_on_clocks(text, 11, 0, 23) && is_on_clocks(text, 14, 0, 59) &&
                      is_on_clocks(text, 17, 0, 59);
    if (!text.empty() && !fits) {
        throw UsageError{fmt::format(
            "{} {}: expected a time in UTC, or the beginning of one, for example 2026-11-21T20:15",
            flag, given)};
    }
    return text;
}

} // namespace tw::cli
