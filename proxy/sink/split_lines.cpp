#include "proxy/sink/split_lines.h"

#include "proxy/sink/byte_source.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>
#include <utility>

namespace tw::sink {

namespace {

/// The keys whose arrays are divided among lines.
constexpr std::array<std::string_view, 3> kDivided{"items", "removed", "renumbered"};
/// The key that is only in a record's first line, because the other lines do not list all items.
constexpr std::string_view kFull = "full";
/// The most bytes of `,"line":K,"lines":N` with numbers of 32 bits.
constexpr std::size_t kMarkBytes = 40;

/// A member of a record: its key and value as text.
struct Member {
    std::string_view key;
    std::string_view value;
    /// The elements, if the value is an array that can be divided; else nullopt.
    std::optional<std::vector<std::string_view>> elements{};

    /// Returns the member's size in bytes, with a comma and without elements of a divided array.
    [[nodiscard]] std::size_t size() const {
        constexpr std::size_t kAround = 4; // two quotes, a colon, a comma
        return key.size() + kAround + (elements ? 2 : value.size());
    }
};

/// Returns the size of the JSON value at the start of a text; 0 if the text does not start with a
/// value. Looks only at strings and brackets.
std::size_t value_size(std::string_view text) {
    std::size_t depth = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (in_string) {
            i += c == '\\' ? 1 : 0;
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            ++depth;
        } else if ((c == ']' || c == '}' || c == ',') && depth == 0) {
            return i;
        } else if (c == ']' || c == '}') {
            --depth;
        }
    }
    return 0;
}

/// Returns the elements of a JSON array; nullopt if the text is not an array.
std::optional<std::vector<std::string_view>> elements_of(std::string_view array) {
    if (array.size() < 2 || array.front() != '[' || array.back() != ']') {
        return std::nullopt;
    }
    std::vector<std::string_view> elements;
    array.remove_prefix(1);
    while (array != "]") {
        const std::size_t size = value_size(array);
        if (size == 0 || (array[size] != ',' && array.size() != size + 1)) {
            return std::nullopt;
        }
        elements.push_back(array.substr(0, size));
        array.remove_prefix(size + (array[size] == ',' ? 1 : 0));
    }
    return elements;
}

/// Returns the members of a record; nullopt if JsonLines cannot have written the line.
std::optional<std::vector<Member>> members_of(std::string_view line) {
    if (line.size() < 2 || line.front() != '{' || line.back() != '}') {
        return std::nullopt;
    }
    std::vector<Member> members;
    line.remove_prefix(1);
    while (line != "}") {
        const std::size_t quote = line.find('"', 1);
        if (line.front() != '"' || quote == std::string_view::npos ||
            line.substr(quote + 1, 1) != ":") {
            return std::nullopt;
        }
        Member member{.key = line.substr(1, quote - 1), .value = {}};
        line.remove_prefix(quote + 2);
        const std::size_t size = value_size(line);
        if (size == 0 || (line[size] != ',' && line.size() != size + 1)) {
            return std::nullopt;
        }
        member.value = line.substr(0, size);
        if (std::ranges::find(kDivided, member.key) != kDivided.end()) {
            member.elements = elements_of(member.value);
        }
        members.push_back(std::move(member));
        line.remove_prefix(size + (line[size] == ',' ? 1 : 0));
    }
    return members;
}

/// An element of a divided array, and the index of the array's member.
struct Element {
    std::size_t member;
    std::string_view text;
};

/// Appends the member with this index. A divided array gets the member's elements in `elements`.
void append_member(const Member& member, std::size_t index, std::span<const Element> elements,
                   JsonBuffer& out) {
    out.append(out.back() == '{' ? std::string_view{"\""} : std::string_view{",\""});
    out.append(member.key);
    out.append(std::string_view{"\":"});
    if (!member.elements) {
        out.append(member.value);
        return;
    }
    out.append('[');
    for (const Element& element : elements) {
        if (element.member == index) {
            if (out.back() != '[') {
                out.append(',');
            }
            out.append(element.text);
        }
    }
    out.append(']');
}

std::vector<Element> all_elements(const std::vector<Member>& members) {
    std::vector<Element> all;
    for (std::size_t i = 0; i < members.size(); ++i) {
        for (const std::string_view text :
             members[i].elements.value_or(std::vector<std::string_view>{})) {
            all.push_back({i, text});
        }
    }
    return all;
}

/// Divides elements among lines with this room. Returns the index of each line's first element, and
/// at the end the number of elements.
std::vector<std::size_t> divide(const std::vector<Element>& elements, std::size_t room) {
    std::vector<std::size_t> begins{0};
    std::size_t used = 0;
    for (std::size_t i = 0; i < elements.size(); ++i) {
        const std::size_t size = elements[i].text.size() + 1;
        if (used + size > room && i != begins.back()) {
            begins.push_back(i);
            used = 0;
        }
        used += size;
    }
    begins.push_back(elements.size());
    return begins;
}

struct Mark {
    std::uint32_t line = 0;
    std::uint32_t lines = 0;
    std::size_t begin = 0; ///< its offset in the line
};

/// Reads `,"line":K,"lines":N}` at the end of a line; nullopt if the line does not end so. No
/// string in a record can contain this text, because quotes in strings are escaped.
std::optional<Mark> mark_of(std::string_view line) {
    constexpr std::string_view kLine = R"(,"line":)";
    constexpr std::string_view kLines = R"(,"lines":)";
    const std::size_t tail = line.size() - std::min(line.size(), kMarkBytes + 1);
    const std::size_t begin = line.substr(tail).find(kLine);
    if (begin == std::string_view::npos) {
        return std::nullopt;
    }
    Mark mark{.begin = tail + begin};
    const char* const end = line.data() + line.size();
    const auto first = std::from_chars(line.data() + mark.begin + kLine.size(), end, mark.line);
    const std::string_view rest{first.ptr, static_cast<std::size_t>(end - first.ptr)};
    if (first.ec != std::errc{} || !rest.starts_with(kLines)) {
        return std::nullopt;
    }
    const auto second = std::from_chars(first.ptr + kLines.size(), end, mark.lines);
    const bool ends = second.ec == std::errc{} && second.ptr + 1 == end && *second.ptr == '}';
    return ends && mark.line >= 1 && mark.line <= mark.lines ? std::optional{mark} : std::nullopt;
}

/// Returns the record that was split into these lines; nullopt if they are not of one record.
std::optional<std::string> joined(const std::vector<std::string>& lines) {
    std::vector<std::string> records; // the lines without their line numbers
    std::vector<Member> members;
    std::vector<Element> elements;
    records.reserve(lines.size());
    for (const std::string& line : lines) {
        records.push_back(line.substr(0, mark_of(line)->begin) + '}');
        auto more = members_of(records.back());
        if (!more) {
            return std::nullopt;
        }
        if (members.empty()) {
            members = *more;
        }
        for (const Member& member : *more) {
            const auto same = std::ranges::find(members, member.key, &Member::key);
            if (same == members.end() ||
                (member.elements ? !same->elements : same->value != member.value)) {
                return std::nullopt;
            }
            const auto index = static_cast<std::size_t>(same - members.begin());
            for (const std::string_view text :
                 member.elements.value_or(std::vector<std::string_view>{})) {
                elements.push_back({index, text});
            }
        }
    }
    JsonBuffer out;
    out.append('{');
    for (std::size_t i = 0; i < members.size(); ++i) {
        append_member(members[i], i, elements, out);
    }
    out.append('}');
    return std::string{out.view()};
}

} // namespace

bool split_line(std::string_view line, std::size_t limit, JsonBuffer& out) {
    if (line.size() < limit) {
        return false;
    }
    const auto members = members_of(line);
    if (!members) {
        return false;
    }
    std::size_t fixed = kMarkBytes + 3; // the brackets and the newline
    for (const Member& member : *members) {
        fixed += member.size();
    }
    const std::vector<Element> elements = all_elements(*members);
    const auto begins = divide(elements, limit - std::min(limit, fixed));
    const std::size_t lines = begins.size() - 1;
    for (std::size_t k = 0; k < lines && lines > 1; ++k) {
        const std::span own = std::span{elements}.subspan(begins[k], begins[k + 1] - begins[k]);
        out.append('{');
        for (std::size_t i = 0; i < members->size(); ++i) {
            const Member& member = (*members)[i];
            if (k == 0 || member.key != kFull) {
                append_member(member, i, own, out);
            }
        }
        out.append(std::string_view{R"(,"line":)"});
        out.append_int(static_cast<std::int64_t>(k + 1));
        out.append(std::string_view{R"(,"lines":)"});
        out.append_int(static_cast<std::int64_t>(lines));
        out.append(std::string_view{"}\n"});
    }
    return lines > 1;
}

void LineJoiner::add_line(std::string_view line, const Use& use) {
    const auto mark = mark_of(line);
    if (!held_.empty() && (!mark || mark->lines != lines_ || mark->line != held_.size() + 1)) {
        finish(use);
    }
    if (!mark || mark->line != held_.size() + 1 || mark->lines == 1 ||
        held_bytes_ + line.size() > LineReader::kMaxLineBytes) {
        finish(use);
        use(line);
        return;
    }
    held_.emplace_back(line);
    held_bytes_ += line.size();
    lines_ = mark->lines;
    if (held_.size() < lines_) {
        return;
    }
    if (const auto record = joined(held_)) {
        held_.clear();
        use(*record);
    }
    finish(use);
}

void LineJoiner::finish(const Use& use) {
    for (const std::string& line : std::exchange(held_, {})) {
        use(line);
    }
    held_bytes_ = 0;
}

} // namespace tw::sink
