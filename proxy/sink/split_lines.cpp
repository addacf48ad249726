#include "proxy/sink/split_lines.h"

#include "proxy/base/numbers.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tw::sink {

namespace {

/// The keys whose arrays are divided among lines.
constexpr std::array<std::string_view, 3> kDividedKeys{"items", "removed", "renumbered"};
/// The key that is only in a record's first line, because the other lines do not list all items.
constexpr std::string_view kFullKey = "full";
/// The most bytes of `,"line":K,"lines":N` with numbers of 32 bits.
constexpr std::size_t kMaxMarkBytes = 40;

struct Member {
    std::string_view key;
    std::string_view value;
    bool is_divisible = false; ///< the value is an array whose elements may go to several lines
    std::vector<std::string_view> elements{};

    /// Returns the member's size in bytes, with a comma, without the elements of a divided array.
    [[nodiscard]] std::size_t size() const {
        constexpr std::size_t kAround = 4; // two quotes, a colon, a comma
        return key.size() + kAround + (is_divisible ? 2 : value.size());
    }
};

using Members = std::vector<Member>;

/// Returns the members of a JSON object, or the elements of an array; nullopt if the text is
/// neither. Looks only at strings, brackets and commas.
std::optional<std::vector<std::string_view>> parts_of(std::string_view text) {
    const bool is_enclosed = (text.starts_with('{') && text.ends_with('}')) ||
                             (text.starts_with('[') && text.ends_with(']'));
    if (!is_enclosed || text.size() <= 2) {
        return is_enclosed ? std::optional{std::vector<std::string_view>{}} : std::nullopt;
    }
    std::vector<std::string_view> parts;
    std::size_t begin = 1;
    std::size_t depth = 1;
    bool in_string = false;
    for (std::size_t i = 1; i < text.size() && depth != 0; ++i) {
        const char c = text[i];
        if (in_string) {
            i += c == '\\' ? 1 : 0;
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            ++depth;
        } else if (c == ']' || c == '}') {
            --depth;
        }
        if (depth == 0 || (depth == 1 && !in_string && c == ',')) {
            parts.push_back(text.substr(begin, i - begin));
            begin = i + 1;
        }
    }
    return begin == text.size() ? std::optional{std::move(parts)} : std::nullopt;
}

/// Returns the members of a record; nullopt if JsonLines cannot have written the line.
std::optional<Members> members_of(std::string_view line) {
    const auto parts = line.starts_with('{') ? parts_of(line) : std::nullopt;
    if (!parts) {
        return std::nullopt;
    }
    Members members;
    for (const std::string_view part : *parts) {
        const std::size_t quote = part.find('"', 1);
        if (!part.starts_with('"') || quote == std::string_view::npos ||
            part.substr(quote + 1, 1) != ":") {
            return std::nullopt;
        }
        Member member{.key = part.substr(1, quote - 1), .value = part.substr(quote + 2)};
        if (std::ranges::find(kDividedKeys, member.key) != kDividedKeys.end() &&
            member.value.starts_with('[')) {
            auto elements = parts_of(member.value);
            member.is_divisible = elements.has_value();
            member.elements = std::move(elements).value_or(std::vector<std::string_view>{});
        }
        members.push_back(std::move(member));
    }
    return members;
}

/// Appends the members as a JSON object, without its closing bracket.
void append_members(const Members& members, JsonBuffer& out) {
    out.append('{');
    for (const Member& member : members) {
        out.append_key(member.key);
        if (!member.is_divisible) {
            out.append(member.value);
            continue;
        }
        out.append('[');
        for (const std::string_view element : member.elements) {
            if (out.back() != '[') {
                out.append(',');
            }
            out.append(element);
        }
        out.append(']');
    }
}

/// Divides the elements of a record's arrays among lines, each with at most `room` bytes of
/// elements.
std::vector<Members> divide_members(const Members& record, std::size_t room) {
    Members empty = record; // the record without elements
    for (Member& member : empty) {
        member.elements.clear();
    }
    std::vector<Members> lines{empty};
    std::erase_if(empty, [](const Member& member) { return member.key == kFullKey; });
    std::size_t used = 0;
    for (const Member& member : record) {
        for (const std::string_view element : member.elements) {
            const std::size_t size = element.size() + 1;
            if (used + size > room && used != 0) {
                lines.push_back(empty);
                used = 0;
            }
            std::ranges::find(lines.back(), member.key, &Member::key)->elements.push_back(element);
            used += size;
        }
    }
    return lines;
}

/// The number of a line among the lines of its record.
struct SplitMark {
    std::uint32_t line = 0; ///< from 1
    std::uint32_t lines = 0;
};

/// Reads `,"line":K,"lines":N}` at the end of a line; nullopt if the line does not end so. No
/// string in a record can contain this text, because quotes in strings are escaped.
std::optional<SplitMark> read_split_mark(std::string_view line) {
    constexpr std::string_view kLine = R"(,"line":)";
    constexpr std::string_view kLines = R"(,"lines":)";
    line.remove_prefix(line.size() - std::min(line.size(), kMaxMarkBytes + 1));
    const std::size_t first = line.find(kLine);
    const std::size_t second = line.find(kLines);
    if (first == std::string_view::npos || second == std::string_view::npos || first > second ||
        !line.ends_with('}')) {
        return std::nullopt;
    }
    line.remove_suffix(1);
    const std::size_t begin = first + kLine.size();
    const auto number = base::parse_number<std::uint32_t>(line.substr(begin, second - begin));
    const auto lines = base::parse_number<std::uint32_t>(line.substr(second + kLines.size()));
    return number && lines && *number >= 1 && *number <= *lines
               ? std::optional{SplitMark{*number, *lines}}
               : std::nullopt;
}

/// Returns the record that was split into these lines; nullopt if they are not of one record.
std::optional<std::string> join_record(const std::vector<std::string>& lines) {
    constexpr std::size_t kMarks = 2; // the members `line` and `lines` at the end
    Members record;
    for (const std::string& line : lines) {
        auto members = members_of(line);
        if (!members || members->size() <= kMarks) {
            return std::nullopt;
        }
        members->resize(members->size() - kMarks);
        if (record.empty()) {
            record = *std::move(members);
            continue;
        }
        for (const Member& member : *members) {
            const auto same = std::ranges::find(record, member.key, &Member::key);
            if (same == record.end() || same->is_divisible != member.is_divisible ||
                (!member.is_divisible && same->value != member.value)) {
                return std::nullopt;
            }
            same->elements.insert(same->elements.end(), member.elements.begin(),
                                  member.elements.end());
        }
    }
    JsonBuffer out;
    append_members(record, out);
    out.append('}');
    return std::string{out.view()};
}

} // namespace

bool split_line(std::string_view line, std::size_t limit, JsonBuffer& out) {
    const auto record = line.size() < limit ? std::nullopt : members_of(line);
    if (!record) {
        return false;
    }
    std::size_t fixed = kMaxMarkBytes + 3; // the brackets and the newline
    for (const Member& member : *record) {
        fixed += member.size();
    }
    const std::vector<Members> lines = divide_members(*record, limit - std::min(limit, fixed));
    if (lines.size() == 1) {
        return false;
    }
    for (std::size_t i = 0; i < lines.size(); ++i) {
        append_members(lines[i], out);
        out.append(std::string_view{R"(,"line":)"});
        out.append_int(static_cast<std::int64_t>(i + 1));
        out.append(std::string_view{R"(,"lines":)"});
        out.append_int(static_cast<std::int64_t>(lines.size()));
        out.append(std::string_view{"}\n"});
    }
    return true;
}

void LineJoiner::add_line(std::string_view line, const LineHandler& handle_line) {
    const auto mark = read_split_mark(line);
    if (!held_lines_.empty() &&
        (!mark || mark->lines != num_lines_ || mark->line != held_lines_.size() + 1)) {
        flush_incomplete_record(handle_line);
    }
    if (!mark || mark->line != held_lines_.size() + 1 || mark->lines == 1 ||
        held_bytes_ + line.size() > kMaxLineBytes) {
        flush_incomplete_record(handle_line);
        handle_line(line);
        return;
    }
    held_lines_.emplace_back(line);
    held_bytes_ += line.size();
    num_lines_ = mark->lines;
    if (held_lines_.size() < num_lines_) {
        return;
    }
    if (const auto record = join_record(held_lines_)) {
        held_lines_.clear();
        handle_line(*record);
    }
    flush_incomplete_record(handle_line);
}

void LineJoiner::flush_incomplete_record(const LineHandler& handle_line) {
    for (const std::string& line : std::exchange(held_lines_, {})) {
        handle_line(line);
    }
    held_bytes_ = 0;
}

} // namespace tw::sink
