#pragma once

#include "proxy/record/schema.h"
#include "proxy/record/values.h"
#include "proxy/sink/json_buffer.h"
#include "proxy/sink/json_items.h"
#include "proxy/sink/open_sessions.h"
#include "proxy/sink/output.h"

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tw::sink {

/// What the JSON lines hold.
struct JsonOptions {
    ItemChoice items = ItemChoice::changed;
    bool raw = false;     ///< `data` of every item, not only of unknown ones
    bool messages = true; ///< single ones
    /// What is known of items; null: the standard table.
    const snapshot::ObjectSet* objects = nullptr;
    bool show_secrets = false; ///< passwords, rcon, codes and whispers in clear
};

/// Writes records as JSON, one object a line (RECORDS.md describes every key). Whole lines are
/// handed to the output in blocks. Where the output has segments, each begins with what was written of
/// the sessions that are open, and of their maps; their next snapshots list all items.
class JsonLines final : public record::RecordSink {
  public:
    JsonLines(const JsonOptions& options, Output& output);

    void on_record(const record::Record& record) override;
    /// Hands over what is gathered.
    void flush();

    /// Bytes of all lines so far.
    [[nodiscard]] std::uint64_t written() const { return handed_over_ + out_.size(); }

  private:
    /// Lines are gathered up to here before they are handed over.
    static constexpr std::size_t kBlockBytes = std::size_t{64} << 10U;

    void begin_segment();
    void hand_over();
    template <typename Source, typename Schema>
    void write_rows(const Source& source, const Schema& schema);
    template <typename Source, typename Row>
    void write_row(const Source& source, const Row& row);
    template <typename Key, typename Value>
    void write_member(const Key& key, const Value& value);

    template <std::size_t Length>
    void put_key(const record::KeyText<Length>& key);
    void put_key(std::string_view name);

    void put(bool value);

    void put(double value) { out_.append_fixed(value); }

    template <std::integral Integer>
    void put(Integer value);

    void put(std::string_view text) { out_.append_string(text); }

    void put(record::Moment moment);
    void put(record::Severity severity);
    void put(record::FindingId id);
    void put(record::OrNull number);
    void put(const record::Hex& hex);
    void put(record::Hex32 number);
    void put(const snapshot::Uuid& uuid);
    void put(record::Fields fields);
    void put(const record::Spread& spread);
    void put(record::FindingTotals findings);
    void put(record::Candidates candidates);

    void put(const record::WorldPlace& place) { ItemWriter::write_place(place, out_); }

    void put_field(const wire::FieldValue& value);
    void put_names(std::string_view key, record::FieldNames names);

    JsonOptions options_;
    Output* output_;
    JsonBuffer out_;
    std::uint64_t handed_over_ = 0; ///< bytes
    ItemWriter items_;
    std::optional<std::int64_t> second_; ///< of the time text kept in `second_text_`
    std::string second_text_;
    std::uint32_t segment_; ///< 0: there are none
    bool whole_ = false;    ///< the snapshot at hand is to list all items
    OpenSessions sessions_; ///< only where there are segments
};

} // namespace tw::sink
