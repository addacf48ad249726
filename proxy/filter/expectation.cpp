#include "proxy/filter/expectation.h"

#include "proxy/filter/keys.h"
#include "proxy/filter/line_record.h"
#include "proxy/record/terminal_text.h"

#include <set>

#include <fmt/format.h>

namespace tw::filter {

using record::Record;

namespace {

std::string number_text(const Number& number) {
    const auto* const integer = std::get_if<std::int64_t>(&number);
    return integer != nullptr ? fmt::format("{}", *integer)
                              : fmt::format("{}", std::get<double>(number));
}

/// Returns a description such as "session 3, snapshot at 2026-01-01T12:00:00.000000Z, tick 500".
std::string describe_record(const Record& record) {
    const auto& head = std::visit(
        [](const auto* each) -> const record::RecordHeader& { return each->head; }, record);
    FormatBuffer buffer;
    std::string line =
        fmt::format("session {}, {} at {}", head.session, record::kRecordTypes[record.index()],
                    time_value(head.time, buffer).text);
    if (const auto* const* snapshot = std::get_if<const record::SnapshotRecord*>(&record)) {
        line += fmt::format(", tick {}", (*snapshot)->tick);
    } else if (const auto* const* world = std::get_if<const record::WorldRecord*>(&record)) {
        line += fmt::format(", tick {}", (*world)->tick);
    } else if (const auto* const* finding = std::get_if<const record::FindingRecord*>(&record)) {
        line += fmt::format(", {}", record::finding_info((*finding)->id).name);
    } else if (const auto* const* message = std::get_if<const record::MessageRecord*>(&record)) {
        line += fmt::format(", {}", record::escape_for_terminal((*message)->name));
    }
    return line;
}

std::string describe_line(std::string_view line) {
    const auto head = read_line_head(line);
    return head ? fmt::format("session {}, {} at {}", head->session,
                              record::escape_for_terminal(head->type),
                              record::escape_for_terminal(head->time))
                : "no record";
}

} // namespace

void ObservedValues::add_value(const Value& value) {
    if (!value.is_number() || value.is_word) {
        return add_text(value.text);
    }
    widen_range(value.number, value.number);
}

void ObservedValues::widen_range(const Number& least, const Number& most) {
    if (!range_) {
        range_ = {least, most};
        return;
    }
    range_->first = compare_numbers(least, range_->first) < 0 ? least : range_->first;
    range_->second = compare_numbers(range_->second, most) < 0 ? most : range_->second;
}

void ObservedValues::add_text(std::string_view text) {
    const std::string_view cut = text.substr(0, kMaxTextBytes);
    if (std::ranges::find(texts_, cut) != texts_.end()) {
        return;
    }
    if (texts_.size() < kMaxTexts) {
        texts_.emplace_back(cut);
    } else {
        more_texts_ = true;
    }
}

void ObservedValues::add_values_of(const ObservedValues& other) {
    if (other.range_) {
        widen_range(other.range_->first, other.range_->second);
    }
    for (const std::string& text : other.texts_) {
        add_text(text);
    }
    more_texts_ = more_texts_ || other.more_texts_;
}

std::string ObservedValues::describe() const {
    std::string out;
    if (range_) {
        out = compare_numbers(range_->first, range_->second) < 0
                  ? fmt::format("{} to {}", number_text(range_->first), number_text(range_->second))
                  : number_text(range_->first);
    }
    for (const std::string& text : texts_) {
        out += out.empty() ? "" : ", ";
        out += text.empty() ? "\"\"" : record::escape_for_terminal(text);
    }
    return more_texts_ ? out + " and more" : out;
}

tl::expected<Expectation, FilterError> Expectation::parse(std::string_view text,
                                                          const FilterOptions& options) {
    const std::string_view word = first_word(text);
    const Mode mode = word == "never" ? Mode::never : word == "always" ? Mode::always : Mode::once;
    std::string condition{text};
    if (mode != Mode::once) {
        // The word is replaced by spaces, so that the offsets of errors remain correct.
        condition.replace(static_cast<std::size_t>(word.data() - text.data()), word.size(),
                          word.size(), ' ');
    }
    auto filter = Filter::parse(condition, options);
    if (!filter) {
        return tl::unexpected{std::move(filter.error())};
    }
    Expectation expectation{std::move(*filter)};
    expectation.text_ = text;
    expectation.mode_ = mode;
    expectation.observed_.resize(expectation.filter_.comparisons().size());
    return expectation;
}

template <typename Matches, typename Describe>
void Expectation::add_result(const Matches& matches, const Describe& describe) {
    ++num_evaluated_;
    const ValueObserver collect = [this](std::size_t comparison, const Value& value) {
        observed_[comparison].add_value(value);
    };
    const bool matched = matches(mode_ == Mode::once && num_matched_ == 0 ? &collect : nullptr);
    num_matched_ += matched ? 1U : 0U;
    if (violating_record_.empty() && mode_ != Mode::once && matched == (mode_ == Mode::never)) {
        // Evaluates the record again to collect its values. The result is already known.
        static_cast<void>(matches(&collect));
        violating_record_ = describe();
    }
}

void Expectation::evaluate_record(const Record& record) {
    if (mode_ == Mode::always && !filter_.has_any_key_in(record)) {
        return;
    }
    add_result([&](const ValueObserver* observer) { return filter_.matches(record, observer); },
               [&] {
                   violation_time_ =
                       std::visit([](const auto* each) { return each->head.time; }, record);
                   return describe_record(record);
               });
}

void Expectation::evaluate_line(std::string_view line) {
    if (mode_ == Mode::always && !has_any_key_in_line(filter_, line)) {
        return;
    }
    add_result([&](const ValueObserver* observer) { return matches_line(filter_, line, observer); },
               [&] { return describe_line(line); });
}

void Expectation::add_results(const Expectation& other) {
    num_evaluated_ += other.num_evaluated_;
    num_matched_ += other.num_matched_;
    if (mode_ == Mode::once) {
        for (std::size_t i = 0; i < observed_.size(); ++i) {
            observed_[i].add_values_of(other.observed_[i]);
        }
    } else if (!other.violating_record_.empty() &&
               (violating_record_.empty() || other.violation_time_ < violation_time_)) {
        violating_record_ = other.violating_record_;
        violation_time_ = other.violation_time_;
        observed_ = other.observed_;
    }
}

bool Expectation::is_met() const {
    switch (mode_) {
    case Mode::once:
        return num_matched_ != 0;
    case Mode::never:
        return num_matched_ == 0;
    case Mode::always:
        return num_evaluated_ != 0 && num_matched_ == num_evaluated_;
    }
    return false;
}

std::string Expectation::describe_values() const {
    std::string out;
    std::set<std::string_view> described;
    for (std::size_t i = 0; i < observed_.size(); ++i) {
        const std::string_view key = filter_.comparisons()[i].text;
        if (!described.insert(key).second) {
            continue;
        }
        // Joins the values of all comparisons of the key. A single comparison may lack values,
        // because it is not evaluated for records whose result it cannot change.
        ObservedValues all;
        for (std::size_t j = i; j < observed_.size(); ++j) {
            if (filter_.comparisons()[j].text == key) {
                all.add_values_of(observed_[j]);
            }
        }
        out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", key,
                           all.empty() ? "nothing" : all.describe());
    }
    return out;
}

std::string Expectation::unmet_reason() const {
    if (is_met()) {
        return {};
    }
    if (num_evaluated_ == 0) {
        return mode_ == Mode::always ? "no record has a key it names" : "there were no records";
    }
    const std::string records = record::count_with_noun(num_evaluated_, "record[s]");
    if (mode_ == Mode::once) {
        return fmt::format("none of {} matched; seen: {}", records, describe_values());
    }
    const std::uint64_t offenders =
        mode_ == Mode::never ? num_matched_ : num_evaluated_ - num_matched_;
    return fmt::format("{} of {} {}; the first: {}; seen: {}", offenders, records,
                       mode_ == Mode::never ? "matched" : "did not match", violating_record_,
                       describe_values());
}

void Expectations::on_record(const Record& record) {
    for (Expectation& expectation : expectations_) {
        expectation.evaluate_record(record);
    }
}

void add_results(std::span<Expectation> expectations, std::span<const Expectation> others) {
    for (std::size_t i = 0; i < std::min(expectations.size(), others.size()); ++i) {
        expectations[i].add_results(others[i]);
    }
}

} // namespace tw::filter
