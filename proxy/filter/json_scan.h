#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

/// Looks into JSON text without building anything from it. Text that is no JSON has no members, no
/// elements and no values; nothing is read behind its end.
namespace tw::filter {

/// One value at the beginning of the text: its own text. Nothing when none ends there.
[[nodiscard]] std::optional<std::string_view> first_value(std::string_view text);

/// Goes through the members of an object, or the elements of an array.
class JsonWalk {
  public:
    /// Brackets included. What is neither has nothing in it.
    explicit JsonWalk(std::string_view text);

    /// Steps to the next one; false: there is none, or what comes is no JSON.
    [[nodiscard]] bool next();

    /// Of a member, without quotes, as it stands there: keys of records hold nothing to unescape.
    [[nodiscard]] std::string_view key() const { return key_; }

    [[nodiscard]] std::string_view value() const { return value_; }

    /// It was gone through to its end, and is well formed but for what stands in its values.
    [[nodiscard]] bool whole() const { return whole_; }

    /// Behind the bracket that ends it; only when it is whole.
    [[nodiscard]] std::string_view rest() const { return rest_; }

  private:
    std::string_view rest_;
    char close_ = '\0';
    bool first_ = true;
    bool whole_ = false;
    std::string_view key_;
    std::string_view value_;
};

/// The value of this member; nothing when there is none.
[[nodiscard]] std::optional<std::string_view> find_member(std::string_view object,
                                                          std::string_view key);

/// What a string says, its quotes and escapes undone; `room` holds it where it had some.
[[nodiscard]] std::string_view string_of(std::string_view value, std::string& room);

} // namespace tw::filter
