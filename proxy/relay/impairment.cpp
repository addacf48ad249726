#include "proxy/relay/impairment.h"

#include "proxy/base/numbers.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tw::relay {

namespace {

using Error = tl::unexpected<std::string>;
template <typename T>
using Result = tl::expected<T, std::string>;

constexpr std::uint64_t kMillion = 1'000'000;
constexpr std::string_view kBlanks = " \t\r\n";

std::string_view trim(std::string_view text) {
    const auto first = text.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// Returns the text before the separator. Removes that text and the separator from `text`.
std::string_view take_until(std::string_view& text, char separator) {
    const auto end = text.find(separator);
    const auto taken = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    return trim(taken);
}

/// Returns the input in quotes for an error message, shortened and without control characters.
std::string quoted(std::string_view text) {
    constexpr std::size_t kShown = 40;
    std::string shown = "'";
    for (const char c : text.substr(0, kShown)) {
        shown += c >= ' ' && c <= '~' ? c : '?';
    }
    return shown + (text.size() > kShown ? "...'" : "'");
}

/// A unit of a setting. `steps`: the number of the setting's smallest steps in one unit.
struct SettingUnit {
    std::string_view name;
    std::uint64_t steps;
};

constexpr std::array<SettingUnit, 3> kTimeUnits{{{"us", 1}, {"ms", 1000}, {"s", kMillion}}};
constexpr std::array<SettingUnit, 1> kShareUnits{{{"%", DirectionImpairment::kCertainPpm / 100}}};
constexpr std::array<SettingUnit, 1> kBurstUnits{{{"", 1000}}};
constexpr std::array<SettingUnit, 3> kRateUnits{
    {{"kbit", 1000}, {"mbit", kMillion}, {"gbit", 1000 * kMillion}}};

/// A setting: its units, its range in smallest steps, and the member that stores its value.
struct Setting {
    std::string_view name;
    std::span<const SettingUnit> units;
    std::uint64_t min;
    std::uint64_t max;
    std::string_view expected_text;
    std::uint64_t DirectionImpairment::*value; ///< a member that is 0 if the setting is not set
};

constexpr std::uint64_t kCertainPpm = DirectionImpairment::kCertainPpm;
constexpr std::string_view kTimeText = "a time up to 10s, for example 40ms";
constexpr std::string_view kShareText = "a share from 0% to 100%, for example 2%";

constexpr std::array<Setting, 7> kSettings{{
    {"delay", kTimeUnits, 0, kMaxImpairDelayUs, kTimeText, &DirectionImpairment::delay_us},
    {"jitter", kTimeUnits, 0, kMaxImpairDelayUs, kTimeText, &DirectionImpairment::jitter_us},
    {"loss", kShareUnits, 0, kCertainPpm, kShareText, &DirectionImpairment::loss_ppm},
    {"dup", kShareUnits, 0, kCertainPpm, kShareText, &DirectionImpairment::duplicate_ppm},
    {"reorder", kShareUnits, 0, kCertainPpm, kShareText, &DirectionImpairment::reorder_ppm},
    {"burst", kBurstUnits, 1000, kMaxImpairBurstDatagrams * 1000,
     "the mean number of losses in a row, from 1 to 1000, for example 3",
     &DirectionImpairment::burst_thousandths},
    {"rate", kRateUnits, kMinImpairBitsPerSecond, kMaxImpairBitsPerSecond,
     "bits a second from 64kbit to 100gbit, for example 1mbit",
     &DirectionImpairment::bits_per_second},
}};

using SettingsSeen = std::array<bool, kSettings.size()>;

/// Parses a number without exponent and multiplies it by `steps`. Returns nullopt if the text is
/// not such a number, or the product is not an integer or is greater than `max`.
std::optional<std::uint64_t> parse_scaled_number(std::string_view text, std::uint64_t steps,
                                                 std::uint64_t max) {
    const auto number = base::parse_number<double>(text);
    if (!number || text.front() == '.' || text.back() == '.') {
        return std::nullopt;
    }
    const auto scale = static_cast<double>(steps);
    const double product = std::round(*number * scale);
    return product / scale == *number && product <= static_cast<double>(max)
               ? std::optional{static_cast<std::uint64_t>(product)}
               : std::nullopt;
}

Result<std::uint64_t> parse_value(const Setting& setting, std::string_view text) {
    const auto end = text.find_first_not_of("0123456789.");
    const auto digits = text.substr(0, end);
    const auto name = end == std::string_view::npos ? std::string_view{} : trim(text.substr(end));
    const auto unit = std::find_if(setting.units.begin(), setting.units.end(),
                                   [&](const SettingUnit& each) { return each.name == name; });
    const auto value = unit == setting.units.end()
                           ? std::nullopt
                           : parse_scaled_number(digits, unit->steps, setting.max);
    if (!value || *value < setting.min) {
        return Error{
            fmt::format("{} is {}, not {}", setting.name, setting.expected_text, quoted(text))};
    }
    return *value;
}

Result<std::size_t> find_setting(std::string_view name) {
    const auto found = std::find_if(kSettings.begin(), kSettings.end(),
                                    [&](const Setting& each) { return each.name == name; });
    if (found != kSettings.end()) {
        return static_cast<std::size_t>(found - kSettings.begin());
    }
    std::array<std::string_view, kSettings.size()> names;
    std::ranges::transform(kSettings, names.begin(), &Setting::name);
    return Error{fmt::format("{} is not a setting; the settings are {}", quoted(name),
                             fmt::join(names, ", "))};
}

/// Returns the indices of the directions that a section applies to. Removes `c2s:` or `s2c:` from
/// the section's start.
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
                           std::array<SettingsSeen, 2>& seen) {
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
            impairment.directions[direction].*kSettings[*index].value = *value;
        }
    } while (!section.empty());
    return {};
}

/// Checks that the settings of one direction do not contradict each other.
Result<void> check_settings(const DirectionImpairment& settings) {
    if (settings.jitter_us > settings.delay_us) {
        return Error{"jitter must not exceed delay: nothing arrives before it was sent"};
    }
    if (settings.burst_thousandths == 0) {
        return {};
    }
    if (settings.loss_ppm == 0) {
        return Error{"burst is the number of losses in a row, so it needs a loss"};
    }
    // At least one datagram arrives between two bursts. So the loss is at most n/(n+1) if the mean
    // burst is n.
    if (settings.loss_ppm * (settings.burst_thousandths + 1000) >
        settings.burst_thousandths * kCertainPpm) {
        return Error{"bursts that short cannot lose so much; use a longer burst or less loss"};
    }
    return {};
}

/// Returns a value as text in the largest unit that needs no decimals. If every unit needs
/// decimals, uses the smallest unit.
std::string value_text(std::uint64_t value, std::span<const SettingUnit> units) {
    const auto* unit = &units.back();
    while (unit != &units.front() && value % unit->steps != 0) {
        --unit;
    }
    return value % unit->steps == 0
               ? fmt::format("{}{}", value / unit->steps, unit->name)
               : fmt::format("{}{}", static_cast<double>(value) / static_cast<double>(unit->steps),
                             unit->name);
}

std::string direction_text(const DirectionImpairment& settings) {
    std::string text;
    for (const Setting& setting : kSettings) {
        if (const std::uint64_t value = settings.*setting.value; value != 0) {
            text += fmt::format("{}{}={}", text.empty() ? "" : ",", setting.name,
                                value_text(value, setting.units));
        }
    }
    return text;
}

using std::chrono::microseconds;
using std::chrono::nanoseconds;

/// SplitMix64's finalizer: maps neighbouring numbers to unrelated ones.
constexpr std::uint64_t mix_bits(std::uint64_t value) noexcept {
    value += 0x9e3779b97f4a7c15U;
    value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
    value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
    return value ^ (value >> 31U);
}

/// Maps a random number to 0 … end − 1.
constexpr std::uint64_t map_to_range(std::uint64_t drawn, std::uint64_t end) noexcept {
    return (drawn >> 32U) * end >> 32U;
}

nanoseconds transmission_time(std::size_t bytes, std::uint64_t bits_a_second) noexcept {
    constexpr std::uint64_t kSecond = 1'000'000'000;
    return nanoseconds{static_cast<std::int64_t>(bytes * 8 * kSecond / bits_a_second)};
}

} // namespace

tl::expected<Impairment, std::string> parse_impairment(std::string_view text, std::uint64_t seed) {
    Impairment impairment;
    impairment.seed = seed;
    std::string_view rest = trim(text);
    if (rest == "none") {
        return impairment;
    }
    std::array<SettingsSeen, 2> seen{};
    do {
        if (const auto done = parse_section(take_until(rest, ';'), impairment, seen); !done) {
            return Error{done.error()};
        }
    } while (!rest.empty());
    for (const DirectionImpairment& settings : impairment.directions) {
        if (const auto good = check_settings(settings); !good) {
            return Error{good.error()};
        }
    }
    return impairment;
}

std::string to_string(const Impairment& impairment) {
    const auto& [c2s, s2c] = impairment.directions;
    if (!impairment.is_active()) {
        return "none";
    }
    if (c2s == s2c) {
        return direction_text(c2s);
    }
    std::string text;
    if (c2s != DirectionImpairment{}) {
        text = "c2s:" + direction_text(c2s);
    }
    if (s2c != DirectionImpairment{}) {
        text += (text.empty() ? "s2c:" : ";s2c:") + direction_text(s2c);
    }
    return text;
}

std::uint64_t ImpairedDirection::draw_random_number(RandomDraw what) const noexcept {
    return mix_bits(key_ + number_ * static_cast<std::uint64_t>(RandomDraw::count) +
                    static_cast<std::uint64_t>(what));
}

bool ImpairedDirection::happens_by_chance(RandomDraw what, std::uint64_t share) const noexcept {
    return map_to_range(draw_random_number(what), kCertainPpm) < share;
}

/// Decides whether the next datagram is lost. With `burst` this is Gilbert's model with a lossy and
/// a lossless state. The probability of leaving the lossy state follows from the mean burst; the
/// probability of entering it follows from the loss.
bool ImpairedDirection::decide_loss() noexcept {
    if (impairment_.burst_thousandths == 0) {
        return happens_by_chance(RandomDraw::loss, impairment_.loss_ppm);
    }
    constexpr double kThousand = 1000;
    const double leave = kThousand / static_cast<double>(impairment_.burst_thousandths);
    const double loss = static_cast<double>(impairment_.loss_ppm) / kCertainPpm;
    const double enter = leave * loss / (1 - loss);
    constexpr double kStep = 1.0 / static_cast<double>(std::uint64_t{1} << 53U);
    const double drawn = // in [0, 1)
        static_cast<double>(draw_random_number(RandomDraw::loss) >> 11U) * kStep;
    is_in_burst_ = is_in_burst_ ? drawn >= leave : drawn < enter;
    return is_in_burst_;
}

microseconds ImpairedDirection::draw_delay() const noexcept {
    const auto drawn =
        map_to_range(draw_random_number(RandomDraw::jitter), 2 * impairment_.jitter_us + 1);
    return microseconds{
        static_cast<std::int64_t>(impairment_.delay_us - impairment_.jitter_us + drawn)};
}

ImpairmentDecision ImpairedDirection::decide_next_datagram(Time now, std::size_t bytes) noexcept {
    ImpairmentDecision decision;
    if (decide_loss()) {
        decision.outcome = ImpairmentDecision::Outcome::dropped_by_chance;
    }
    decision.is_duplicated = happens_by_chance(RandomDraw::duplicate, impairment_.duplicate_ppm);
    decision.is_reordered = happens_by_chance(RandomDraw::reorder, impairment_.reorder_ppm);
    decision.send_time = now;
    if (impairment_.bits_per_second != 0) {
        rate_allows_next_ = std::max(rate_allows_next_, now);
        if (rate_allows_next_ - now > kMaxRateWait) {
            decision.outcome = ImpairmentDecision::Outcome::dropped_by_rate;
        } else {
            rate_allows_next_ +=
                transmission_time(bytes + kHeaderBytes, impairment_.bits_per_second);
            const auto at_once = transmission_time(kRateBurstBytes, impairment_.bits_per_second);
            decision.send_time = std::max(now, rate_allows_next_ - at_once);
        }
    }
    decision.send_time += draw_delay();
    if (decision.outcome == ImpairmentDecision::Outcome::pass) {
        decision.send_time = last_send_time_ = std::max(decision.send_time, last_send_time_);
    }
    ++number_;
    return decision;
}

void SessionImpairment::restart(const Impairment& impairment, std::uint32_t number) noexcept {
    session_number = number;
    for (std::size_t i = 0; i < directions.size(); ++i) {
        const std::uint64_t key =
            mix_bits(mix_bits(impairment.seed) + std::uint64_t{number} * 2 + i);
        directions[i] = ImpairedDirection{impairment.directions[i], key};
    }
}

void ImpairmentQueue::enqueue_datagram(void* owner, SessionImpairment& session, Direction direction,
                                       std::span<const std::byte> bytes, Time now) {
    const auto index = static_cast<std::size_t>(direction);
    ImpairmentTotals<Counter>& totals = (*totals_)[index];
    DueTime& held = session.reordered[index];
    totals.datagrams.add(1);
    const auto decision = session.directions[index].decide_next_datagram(now, bytes.size());
    if (decision.outcome != ImpairmentDecision::Outcome::pass) {
        const bool is_lost = decision.outcome == ImpairmentDecision::Outcome::dropped_by_chance;
        (is_lost ? totals.dropped_by_chance : totals.dropped_by_rate).add(1);
        return;
    }
    // At most one datagram is held at a time, and it is sent right after the next datagram. So a
    // datagram that arrives while another one is held is never held itself.
    const bool is_held = queue_.contains(held);
    const bool hold = decision.is_reordered && !is_held;
    const Time leaves = hold ? decision.send_time + kMaxReorderHold : decision.send_time;
    const auto due = push_datagram(owner, session, direction, bytes, leaves);
    if (!due) {
        totals.dropped_by_full_queue.add(1);
        return;
    }
    if (decision.is_duplicated) {
        const bool fits =
            push_datagram(owner, session, direction, bytes, decision.send_time).has_value();
        (fits ? totals.duplicated : totals.dropped_by_full_queue).add(1);
    }
    if (hold) {
        totals.reordered.add(1);
        held = *due;
    } else if (is_held) { // this datagram overtakes the held one
        if (decision.send_time < held.send_time) {
            auto overtaken = queue_.extract(held);
            overtaken.key() = {.send_time = decision.send_time, .order = ++last_order_};
            queue_.insert(std::move(overtaken));
        }
        held = {};
    }
}

std::optional<DueTime> ImpairmentQueue::push_datagram(void* owner, SessionImpairment& session,
                                                      Direction direction,
                                                      std::span<const std::byte> bytes,
                                                      Time leaves) {
    if (num_waiting() >= kMaxDatagrams || bytes_ + bytes.size() > kMaxBytes) {
        return std::nullopt;
    }
    const DueTime due{.send_time = leaves, .order = ++last_order_};
    queue_.emplace(
        due, WaitingDatagram{owner, &session, direction, {bytes.begin(), bytes.end(), &memory_}});
    bytes_ += bytes.size(); // comes after emplace(), which may throw
    ++session.num_waiting;
    return due;
}

} // namespace tw::relay
