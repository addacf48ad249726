#include "proxy/bus/spool_state.h"

#include "proxy/bus/subjects.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace tw::bus {

namespace {

constexpr std::size_t kDigits = 20;
constexpr std::size_t kRunLength = 36;
constexpr std::string_view kLines = ".jsonl";
constexpr std::string_view kState = ".state";
constexpr std::string_view kForStream = " stream=";

/// Takes a word from the front of a text. False: it does not begin so.
bool take(std::string_view& text, std::string_view word) {
    if (!text.starts_with(word)) {
        return false;
    }
    text.remove_prefix(word.size());
    return true;
}

std::optional<std::uint64_t> take_number(std::string_view& text) {
    std::uint64_t number = 0;
    const char* const end = text.data() + std::min(text.size(), kDigits);
    const auto parsed = std::from_chars(text.data(), end, number);
    if (text.size() < kDigits || parsed.ec != std::errc{} || parsed.ptr != end) {
        return std::nullopt;
    }
    text.remove_prefix(kDigits);
    return number;
}

bool is_run(std::string_view text) {
    return text.size() == kRunLength &&
           text.find_first_not_of("0123456789abcdef-") == std::string_view::npos;
}

} // namespace

std::string spool_state_text(const SpoolState& state) {
    const std::string place =
        state.place ? fmt::format("{:020}", *state.place) : std::string(kDigits, '-');
    return fmt::format("settled={:020} place={} server={}{}{}\n", state.settled, place,
                       state.server, state.stream.empty() ? "" : kForStream, state.stream);
}

std::optional<SpoolState> read_spool_state(std::string_view text) {
    SpoolState state;
    if (!take(text, "settled=")) {
        return std::nullopt;
    }
    const auto settled = take_number(text);
    if (!settled || !take(text, " place=")) {
        return std::nullopt;
    }
    state.settled = *settled;
    if (!take(text, std::string(kDigits, '-'))) {
        state.place = take_number(text);
        if (!state.place) {
            return std::nullopt;
        }
    }
    if (!take(text, " server=") || !text.ends_with('\n')) {
        return std::nullopt;
    }
    text.remove_suffix(1);
    const auto stream = text.find(kForStream);
    state.server = text.substr(0, stream);
    if (stream != std::string_view::npos) {
        state.stream = text.substr(stream + kForStream.size());
    }
    const bool named = stream == std::string_view::npos || is_subject_token(state.stream);
    return named && is_subject_server(state.server) ? std::optional{state} : std::nullopt;
}

std::string spool_file_name(std::string_view run, std::uint64_t first) {
    return fmt::format("{}-{:020}{}", run, first, kLines);
}

std::optional<SpoolFile> read_spool_file_name(std::string_view name) {
    const std::string_view run = name.substr(0, kRunLength);
    std::string_view rest = name.substr(run.size());
    if (!is_run(run) || !take(rest, "-")) {
        return std::nullopt;
    }
    const auto first = take_number(rest);
    if (!first || *first == 0 || rest != kLines) {
        return std::nullopt;
    }
    return SpoolFile{.run = std::string{run}, .first = *first};
}

std::string spool_state_name(std::string_view run) {
    return std::string{run}.append(kState);
}

std::optional<std::string> run_of_state_name(std::string_view name) {
    if (!name.ends_with(kState)) {
        return std::nullopt;
    }
    name.remove_suffix(kState.size());
    return is_run(name) ? std::optional{std::string{name}} : std::nullopt;
}

} // namespace tw::bus
