#pragma once

#include "proxy/filter/json_brackets.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Looks into JSON text without building anything from it. Text that is no JSON has no members, no
/// elements and no values; nothing is read behind its end.
namespace tw::filter {

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
