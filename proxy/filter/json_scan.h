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

/// Bit masks of the structural characters in a block of 64 bytes of JSON. Used by json_scan.cpp and
/// its test only.
namespace tw::filter {

inline constexpr std::size_t kMaskBytes = 64;

class ByteMasks {
  public:
    /// Reads at most kMaskBytes bytes. If there are fewer, the remaining bits of the masks are 0.
    explicit ByteMasks(std::string_view bytes) {
        if (bytes.size() >= kMaskBytes) {
            find_characters(bytes.data());
            return;
        }
        std::array<char, kMaskBytes> room{};
        std::copy(bytes.begin(), bytes.end(), room.begin());
        find_characters(room.data());
    }

    [[nodiscard]] std::uint64_t quotes() const { return quotes_; }

    [[nodiscard]] std::uint64_t backslashes() const { return backslashes_; }

    /// The mask of the characters { and [.
    [[nodiscard]] std::uint64_t opening() const { return opening_; }

    /// The mask of the characters } and ].
    [[nodiscard]] std::uint64_t closing() const { return closing_; }

  private:
    /// The one bit in which '{' differs from '[', and '}' from ']'.
    static constexpr char kCurly = 0x20;

#if defined(__SSE2__)
    void find_characters(const char* bytes) {
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
    void find_characters(const char* bytes) {
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

/// Returns the mask of the quotes that begin or end a string. A backslash inside a string escapes the
/// next character. `escaped`: whether the block's first byte is escaped; set to whether the first byte
/// of the next block is.
[[nodiscard]] inline std::uint64_t unescaped(const ByteMasks& masks, bool in_string,
                                             bool& escaped) {
    std::uint64_t quotes = 0;
    std::uint64_t left = masks.quotes() | masks.backslashes();
    std::uint64_t skipped = escaped ? 1U : 0U; ///< the bits of escaped characters
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

/// The positions of all matching brackets in a list or object. One pass finds them, so that a nested
/// value can be skipped without reading it. Brackets in strings do not count.
class JsonBrackets {
  public:
    /// The limit of pairs, more than any record has. A text with more pairs is read without this
    /// table.
    static constexpr std::size_t kMaxPairs = std::size_t{1} << 20U;

    struct BracketPair {
        std::uint32_t open = 0;  ///< offset of the opening bracket in the text
        std::uint32_t close = 0; ///< offset of the closing bracket in the text
        /// The index of the first pair that opens after this pair is closed. While this pair is open:
        /// the index of the pair that encloses it.
        std::uint32_t next = 0;
    };

    /// Finds the brackets of the value at the start of the text, and returns the value's text. Returns
    /// nullopt if the value is not closed or has more than kMaxPairs pairs. Does not check that { is
    /// closed by } and [ by ]; JsonWalk checks that.
    [[nodiscard]] std::optional<std::string_view> read(std::string_view text);

    /// Returns the pair with this opening bracket; null if there is none. The search begins at the pair
    /// with the index `from`, which is then set to the index of the found pair.
    [[nodiscard]] const BracketPair* find(const char* open, std::uint32_t& from) const {
        const auto offset = static_cast<std::size_t>(open - text_.data());
        while (from < pairs_.size() && pairs_[from].open < offset) {
            ++from;
        }
        return from < pairs_.size() && pairs_[from].open == offset ? &pairs_[from] : nullptr;
    }

  private:
    [[nodiscard]] bool open_pair(std::size_t offset);
    /// Closes the innermost open pair. Returns false if that was the outermost pair.
    [[nodiscard]] bool close_pair(std::size_t offset);

    std::string_view text_;
    std::vector<BracketPair> pairs_;
    std::uint32_t inner_ = 0; ///< index of the innermost open pair
};

// Functions and classes that read JSON text without building a document. Malformed text has no members,
// elements or values. Nothing is read beyond the end of the text.

/// Returns the text of the first value; nullopt if the value is incomplete.
[[nodiscard]] std::optional<std::string_view> first_value(std::string_view text);

/// JSON text, or a part of a text whose brackets are known.
struct JsonText {
    // NOLINTNEXTLINE(google-explicit-constructor): every text is a JsonText
    JsonText(std::string_view all) : text{all} {}

    JsonText(std::string_view part, const JsonBrackets& known) : text{part}, brackets{&known} {}

    std::string_view text;
    const JsonBrackets* brackets = nullptr; ///< the brackets of an enclosing text; null if unknown
    /// Index in `brackets` at which the search for this text's pairs begins.
    std::uint32_t pair = 0;
};

/// Iterates over the members of an object or the elements of an array.
class JsonWalk {
  public:
    /// Starts before the first member or element. `json`: an object or array; any other value has no
    /// members.
    explicit JsonWalk(const JsonText& json);

    /// Moves to the next member or element. Returns false at the end or if the text is malformed.
    [[nodiscard]] bool next();

    /// The member's key without quotes. Escapes are not decoded; keys of records have none.
    [[nodiscard]] std::string_view key() const { return key_; }

    [[nodiscard]] std::string_view value() const { return value_.text; }

    [[nodiscard]] const JsonText& json() const { return value_; }

    /// True if the end was reached and the text is well formed, apart from the contents of its
    /// values.
    [[nodiscard]] bool whole() const { return whole_; }

    /// The text after the closing bracket, if whole(). After next_key(): the text from the member's
    /// value on.
    [[nodiscard]] std::string_view rest() const { return rest_; }

    /// The first step of next() in an object: reads the key. rest() then begins with the value.
    [[nodiscard]] bool next_key();
    [[nodiscard]] bool next_value();

  private:
    /// Skips the separator between two values. Returns false if there is no further value.
    [[nodiscard]] bool step();
    [[nodiscard]] bool take_key();

    std::string_view rest_;
    char close_ = '\0';
    bool first_ = true;
    bool whole_ = false;
    std::string_view key_;
    JsonText value_{{}};
    /// Index of the pair at which the search for the next value's brackets begins.
    std::uint32_t pair_;
};

/// The members of an object. A member is read at most once, when find() needs it.
class JsonMembers {
  public:
    JsonMembers() : JsonMembers{std::string_view{}} {}

    explicit JsonMembers(const JsonText& json) : json_{json}, walk_{json} {}

    /// Starts with another object. A value that is not an object has no members.
    void begin(const JsonText& json) {
        json_ = json;
        walk_ = JsonWalk{json};
        known_.clear();
    }

    [[nodiscard]] const JsonText& json() const { return json_; }

    /// Returns the value of the first member with this name; nullopt if there is none.
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

/// Returns the value of the member with this key; nullopt if there is none.
[[nodiscard]] std::optional<std::string_view> find_member(std::string_view object,
                                                          std::string_view key);
[[nodiscard]] std::optional<JsonText> find_member(const JsonText& object, std::string_view key);
/// Returns the value of this member as an integer; 0 if the member is missing or not an integer.
[[nodiscard]] std::uint64_t find_count(std::string_view object, std::string_view key);
/// Returns the value of a member that is a list or an object; nullopt if there is none. Finds the
/// value's brackets and stores them in `brackets`.
[[nodiscard]] std::optional<JsonText> find_member(std::string_view object, std::string_view key,
                                                  JsonBrackets& brackets);

/// Returns the text of a JSON string without quotes and escapes. The result points into `value`, or
/// into `room` if there were escapes.
[[nodiscard]] std::string_view string_of(std::string_view value, std::string& room);

} // namespace tw::filter
