#pragma once

#include "proxy/run/relay_window.h"
#include "proxy/sink/json_lines.h"

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace tw::run {

/// Impairs the relay's lines while it runs, and writes into the records how. Safe for several
/// threads.
class ImpairmentControl {
  public:
    /// `records` may be null: nothing is written. Writes the record of an impairment that is there
    /// from the start.
    ImpairmentControl(RelayWindow& relay, sink::Output* records, const sink::JsonOptions& options);

    /// Changes it, to what relay::parse_impairment reads; the seed stays. Returns what is in force
    /// now.
    /// Errors: one line that says what is wrong with the text, that the relay cannot be asked, or
    /// that the run is over.
    [[nodiscard]] tl::expected<std::string, std::string> set(std::string_view text);

    /// As relay::parse_impairment reads it.
    [[nodiscard]] std::string settings() const { return relay::to_string(relay_->impairment()); }

    /// The records go to this segment now, counted from 1. Writes down again in each further one
    /// what is in force, if anything is: it can be read alone.
    void on_segment(std::uint32_t number);

    /// To be called before the records end: no change is taken any more.
    void finish();

  private:
    void write(const relay::Impairment& impairment);
    void write_record(const relay::Impairment& impairment, bool again);

    RelayWindow* relay_;
    sink::Output* records_;
    sink::JsonOptions options_;
    std::uint32_t segment_ = 1;
    std::mutex mutex_;
    bool finished_ = false;
};

/// What became of the datagrams on impaired lines; nothing when none were.
[[nodiscard]] std::optional<std::array<record::FateStats, 2>>
impaired_totals(const relay::Counters& counters);

} // namespace tw::run
