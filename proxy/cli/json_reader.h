#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <boost/json.hpp>

namespace tw::cli {

/// Reads the members of one object of a JSON file. Every error is a UsageError that names the flag,
/// the file, the place in it, and what is expected there.
class JsonReader {
  public:
    /// `where`: "--objects mod.json, object 3".
    JsonReader(std::string where, const boost::json::object& object)
        : where_{std::move(where)}, object_{&object} {}

    [[noreturn]] void fail(std::string_view what) const;
    /// Errors: another key than these.
    void allow(std::initializer_list<std::string_view> keys) const;

    [[nodiscard]] bool has(std::string_view key) const { return object_->contains(key); }

    /// A text that is not empty.
    [[nodiscard]] std::string text(std::string_view key) const;
    /// A text that can be a key of records and a word of filters: letters, digits and '_'.
    [[nodiscard]] std::string name(std::string_view key) const;
    /// One of `words`, the first of which is the value of a missing key.
    [[nodiscard]] std::string word(std::string_view key,
                                   std::initializer_list<std::string_view> words) const;
    [[nodiscard]] std::int64_t number(std::string_view key, std::int64_t min, std::int64_t max,
                                      std::int64_t fallback) const;
    /// False if the key is missing.
    [[nodiscard]] bool flag(std::string_view key) const;

    /// The value of a key; null if it is missing.
    [[nodiscard]] const boost::json::value* value(std::string_view key) const {
        return object_->if_contains(key);
    }

    /// Null if the key is missing.
    [[nodiscard]] const boost::json::array* array(std::string_view key) const;
    [[nodiscard]] const boost::json::object* object(std::string_view key) const;
    /// The reader of an element of the list `key`, which is `what` number `index`.
    [[nodiscard]] JsonReader element(std::string_view key, std::string_view what,
                                     std::size_t index) const;

    [[nodiscard]] const std::string& where() const { return where_; }

  private:
    std::string where_;
    const boost::json::object* object_;
};

} // namespace tw::cli
