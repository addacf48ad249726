#pragma once

#include "proxy/filter/value.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

namespace tw::filter {

struct LineReadState;

/// The JSON object of a whole line, or an object in the line's list `items`. Keys are dotted paths,
/// such as `at.tile`. If several members have the same key, the first one is used.
class JsonObject {
  public:
    explicit JsonObject(LineReadState& reading) : reading_{&reading} {}

    [[nodiscard]] bool has_member(std::string_view name);
    /// Returns the number, string or word with this key as it is written in the line; nullopt if
    /// the object has no such key. Lists are not searched.
    [[nodiscard]] std::optional<std::string_view> find_scalar_text(std::string_view key);
    /// Returns the 64-bit integer with this key; nullopt if the object has no such key or value.
    [[nodiscard]] std::optional<std::int64_t> find_integer(std::string_view key);
    /// Returns the integer with this key; 0 if it is missing or negative.
    [[nodiscard]] std::uint64_t find_count(std::string_view key);

    /// Passes the values of a key to the visitor. Each element of a list is a value. The keys .x
    /// and .y name the elements of a list of two numbers. Returns true if the visitor wants no more
    /// values.
    bool visit_values(std::string_view key, ValueVisitor& visitor);
    /// Passes the count of a finding in a summary to the visitor; zero if the summary does not list
    /// the finding. visit_values() cannot find it, because the finding's name contains dots.
    bool visit_finding_count(std::string_view finding, ValueVisitor& visitor);

  private:
    LineReadState* reading_;
};

/// Reads values of a JSON object on one line, in any order, without building a document. A line
/// that is truncated or has a string without an end has no values. Other damage is noticed only
/// where reading reaches it, so values before it may be found. Use one JsonLine for many lines, to
/// reuse its memory.
class JsonLine {
  public:
    JsonLine();
    explicit JsonLine(std::string_view line);
    ~JsonLine();
    JsonLine(JsonLine&& other) noexcept;
    JsonLine& operator=(JsonLine&& other) noexcept;
    JsonLine(const JsonLine& other) = delete;
    JsonLine& operator=(const JsonLine& other) = delete;

    /// Sets the line to read. The line must outlive the texts that are found.
    void set_line(std::string_view line);

    /// Returns whether the line begins and ends like a JSON object, and all its strings end.
    [[nodiscard]] bool is_readable();
    /// Returns the object of the whole line, valid until this JsonLine is destroyed.
    [[nodiscard]] JsonObject& object();
    /// Calls `use` for each element of the list `items`, until `use` returns true. An element that
    /// is not an object is passed as an object without members.
    void for_each_item(const std::function<bool(JsonObject&)>& use);

  private:
    struct State;

    std::unique_ptr<State> state_;
};

} // namespace tw::filter
