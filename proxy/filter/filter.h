#pragma once

#include "proxy/filter/keys.h"
#include "proxy/filter/program.h"
#include "proxy/record/records.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace tw::filter {

/// What is wrong with a filter's text.
struct FilterError {
    std::string message;    ///< one line: what, where, and what may have been meant
    std::size_t offset = 0; ///< bytes into the text

    friend bool operator==(const FilterError&, const FilterError&) = default;
};

struct FilterOptions {
    /// Passwords and codes are compared as they are; otherwise as "[redacted]", so that nobody can
    /// guess them letter by letter from what passes.
    bool show_secrets = false;
    /// Objects and messages that are known beside the tables. Needed only while parsing.
    Described described{};
};

/// Is told of every value that decided a comparison. `comparison` counts in Filter::comparisons().
class Observer {
  public:
    Observer() = default;
    Observer(const Observer&) = delete;
    Observer& operator=(const Observer&) = delete;
    Observer(Observer&&) = delete;
    Observer& operator=(Observer&&) = delete;
    virtual ~Observer() = default;

    virtual void saw(std::size_t comparison, const Value& value) = 0;
};

/// A condition on records in the language FILTERS.md describes. Asking it allocates nothing and may
/// be done from several threads at once.
class Filter {
  public:
    /// Texts longer than this are refused; nobody types them.
    static constexpr std::size_t kMaxLength = 4096;
    /// Brackets and "not" nest no deeper than this: they become nested calls.
    static constexpr std::size_t kMaxDepth = 32;

    /// Errors: one line that names the place, and the nearest existing word for an unknown one.
    [[nodiscard]] static tl::expected<Filter, FilterError> parse(std::string_view text,
                                                                 const FilterOptions& options = {});

    [[nodiscard]] bool matches(const record::Record& record) const;
    /// The same answer; tells which values led to it. Conditions that need not be asked are not.
    [[nodiscard]] bool matches(const record::Record& record, Observer& observer) const;

    [[nodiscard]] std::string_view text() const { return text_; }

    [[nodiscard]] const Program& program() const { return program_; }

    [[nodiscard]] std::span<const Comparison> comparisons() const { return program_.comparisons; }

    /// Whether the record has one of the keys the filter names, not counting those that every
    /// record has. True when the filter names none.
    [[nodiscard]] bool concerns(const record::Record& record) const;

    friend bool operator==(const Filter&, const Filter&) = default;

  private:
    Filter() = default;

    std::string text_;
    Program program_;
    bool show_secrets_ = false;
};

/// Passes on only what matches.
class FilteredSink final : public record::RecordSink {
  public:
    FilteredSink(Filter filter, record::RecordSink& target)
        : filter_{std::move(filter)}, target_{&target} {}

    void on_record(const record::Record& record) override {
        if (filter_.matches(record)) {
            target_->on_record(record);
        }
    }

  private:
    Filter filter_;
    record::RecordSink* target_;
};

} // namespace tw::filter
