#include "proxy/web/record_requests.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace tw::web {

namespace json = boost::json;

namespace {

constexpr std::size_t kMaxNesting = 4;
constexpr int kMaxFrameRate = 50;

/// A setting in a viewer's message.
struct ViewerSetting {
    std::string_view key;
    std::string_view expected; ///< the valid values, for error messages
    /// Writes the value into the message. Returns false if the value is invalid.
    bool (*parse)(const json::value& value, ViewerMessage& message);
};

bool parse_watched_session(const json::value& value, ViewerMessage& message) {
    const std::int64_t* const number = value.if_int64();
    const bool is_session =
        number != nullptr && *number > 0 && *number < std::int64_t{ViewerMessage::kNoSession};
    message.watched_session = value.is_null() ? ViewerMessage::kNoSession
                              : is_session    ? static_cast<std::uint32_t>(*number)
                                              : 0;
    return value.is_null() || is_session || (value.is_string() && value.get_string() == "all");
}

bool parse_frame_rate(const json::value& value, ViewerMessage& message) {
    const std::int64_t* const number = value.if_int64();
    message.frame_rate =
        number == nullptr
            ? 0
            : static_cast<int>(std::clamp<std::int64_t>(*number, 0, kMaxFrameRate + 1));
    return message.frame_rate > 0 && message.frame_rate <= kMaxFrameRate;
}

bool parse_log_filter(const json::value& value, ViewerMessage& message) {
    message.wants_log = value.is_string();
    message.log_filter = value.is_string() ? std::string{value.get_string()} : std::string{};
    return value.is_string() || value.is_null();
}

template <auto Flag>
bool parse_flag(const json::value& value, ViewerMessage& message) {
    const bool* const wanted = value.if_bool();
    message.*Flag = wanted != nullptr && *wanted;
    return wanted != nullptr;
}

constexpr std::array<ViewerSetting, 5> kSettings{
    {{"watch", "the number of a session, \"all\" or null", parse_watched_session},
     {"pace", "1 to 50 frames a second", parse_frame_rate},
     {"log", "a filter or null", parse_log_filter},
     {"bytes", "true or false", parse_flag<&ViewerMessage::wants_traffic>},
     {"again", "true or false", parse_flag<&ViewerMessage::wants_full_frame>}}};

} // namespace

tl::expected<ViewerMessage, std::string> parse_viewer_message(std::string_view text) {
    json::error_code error;
    json::parse_options options;
    options.max_depth = kMaxNesting;
    const json::value value = json::parse({text.data(), text.size()}, error, {}, options);
    if (error || !value.is_object()) {
        return tl::unexpected{std::string{"expected a JSON object"}};
    }
    ViewerMessage message;
    for (const auto& [key, wanted] : value.get_object()) {
        const auto* const setting = std::ranges::find(
            kSettings, std::string_view{key.data(), key.size()}, &ViewerSetting::key);
        if (setting == kSettings.end()) {
            return tl::unexpected{std::string{"keys are watch, pace, log, bytes, again"}};
        }
        if (!setting->parse(wanted, message)) {
            return tl::unexpected{
                fmt::format("\"{}\": expected {}", setting->key, setting->expected)};
        }
    }
    return message;
}

void LogRing::add_lines(std::string_view lines) {
    while (!lines.empty()) {
        const std::string_view line = lines.substr(0, lines.find('\n'));
        lines.remove_prefix(line.size() < lines.size() ? line.size() + 1 : line.size());
        lines_.emplace_back(line);
        bytes_ += line.size() + sizeof(std::string);
        ++last_number_;
        while (bytes_ > max_bytes_) {
            bytes_ -= lines_.front().size() + sizeof(std::string);
            lines_.pop_front();
        }
    }
}

void LogRing::clear() {
    lines_.clear();
    bytes_ = 0;
}

std::vector<std::string_view> LogRing::find_lines(std::uint64_t& number, const LineFilter& filter,
                                                  Clock::time_point until) const {
    std::vector<std::string_view> found;
    const std::uint64_t first = last_number_ - lines_.size();
    for (number = std::max(number, first); number < last_number_;) {
        const std::string_view line = lines_[static_cast<std::size_t>(number - first)];
        if (!filter || filter(line)) {
            found.push_back(line);
        }
        ++number;
        if (Clock::now() >= until) {
            break;
        }
    }
    return found;
}

std::size_t keep_newest_lines(std::vector<std::string_view>& lines, std::size_t max_lines,
                              std::size_t max_bytes) {
    std::size_t kept = 0;
    for (std::size_t bytes = 0; kept < std::min(lines.size(), max_lines); ++kept) {
        bytes += lines[lines.size() - 1 - kept].size() + 1;
        if (bytes > max_bytes) {
            break;
        }
    }
    const std::size_t gone = lines.size() - kept;
    lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(gone));
    return gone;
}

namespace {

constexpr std::size_t kMaxAnswerBytes = std::size_t{1} << 20U;
/// How long a due response may be delayed until all lines are filtered. After this time, an error
/// is sent instead.
constexpr std::chrono::milliseconds kMaxFilterDelay{1500};

std::string response_body(const LogRing& found, std::size_t limit) {
    std::uint64_t from = 0;
    auto lines = found.find_lines(from, {}, LogRing::Clock::time_point::max());
    std::ignore = keep_newest_lines(lines, limit, kMaxAnswerBytes);
    return fmt::format("{}{}", fmt::join(lines, "\n"), lines.empty() ? "" : "\n");
}

} // namespace

void RecordRequests::add_request(RecordRequest request) {
    // Twice the size of a response, because LogRing also counts the overhead of each line.
    waiting_.push_back({.request = std::move(request), .found = LogRing{2 * kMaxAnswerBytes}});
}

std::size_t RecordRequests::count_requests_of(const base::Network& peer) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        waiting_, [&peer](const WaitingRequest& waiting) { return waiting.request.peer == peer; }));
}

void RecordRequests::filter_lines(const LogRing& log, WaitingRequest& waiting) const {
    const auto until = Clock::now() + filter_time_per_viewer(waiting_.size());
    for (const std::string_view line :
         log.find_lines(waiting.last_filtered_line, waiting.request.filter, until)) {
        waiting.found.add_lines(line);
    }
}

void RecordRequests::filter_lines(const LogRing& log) {
    for (WaitingRequest& waiting : waiting_) {
        filter_lines(log, waiting);
    }
}

void RecordRequests::answer_due_requests(const LogRing& log, Clock::time_point now) {
    std::erase_if(waiting_, [&](WaitingRequest& waiting) {
        const RecordRequest& request = waiting.request;
        if (now < request.until) {
            return false;
        }
        filter_lines(log, waiting);
        if (waiting.last_filtered_line == log.last_number()) {
            request.respond({.content_type = "application/x-ndjson",
                             .body = response_body(waiting.found, request.limit)});
            return true;
        }
        if (now < request.until + kMaxFilterDelay) {
            return false;
        }
        request.respond(
            {.status = 503,
             .body = "the filter cannot keep up with the records; try a simpler one\n"});
        return true;
    });
}

} // namespace tw::web
