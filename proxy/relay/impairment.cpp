#include "proxy/relay/impairment.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <span>

namespace tw::relay {

namespace {

using Error = tl::unexpected<std::string>;
template <typename T>
using Result = tl::expected<T, std::string>;

/// Decimals that a value may have: units are chosen so that six reach the smallest step.
constexpr std::size_t kMaxDecimals = 6;
constexpr std::size_t kMaxDigits = 9; ///< before the point; keeps all arithmetic within 64 bits
constexpr std::uint64_t kMillion = 1'000'000;
constexpr std::string_view kBlanks = " \t\r\n";

std::string_view trim(std::string_view text) {
    const auto first = text.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// Takes what stands before the separator off the text.
std::string_view take_until(std::string_view& text, char separator) {
    const auto end = text.find(separator);
    const auto taken = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    return trim(taken);
}

/// What was written, for a message: bounded, and nothing a terminal obeys.
std::string quoted(std::string_view text) {
    constexpr std::size_t kShown = 40;
    std::string shown = "'";
    for (const char c : text.substr(0, kShown)) {
        shown += c >= ' ' && c <= '~' ? c : '?';
    }
    return shown + (text.size() > kShown ? "...'" : "'");
}

/// A unit, and how many of the smallest steps it holds.
struct Unit {
    std::string_view name;
    std::uint64_t steps;
};

constexpr std::array<Unit, 3> kTimes{{{"us", 1}, {"ms", 1000}, {"s", kMillion}}};
constexpr std::array<Unit, 1> kShares{{{"%", LineImpairment::kCertain / 100}}};
constexpr std::array<Unit, 1> kCounts{{{"", 1000}}};
constexpr std::array<Unit, 3> kRates{
    {{"kbit", 1000}, {"mbit", kMillion}, {"gbit", 1000 * kMillion}}};

/// What may be set: its unit, its range in the smallest steps, and where the value goes.
struct Setting {
    std::string_view name;
    std::span<const Unit> units;
    std::uint64_t min;
    std::uint64_t max;
    std::string_view expected;
    void (*set)(LineImpairment& line, std::uint64_t value);
    std::uint64_t (*get)(const LineImpairment& line); ///< 0: not set
};

constexpr auto kMaxDelaySteps = static_cast<std::uint64_t>(kMaxImpairDelay.count());
constexpr std::string_view kTimeText = "a time up to 10s, for example 40ms";
constexpr std::string_view kShareText = "a share from 0% to 100%, for example 2%";

std::chrono::microseconds time_of(std::uint64_t steps) {
    return std::chrono::microseconds{static_cast<std::int64_t>(steps)};
}

constexpr std::array<Setting, 7> kSettings{{
    {"delay", kTimes, 0, kMaxDelaySteps, kTimeText,
     [](LineImpairment& line, std::uint64_t value) { line.delay = time_of(value); },
     [](const LineImpairment& line) { return static_cast<std::uint64_t>(line.delay.count()); }},
    {"jitter", kTimes, 0, kMaxDelaySteps, kTimeText,
     [](LineImpairment& line, std::uint64_t value) { line.jitter = time_of(value); },
     [](const LineImpairment& line) { return static_cast<std::uint64_t>(line.jitter.count()); }},
    {"loss", kShares, 0, LineImpairment::kCertain, kShareText,
     [](LineImpairment& line, std::uint64_t value) {
         line.loss = static_cast<std::uint32_t>(value);
     },
     [](const LineImpairment& line) { return std::uint64_t{line.loss}; }},
    {"dup", kShares, 0, LineImpairment::kCertain, kShareText,
     [](LineImpairment& line, std::uint64_t value) {
         line.duplicate = static_cast<std::uint32_t>(value);
     },
     [](const LineImpairment& line) { return std::uint64_t{line.duplicate}; }},
    {"reorder", kShares, 0, LineImpairment::kCertain, kShareText,
     [](LineImpairment& line, std::uint64_t value) {
         line.reorder = static_cast<std::uint32_t>(value);
     },
     [](const LineImpairment& line) { return std::uint64_t{line.reorder}; }},
    {"burst", kCounts, 1000, std::uint64_t{kMaxImpairBurst} * 1000,
     "the mean number of losses in a row, from 1 to 1000, for example 3",
     [](LineImpairment& line, std::uint64_t value) {
         line.burst = static_cast<std::uint32_t>(value);
     },
     [](const LineImpairment& line) { return std::uint64_t{line.burst.value_or(0)}; }},
    {"rate", kRates, kMinImpairRate, kMaxImpairRate,
     "bits a second from 64kbit to 100gbit, for example 1mbit",
     [](LineImpairment& line, std::uint64_t value) { line.rate = value; },
     [](const LineImpairment& line) { return line.rate.value_or(0); }},
}};

using Seen = std::array<bool, kSettings.size()>;

/// Up to nine digits, perhaps a point and up to six more, times `steps`; nothing when it is not
/// that, or not a whole number of steps.
std::optional<std::uint64_t> scaled(std::string_view digits, std::uint64_t steps) {
    const auto point = digits.find('.');
    const auto whole = digits.substr(0, point);
    const auto rest =
        point == std::string_view::npos ? std::string_view{} : digits.substr(point + 1);
    const auto number = [](std::string_view text) -> std::optional<std::uint64_t> {
        std::uint64_t value = 0;
        const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool all = parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size();
        return all ? std::optional{value} : std::nullopt;
    };
    if (whole.size() > kMaxDigits || rest.size() > kMaxDecimals ||
        (point != std::string_view::npos && rest.empty())) {
        return std::nullopt;
    }
    const auto integer = number(whole);
    const auto decimals = rest.empty() ? std::optional<std::uint64_t>{0} : number(rest);
    if (!integer || !decimals) {
        return std::nullopt;
    }
    std::uint64_t parts = 1;
    for (std::size_t i = 0; i < rest.size(); ++i) {
        parts *= 10;
    }
    if (*decimals * steps % parts != 0) {
        return std::nullopt;
    }
    return *integer * steps + *decimals * steps / parts;
}

Result<std::uint64_t> parse_value(const Setting& setting, std::string_view text) {
    const auto end = text.find_first_not_of("0123456789.");
    const auto digits = text.substr(0, end);
    const auto name = end == std::string_view::npos ? std::string_view{} : trim(text.substr(end));
    const auto unit = std::find_if(setting.units.begin(), setting.units.end(),
                                   [&](const Unit& each) { return each.name == name; });
    const auto value = unit == setting.units.end() ? std::nullopt : scaled(digits, unit->steps);
    if (!value || *value < setting.min || *value > setting.max) {
        return Error{std::string{setting.name} + " is " + std::string{setting.expected} + ", not " +
                     quoted(text)};
    }
    return *value;
}

Result<std::size_t> find_setting(std::string_view name) {
    const auto found = std::find_if(kSettings.begin(), kSettings.end(),
                                    [&](const Setting& each) { return each.name == name; });
    if (found != kSettings.end()) {
        return static_cast<std::size_t>(found - kSettings.begin());
    }
    std::string names;
    for (const Setting& each : kSettings) {
        names += (names.empty() ? "" : ", ") + std::string{each.name};
    }
    return Error{quoted(name) + " is not a setting; the settings are " + names};
}

/// Which directions a section is about; takes the prefix off.
Result<std::span<const std::size_t>> take_directions(std::string_view& section) {
    static constexpr std::array<std::size_t, 2> kBoth{0, 1};
    const auto colon = section.find(':');
    if (colon == std::string_view::npos) {
        return std::span<const std::size_t>{kBoth};
    }
    const auto name = trim(section.substr(0, colon));
    if (name != "c2s" && name != "s2c") {
        return Error{
            quoted(name) +
            " is not a direction; write c2s: (client to server), s2c:, or nothing for both"};
    }
    section = section.substr(colon + 1);
    return std::span<const std::size_t>{kBoth}.subspan(name == "c2s" ? 0 : 1, 1);
}

Result<void> parse_section(std::string_view section, Impairment& impairment,
                           std::array<Seen, 2>& seen) {
    const auto directions = take_directions(section);
    if (!directions) {
        return Error{directions.error()};
    }
    do {
        std::string_view text = take_until(section, ',');
        const bool has_value = text.find('=') != std::string_view::npos;
        const std::string_view name = take_until(text, '=');
        if (!has_value) {
            return Error{"expected name=value, for example loss=2%, not " + quoted(name)};
        }
        const auto index = find_setting(name);
        if (!index) {
            return Error{index.error()};
        }
        const auto value = parse_value(kSettings[*index], trim(text));
        if (!value) {
            return Error{value.error()};
        }
        for (const std::size_t direction : *directions) {
            if (seen[direction][*index]) {
                return Error{std::string{name} + " is given twice for " +
                             (direction == 0 ? "c2s" : "s2c")};
            }
            seen[direction][*index] = true;
            kSettings[*index].set(impairment.directions[direction], *value);
        }
    } while (!section.empty());
    return {};
}

/// What no single setting shows.
Result<void> check(const LineImpairment& line) {
    if (line.jitter > line.delay) {
        return Error{"jitter must not exceed delay: nothing arrives before it was sent"};
    }
    if (!line.burst) {
        return {};
    }
    if (line.loss == 0) {
        return Error{"burst is the number of losses in a row, so it needs a loss"};
    }
    // A line that loses n in a row and then lets at least one pass cannot lose more than n/(n+1).
    const std::uint64_t burst = *line.burst;
    if (std::uint64_t{line.loss} * (burst + 1000) > burst * LineImpairment::kCertain) {
        return Error{"bursts that short cannot lose so much; use a longer burst or less loss"};
    }
    return {};
}

/// In the largest unit that needs no decimals, else the smallest there is.
std::string value_text(std::uint64_t value, std::span<const Unit> units) {
    const auto* unit = &units.back();
    while (unit != &units.front() && value % unit->steps != 0) {
        --unit;
    }
    std::string text = std::to_string(value / unit->steps);
    if (std::uint64_t rest = value % unit->steps; rest != 0) {
        text += '.';
        for (std::uint64_t digit = unit->steps / 10; rest != 0; digit /= 10) {
            text += static_cast<char>('0' + rest / digit);
            rest %= digit;
        }
    }
    return text + std::string{unit->name};
}

std::string line_text(const LineImpairment& line) {
    std::string text;
    for (const Setting& setting : kSettings) {
        if (const std::uint64_t value = setting.get(line); value != 0) {
            text += (text.empty() ? "" : ",") + std::string{setting.name} + '=' +
                    value_text(value, setting.units);
        }
    }
    return text;
}

} // namespace

tl::expected<Impairment, std::string> parse_impairment(std::string_view text, std::uint64_t seed) {
    Impairment impairment;
    impairment.seed = seed;
    std::string_view rest = trim(text);
    if (rest == "none") {
        return impairment;
    }
    std::array<Seen, 2> seen{};
    do {
        if (const auto done = parse_section(take_until(rest, ';'), impairment, seen); !done) {
            return Error{done.error()};
        }
    } while (!rest.empty());
    for (const LineImpairment& line : impairment.directions) {
        if (const auto good = check(line); !good) {
            return Error{good.error()};
        }
    }
    return impairment;
}

std::string to_string(const Impairment& impairment) {
    const auto& [c2s, s2c] = impairment.directions;
    if (!impairment.active()) {
        return "none";
    }
    if (c2s == s2c) {
        return line_text(c2s);
    }
    std::string text;
    if (c2s != LineImpairment{}) {
        text = "c2s:" + line_text(c2s);
    }
    if (s2c != LineImpairment{}) {
        text += (text.empty() ? "s2c:" : ";s2c:") + line_text(s2c);
    }
    return text;
}

} // namespace tw::relay
