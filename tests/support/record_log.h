#pragma once

#include "proxy/record/records.h"

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace tw::test {

/// Writes every record as one short line that a test can compare:
///     session established 0.6+ddnet          session close bye
///     message c2s input                      message s2c rcon_line #6
///     map dm1 none
///     snapshot 100<-98 ok 4                  snapshot 100<-98 bad
///     finding snapshot.crc_mismatch tick 100 character 3 duplicate_update
///     summary
/// Unnamed items of a finding are `type/id`.
class RecordLog final : public record::RecordSink {
  public:
    void on_record(const record::Record& record) override;

    /// Returns all lines of these types, in order: "finding", "snapshot", …
    [[nodiscard]] std::vector<std::string>
    lines(std::initializer_list<std::string_view> types) const;

    [[nodiscard]] std::vector<std::string> findings() const { return lines({"finding"}); }

    /// Removes all lines.
    void clear() { lines_.clear(); }

    /// Returns how often a finding was recorded.
    [[nodiscard]] std::size_t count_of(std::string_view finding) const;

    /// All texts and bytes in records that are not marked as secret.
    [[nodiscard]] const std::string& shown() const { return shown_; }

    [[nodiscard]] const std::vector<record::SessionStats>& summaries() const { return summaries_; }

  private:
    std::vector<std::string> lines_;
    std::string shown_;
    std::vector<record::SessionStats> summaries_;
};

} // namespace tw::test
