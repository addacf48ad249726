#pragma once

#include "proxy/filter/filter.h"
#include "proxy/record/records.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <tl/expected.hpp>

namespace tw::filter {

/// The values of a key that were compared: their range if they are numbers, and the first few
/// different texts.
class ObservedValues {
  public:
    /// The most texts kept; further ones are described as "more".
    static constexpr std::size_t kMaxTexts = 8;
    /// A longer text is cut, because names and chat lines are chosen by players.
    static constexpr std::size_t kMaxTextBytes = 40;

    void add(const Value& value);
    void merge(const ObservedValues& other);

    [[nodiscard]] bool empty() const { return !range_ && texts_.empty(); }

    /// Describes the values in a text such as "3 to 17" or "air, freeze and more", which is safe for a
    /// terminal.
    [[nodiscard]] std::string describe() const;

    friend bool operator==(const ObservedValues&, const ObservedValues&) = default;

  private:
    using Number = std::variant<std::int64_t, double>;

    void widen(const Number& least, const Number& most);
    void add_text(std::string_view text);

    std::optional<std::pair<Number, Number>> range_;
    std::vector<std::string> texts_;
    bool more_texts_ = false;
};

/// An expected result of a run. `EXPRESSION`: at least one record matches. `never EXPRESSION`: no record
/// matches. `always EXPRESSION`: all records that have a key of the expression match, and there is at
/// least one.
class Expectation {
  public:
    enum class Mode : std::uint8_t { once, never, always };

    /// Parses an expectation. Errors: those of Filter::parse; their offsets are relative to the whole
    /// text.
    [[nodiscard]] static tl::expected<Expectation, FilterError>
    parse(std::string_view text, const FilterOptions& options = {});

    void evaluate(const record::Record& record);
    /// Like evaluate(), for a line of a recording.
    void evaluate_line(std::string_view line);
    /// Adds the results of a copy of this expectation, for example from another thread.
    void merge(const Expectation& other);

    [[nodiscard]] bool met() const;

    /// The number of records that matched.
    [[nodiscard]] std::uint64_t seen() const { return matched_; }

    [[nodiscard]] std::string_view text() const { return text_; }

    /// Says in one line why the expectation is not met: what was seen instead. Empty if it is met.
    [[nodiscard]] std::string unmet_reason() const;

    friend bool operator==(const Expectation&, const Expectation&) = default;

  private:
    explicit Expectation(Filter filter) : filter_{std::move(filter)} {}

    void remember_violation(const record::Record& record);
    [[nodiscard]] std::string values() const;

    std::string text_;
    Mode mode_ = Mode::once;
    Filter filter_;
    std::uint64_t asked_ = 0; ///< number of records evaluated
    std::uint64_t matched_ = 0;
    /// For each comparison, the values that it received. In the modes never and always, only those of
    /// the record in `offender_`.
    std::vector<ObservedValues> observed_;
    std::string offender_; ///< the first record that violated `never` or `always`
    record::Timestamp offender_time_ = 0;
};

/// Adds the results of copies of these expectations, given in the same order.
void merge(std::span<Expectation> expectations, std::span<const Expectation> others);

/// The final result of an expectation.
struct ExpectationResult {
    std::string text;
    bool met = false;
    std::string instead; ///< what was seen instead; empty if the expectation is met
};

/// Evaluates all expectations for each record.
class Expectations final : public record::RecordSink {
  public:
    explicit Expectations(std::vector<Expectation> expectations)
        : expectations_{std::move(expectations)} {}

    void on_record(const record::Record& record) override;

    /// The expectations with their results so far.
    [[nodiscard]] const std::vector<Expectation>& list() const { return expectations_; }

    [[nodiscard]] std::vector<ExpectationResult> report() const;

  private:
    std::vector<Expectation> expectations_;
};

} // namespace tw::filter
