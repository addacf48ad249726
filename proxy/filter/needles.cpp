#include "proxy/filter/needles.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <set>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tw::filter {

namespace {

using Texts = std::set<std::string>;

struct Wanted {
    Texts keys;
    Texts texts;
};

std::string in_quotes(std::string_view text) {
    return '"' + std::string{text} + '"';
}

/// A text that stands in lines as it is, or with escapes.
bool is_plain(std::string_view text) {
    constexpr unsigned char kFirstPlain = 0x20;
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char each) {
        return static_cast<unsigned char>(each) >= kFirstPlain && each != '"' && each != '\\';
    });
}

Wanted wanted_by(const Comparison& comparison) {
    constexpr std::string_view kFindings = "findings.";
    const bool absent = comparison.literal.null && comparison.op == Operator::equal;
    Wanted wanted;
    if (absent) {
        return wanted;
    }
    std::string_view path = comparison.key.name;
    if (path.starts_with(kFindings) && comparison.key.scope == KeyScope::record) {
        wanted.keys.insert(in_quotes(path.substr(0, kFindings.size() - 1))); // none counts as zero
        return wanted;
    }
    while (!path.empty()) {
        const std::string_view name = path.substr(0, path.find('.'));
        if (name != "x" && name != "y") { // the first and second of a list
            wanted.keys.insert(in_quotes(name));
        }
        path.remove_prefix(std::min(path.size(), name.size() + 1));
    }
    const Operand& literal = comparison.literal;
    const bool text = !literal.null && literal.number.index() == 0;
    if (text && comparison.op == Operator::equal && is_plain(literal.text)) {
        wanted.texts.insert(in_quotes(literal.text));
    }
    return wanted;
}

Texts common_of(const Texts& left, const Texts& right) {
    Texts both;
    std::set_intersection(left.begin(), left.end(), right.begin(), right.end(),
                          std::inserter(both, both.end()));
    return both;
}

// NOLINTNEXTLINE(misc-no-recursion): the parser nests no deeper than kMaxDepth
Wanted wanted_by(const Program& program, std::size_t at) {
    const Node& node = program.nodes[at];
    switch (node.kind) {
    case NodeKind::comparison:
        return wanted_by(program.comparisons[node.index]);
    case NodeKind::all_of: {
        Wanted all;
        for (std::size_t i = node.child; i != Node::kNone; i = program.nodes[i].next) {
            Wanted one = wanted_by(program, i);
            all.keys.merge(one.keys);
            all.texts.merge(one.texts);
        }
        return all;
    }
    case NodeKind::any_of: {
        Wanted common = wanted_by(program, node.child);
        for (std::size_t i = program.nodes[node.child].next; i != Node::kNone;
             i = program.nodes[i].next) {
            const Wanted one = wanted_by(program, i);
            common.keys = common_of(common.keys, one.keys);
            common.texts = common_of(common.texts, one.texts);
        }
        return common;
    }
    case NodeKind::some_item: {
        Wanted some = node.child == Node::kNone ? Wanted{} : wanted_by(program, node.child);
        some.keys.insert(in_quotes("items"));
        return some;
    }
    case NodeKind::count_items: // of those that fit there may be none
        return {.keys = {in_quotes("items")}, .texts = {}};
    case NodeKind::negation:
        return {};
    }
    return {};
}

} // namespace

Needles::Needles(const Program& program) {
    const Wanted wanted = wanted_by(program, program.root);
    keys_.assign(wanted.keys.begin(), wanted.keys.end());
    texts_.assign(wanted.texts.begin(), wanted.texts.end());
}

bool Needles::are_in(std::string_view line) const {
    return std::all_of(keys_.begin(), keys_.end(),
                       [line](const std::string& key) { return holds(line, key); }) &&
           std::all_of(texts_.begin(), texts_.end(), [line](const std::string& text) {
               return holds(line, text) || line.find('\\') != std::string_view::npos;
           });
}

bool holds(std::string_view text, std::string_view part) {
    if (text.size() < part.size()) {
        return false;
    }
    std::size_t at = 0;
#if defined(__SSE2__)
    // Where two of its bytes stand at once, it may be; not its quotes, of which there are many.
    constexpr std::size_t kPiece = 16;
    const std::size_t left_one = part.size() > 2 ? 1 : 0;
    const std::size_t right_one = part.size() - 1 - left_one;
    const __m128i first = _mm_set1_epi8(part[left_one]);
    const __m128i last = _mm_set1_epi8(part[right_one]);
    for (; at + part.size() - 1 + kPiece <= text.size(); at += kPiece) {
        __m128i begins;
        __m128i ends;
        std::memcpy(&begins, text.data() + at + left_one, kPiece);
        std::memcpy(&ends, text.data() + at + right_one, kPiece);
        const __m128i both =
            _mm_and_si128(_mm_cmpeq_epi8(begins, first), _mm_cmpeq_epi8(ends, last));
        for (auto left = static_cast<std::uint32_t>(_mm_movemask_epi8(both)); left != 0;
             left &= left - 1) {
            const auto place = at + static_cast<std::size_t>(std::countr_zero(left));
            if (std::memcmp(text.data() + place, part.data(), part.size()) == 0) {
                return true;
            }
        }
    }
#endif
    return text.find(part, at) != std::string_view::npos;
}

} // namespace tw::filter
