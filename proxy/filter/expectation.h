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
#include <vector>

#include <tl/expected.hpp>

namespace tw::filter {

/// The values of a key that were compared with a literal: the range of the numbers, and the first
/// few different texts.
class ObservedValues {
  public:
    /// The most texts that are stored. If there were more, describe() adds "and more".
    static constexpr std::size_t kMaxTexts = 8;
    /// The longest stored text, in bytes. Longer texts, such as chat lines, are truncated.
    static constexpr std::size_t kMaxTextBytes = 40;

    void add_value(const Value& value);
    void add_values_of(const ObservedValues& other);

    [[nodiscard]] bool empty() const { return !range_ && texts_.empty(); }

    /// Returns a description, safe for a terminal, such as "3 to 17" or "air, freeze and more".
    [[nodiscard]] std::string describe() const;

  private:
    void widen_range(const Number& least, const Number& most);
    void add_text(std::string_view text);

    std::optional<std::pair<Number, Number>> range_;
    std::vector<std::string> texts_;
    bool more_texts_ = false;
};

/// A condition that all inspected records together should fulfil. `EXPRESSION`: at least one record
/// matches the expression. `never EXPRESSION`: no record matches. `always EXPRESSION`: at least one
/// record has a key of the expression, and all records with such a key match.
class Expectation {
  public:
    enum class Mode : std::uint8_t { once, never, always };

    /// Parses an expectation. Returns the errors of Filter::parse(), with offsets in `text`.
    [[nodiscard]] static tl::expected<Expectation, FilterError>
    parse(std::string_view text, const FilterOptions& options = {});

    void evaluate_record(const record::Record& record);
    void evaluate_line(std::string_view line);
    /// Adds the results of `other`, a copy of this expectation that another thread evaluated.
    void add_results(const Expectation& other);

    [[nodiscard]] bool is_met() const;

    [[nodiscard]] std::string_view text() const { return text_; }

    /// Returns a line that says why the expectation is not met and which values occurred instead;
    /// empty if the expectation is met.
    [[nodiscard]] std::string unmet_reason() const;

  private:
    explicit Expectation(Filter filter) : filter_{std::move(filter)} {}

    /// Adds the result for a record or line. `matches`: evaluates the filter with an observer or
    /// null. `describe`: describes the record.
    template <typename Matches, typename Describe>
    void add_result(const Matches& matches, const Describe& describe);
    [[nodiscard]] std::string describe_values() const;

    std::string text_;
    Mode mode_ = Mode::once;
    Filter filter_;
    std::uint64_t num_evaluated_ = 0; ///< number of records that were evaluated
    std::uint64_t num_matched_ = 0;   ///< number of records that matched
    /// The compared values of each comparison. In the modes never and always, these are only the
    /// values of the record that `violating_record_` describes.
    std::vector<ObservedValues> observed_;
    std::string
        violating_record_; ///< description of the first record that violated `never` or `always`
    record::Timestamp violation_time_ = 0;
};

/// Adds the results of `others` to `expectations`. `others`: copies of `expectations`, in the same
/// order, that another thread evaluated.
void add_results(std::span<Expectation> expectations, std::span<const Expectation> others);

class Expectations final : public record::RecordSink {
  public:
    explicit Expectations(std::vector<Expectation> expectations)
        : expectations_{std::move(expectations)} {}

    void on_record(const record::Record& record) override;

    [[nodiscard]] const std::vector<Expectation>& list() const { return expectations_; }

  private:
    std::vector<Expectation> expectations_;
};

} // namespace tw::filter
