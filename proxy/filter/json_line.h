#pragma once

#include "proxy/filter/scanner.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

namespace tw::filter {

struct JsonReading;

/// An object of a JsonLine: the object of the whole line, or one of its items. Keys are dotted, such as
/// `at.tile`. If several members have the same key, the first one is used.
class JsonObject {
  public:
    explicit JsonObject(JsonReading& reading) : reading_{&reading} {}

    /// Returns whether the object has a member of this name.
    [[nodiscard]] bool has(std::string_view name);
    /// Returns the text, as in the line, of the number, string or word with this key; nullopt if there
    /// is none. Lists are not searched.
    [[nodiscard]] std::optional<std::string_view> find(std::string_view key);
    /// Returns the integer of 64 bits with this key; nullopt if there is none.
    [[nodiscard]] std::optional<std::int64_t> find_integer(std::string_view key);
    /// Returns the integer with this key; 0 if it is missing or negative.
    [[nodiscard]] std::uint64_t find_count(std::string_view key);

    /// Passes the values of a key to the visitor. A list has several values. In a list of two numbers,
    /// the keys .x and .y name the elements. Returns true if the visitor has enough.
    bool visit(std::string_view key, ValueVisitor& visitor);
    /// Passes the count of a finding in a summary to the visitor; zero if the summary does not list
    /// it. This is not a part of visit(), because names of findings contain dots.
    bool visit_finding_count(std::string_view finding, ValueVisitor& visitor);

  private:
    JsonReading* reading_;
};

/// Reads values of a JSON object on one line without building a document, in any order. It reads no
/// further than necessary: values before damage may be found. A line that is cut off, or has a string
/// without an end, has no values. The memory is kept for the next line.
class JsonLine {
  public:
    JsonLine();
    explicit JsonLine(std::string_view line);
    ~JsonLine();
    JsonLine(JsonLine&& other) noexcept;
    JsonLine& operator=(JsonLine&& other) noexcept;
    JsonLine(const JsonLine& other) = delete;
    JsonLine& operator=(const JsonLine& other) = delete;

    /// Starts with another line. The line must outlive the texts that are found.
    void begin(std::string_view line);

    /// Returns whether the line begins and ends like an object, and its strings have an end.
    [[nodiscard]] bool is_readable();
    /// The object of the whole line, valid until this JsonLine is destroyed.
    [[nodiscard]] JsonObject& object();
    /// Calls `use` for each element of the list `items`, until it returns true. An element that is not
    /// an object has no members.
    void each_item(const std::function<bool(JsonObject&)>& use);

  private:
    struct Parts;

    std::unique_ptr<Parts> parts_;
};

} // namespace tw::filter
