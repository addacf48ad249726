#pragma once

#include "proxy/record/records.h"
#include "proxy/sink/json_buffer.h"
#include "proxy/sink/json_items.h"
#include "proxy/sink/output.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace tw::sink {

/// What the JSON lines hold.
struct JsonOptions {
    ItemChoice items = ItemChoice::changed;
    bool raw = false; ///< `data` of every item, not only of unknown ones
    /// What is known of items; null: the standard table.
    const snapshot::ObjectSet* objects = nullptr;
    bool show_secrets = false; ///< passwords, codes and whispers in clear
};

/// Writes records as JSON, one object a line (RECORDS.md describes every key). Whole lines are
/// handed to the output in blocks.
class JsonLines final : public record::RecordSink {
  public:
    JsonLines(const JsonOptions& options, Output& output);

    void on_record(const record::Record& record) override;
    /// Hands over what is gathered.
    void flush();

  private:
    /// Lines are gathered up to here before they are handed over.
    static constexpr std::size_t kBlockBytes = std::size_t{64} << 10U;

    void write(const record::SessionRecord& record);
    void write(const record::MessageRecord& record);
    void write(const record::MapRecord& record);
    void write(const record::SnapshotRecord& record);
    void write(const record::FindingRecord& record);
    void write(const record::SummaryRecord& record);
    void write(const record::ImpairmentRecord& record);
    void impaired(const std::array<record::FateStats, 2>& directions);
    void head(std::string_view type, const record::RecordHead& head);
    void time(record::Timestamp time);
    void values(std::span<const wire::FieldValue> values);
    void value_names(std::span<const wire::FieldValue> values);

    void key(std::string_view name);
    void text(std::string_view name, std::string_view value);
    void number(std::string_view name, std::int64_t value);
    void boolean(std::string_view name, bool value);

    JsonOptions options_;
    Output* output_;
    JsonBuffer out_;
    ItemWriter items_;
    std::optional<std::int64_t> second_; ///< of the time text kept in `second_text_`
    std::string second_text_;
};

} // namespace tw::sink
