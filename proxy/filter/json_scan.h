#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/// Which of 64 bytes are those that JSON is made of, a bit for each. For json_brackets.cpp and its test.
namespace tw::filter {

inline constexpr std::size_t kMaskBytes = 64;

class ByteMasks {
  public:
    /// At most kMaskBytes; what is missing is none of them.
    explicit ByteMasks(std::string_view bytes) {
        if (bytes.size() >= kMaskBytes) {
            look(bytes.data());
            return;
        }
        std::array<char, kMaskBytes> room{};
        std::copy(bytes.begin(), bytes.end(), room.begin());
        look(room.data());
    }

    [[nodiscard]] std::uint64_t quotes() const { return quotes_; }

    [[nodiscard]] std::uint64_t backslashes() const { return backslashes_; }

    /// { and [
    [[nodiscard]] std::uint64_t opening() const { return opening_; }

    /// } and ]
    [[nodiscard]] std::uint64_t closing() const { return closing_; }

  private:
    /// Two kinds of brackets differ in this bit.
    static constexpr char kCurly = 0x20;

#if defined(__SSE2__)
    void look(const char* bytes) {
        constexpr std::size_t kPiece = 16;
        const auto mask = [](__m128i piece, char wanted) {
            return static_cast<std::uint64_t>(static_cast<unsigned>(
                _mm_movemask_epi8(_mm_cmpeq_epi8(piece, _mm_set1_epi8(wanted)))));
        };
        for (std::size_t at = 0; at < kMaskBytes; at += kPiece) {
            __m128i piece;
            std::memcpy(&piece, bytes + at, kPiece);
            const __m128i curly = _mm_or_si128(piece, _mm_set1_epi8(kCurly));
            quotes_ |= mask(piece, '"') << at;
            backslashes_ |= mask(piece, '\\') << at;
            opening_ |= mask(curly, '{') << at;
            closing_ |= mask(curly, '}') << at;
        }
    }
#else
    void look(const char* bytes) {
        for (std::size_t at = 0; at < kMaskBytes; ++at) {
            const auto bit = [at](bool is) { return std::uint64_t{is ? 1U : 0U} << at; };
            const auto curly = static_cast<char>(bytes[at] | kCurly);
            quotes_ |= bit(bytes[at] == '"');
            backslashes_ |= bit(bytes[at] == '\\');
            opening_ |= bit(curly == '{');
            closing_ |= bit(curly == '}');
        }
    }
#endif

    std::uint64_t quotes_ = 0;
    std::uint64_t backslashes_ = 0;
    std::uint64_t opening_ = 0;
    std::uint64_t closing_ = 0;
};

/// Quotes that begin or end a string: a backslash counts only in one, where it takes what is behind it with it.
/// `escaped`: the first byte is behind one; becomes whether the next 64 begin so.
[[nodiscard]] inline std::uint64_t unescaped(const ByteMasks& masks, bool in_string,
                                             bool& escaped) {
    std::uint64_t quotes = 0;
    std::uint64_t left = masks.quotes() | masks.backslashes();
    std::uint64_t skipped = escaped ? 1U : 0U; ///< what is behind a backslash
    escaped = false;
    for (; left != 0; left &= left - 1) {
        const std::uint64_t bit = left & (~left + 1);
        if ((bit & skipped) != 0) {
            continue;
        }
        if ((bit & masks.quotes()) != 0) {
            quotes |= bit;
            in_string = !in_string;
        } else if (in_string) {
            skipped |= bit << 1U;
            escaped = bit >> (kMaskBytes - 1) != 0;
        }
    }
    return quotes;
}

/// Where the brackets of a list or an object stand, and which of them belong together: found in one pass, so that
/// what is in them need not be read to get behind them. Brackets in strings are none.
class JsonBrackets {
  public:
    /// More than any record has; what has more is read without.
    static constexpr std::size_t kMaxPairs = std::size_t{1} << 20U;

    struct Pair {
        std::uint32_t open = 0;  ///< offset in the text
        std::uint32_t close = 0; ///< of the bracket that closes it
        std::uint32_t next =
            0; ///< the first pair that begins behind that; while it is open: what holds it
    };

    /// Reads from the bracket that the text begins with to the one that closes it, and returns what is between them,
    /// both included. Only counts them, as if there were but one kind: who looks inside checks. Nothing: it is not
    /// closed, or has more than kMaxPairs.
    [[nodiscard]] std::optional<std::string_view> read(std::string_view text);

    /// The pair that opens here, looked for from this one on, which is moved there; null: none does.
    [[nodiscard]] const Pair* find(const char* open, std::uint32_t& from) const {
        const auto offset = static_cast<std::size_t>(open - text_.data());
        while (from < pairs_.size() && pairs_[from].open < offset) {
            ++from;
        }
        return from < pairs_.size() && pairs_[from].open == offset ? &pairs_[from] : nullptr;
    }

  private:
    [[nodiscard]] bool open(std::size_t offset);
    /// False: that was the last one.
    [[nodiscard]] bool close(std::size_t offset);

    std::string_view text_;
    std::vector<Pair> pairs_;
    std::uint32_t inner_ = 0; ///< the pair that is open
};

// Looks into JSON text without building anything from it. Text that is no JSON has no members, no
// elements and no values; nothing is read behind its end.

/// One value at the beginning of the text: its own text. Nothing when none ends there.
[[nodiscard]] std::optional<std::string_view> first_value(std::string_view text);

/// Text that is JSON, or a part of it.
struct JsonText {
    // NOLINTNEXTLINE(google-explicit-constructor): any text will do
    JsonText(std::string_view all) : text{all} {}

    JsonText(std::string_view part, const JsonBrackets& known) : text{part}, brackets{&known} {}

    std::string_view text;
    const JsonBrackets* brackets =
        nullptr;            ///< of a text that holds this one; null: they have to be looked for
    std::uint32_t pair = 0; ///< those in it come behind this one
};

/// Goes through the members of an object, or the elements of an array.
class JsonWalk {
  public:
    /// Brackets included. What is neither has nothing in it.
    explicit JsonWalk(const JsonText& json);

    /// Steps to the next one; false: there is none, or what comes is no JSON.
    [[nodiscard]] bool next();

    /// Of a member, without quotes, as it stands there: keys of records hold nothing to unescape.
    [[nodiscard]] std::string_view key() const { return key_; }

    [[nodiscard]] std::string_view value() const { return value_.text; }

    [[nodiscard]] const JsonText& json() const { return value_; }

    /// It was gone through to its end, and is well formed but for what stands in its values.
    [[nodiscard]] bool whole() const { return whole_; }

    /// Behind the bracket that ends it, when it is whole; before a value, see next_key().
    [[nodiscard]] std::string_view rest() const { return rest_; }

    /// The two steps of next() to a member of an object: between them rest() begins with its value.
    [[nodiscard]] bool next_key();
    [[nodiscard]] bool next_value();

  private:
    /// Steps over what stands between two values. False: there is no other one.
    [[nodiscard]] bool step();
    [[nodiscard]] bool take_key();

    std::string_view rest_;
    char close_ = '\0';
    bool first_ = true;
    bool whole_ = false;
    std::string_view key_;
    JsonText value_{{}};
    std::uint32_t pair_; ///< where to look for the next one
};

/// The members of an object, each of them read once, and only as far as they are asked for.
class JsonMembers {
  public:
    JsonMembers() : JsonMembers{std::string_view{}} {}

    explicit JsonMembers(const JsonText& json) : json_{json}, walk_{json} {}

    /// Goes on with another object; what else there is has no members.
    void begin(const JsonText& json) {
        json_ = json;
        walk_ = JsonWalk{json};
        known_.clear();
    }

    [[nodiscard]] const JsonText& json() const { return json_; }

    /// The first one of this name.
    [[nodiscard]] std::optional<JsonText> find(std::string_view key);

  private:
    struct Member {
        std::string_view key;
        JsonText value;
    };

    JsonText json_;
    JsonWalk walk_;
    std::vector<Member> known_;
};

/// The value of this member; nothing when there is none.
[[nodiscard]] std::optional<std::string_view> find_member(std::string_view object,
                                                          std::string_view key);
[[nodiscard]] std::optional<JsonText> find_member(const JsonText& object, std::string_view key);
/// The whole number that stands there; 0 where there is none.
[[nodiscard]] std::uint64_t find_count(std::string_view object, std::string_view key);
/// The same of a member that is a list or an object, with all brackets in it, which are read into `brackets`.
[[nodiscard]] std::optional<JsonText> find_member(std::string_view object, std::string_view key,
                                                  JsonBrackets& brackets);

/// What a string says, its quotes and escapes undone; `room` holds it where it had some.
[[nodiscard]] std::string_view string_of(std::string_view value, std::string& room);

} // namespace tw::filter
