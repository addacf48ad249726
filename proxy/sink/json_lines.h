#pragma once

#include "proxy/record/records.h"
#include "proxy/sink/json_buffer.h"
#include "proxy/sink/json_items.h"
#include "proxy/sink/output.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tw::record {
template <std::size_t Length>
class KeyText;
} // namespace tw::record

namespace tw::sink {

/// Stores, for each open session, the record lines that a reader of a later segment needs: the
/// lines about its opening, its establishment and its map.
class OpenSessions {
  public:
    /// Stores a record's line if readers of later segments need it. `line` includes the newline.
    void store_line(const record::Record& record, std::string_view line);
    /// Appends all stored lines to `out`, each with the key `again`.
    void append_stored_lines(JsonBuffer& out) const;
    /// Returns whether the record is its session's first snapshot with items in this segment, or
    /// the first world in this segment.
    [[nodiscard]] bool is_first_snapshot(const record::Record& record, std::uint32_t segment);

  private:
    /// The most sessions for which lines are stored. No proxy has more sessions.
    static constexpr std::size_t kMaxSessions = 65536;

    /// The lines of a session, without newlines.
    struct CurrentLines {
        std::string open;
        std::string established;
        std::string map;
        /// The last segment that contains a snapshot of the session with all items.
        std::uint32_t last_full_segment = 0;
    };

    void on_session_event(const record::SessionRecord& event, std::string_view line);
    /// Returns the lines of a session; null if the limit of sessions is reached.
    [[nodiscard]] CurrentLines* find_session(std::uint32_t number);

    std::map<std::uint32_t, CurrentLines> sessions_;
    /// The last segment that contains a record of a world with all items.
    std::uint32_t last_full_world_segment_ = 0;
};

/// Options that decide which records and keys JsonLines writes.
struct JsonOptions {
    ItemChoice items = ItemChoice::changed;
    bool raw = false;     ///< write the key `data` of all items, not only of unknown items
    bool messages = true; ///< write the records of single messages
    /// The known objects; null: the objects of the standard table.
    const snapshot::ObjectSet* objects = nullptr;
    bool show_secrets = false; ///< write passwords, rcon, /timeout codes and whispers unredacted
    /// The longest line in bytes; 0: no limit. Records of longer snapshots and worlds are split
    /// (see split_line()).
    std::size_t max_line_bytes = 0;
};

/// Writes records as JSON, one object on each line (RECORDS.md describes every key). Passes blocks
/// of complete lines to the output. If the output has segments, each segment starts with lines
/// about the open sessions and their maps, and each session's first snapshot in it lists all items.
class JsonLines final : public record::RecordSink {
  public:
    JsonLines(const JsonOptions& options, Output& output);

    void on_record(const record::Record& record) override;
    void flush();

    [[nodiscard]] std::uint64_t bytes_written() const { return passed_bytes_ + out_.size(); }

  private:
    /// The collected lines are passed to the output when they have this many bytes.
    static constexpr std::size_t kBlockBytes = std::size_t{64} << 10U;

    void begin_segment();
    void write_collected_lines();
    /// Splits the line at the end of out_ into several lines if it is too long. `begin`: the line's
    /// offset in out_.
    void split_long_line(std::size_t begin);
    template <typename Source, typename Schema>
    void write_rows(const Source& source, const Schema& schema);
    template <typename Source, typename Row>
    void write_row(const Source& source, const Row& row);
    template <typename Key, typename Value>
    void write_member(const Key& key, const Value& value);

    template <std::size_t Length>
    void put_key(const record::KeyText<Length>& key);

    template <typename Value>
    void put(const Value& value);
    void put_value(record::UtcTime moment);
    void put_value(record::NumberOrNull number);
    void put_value(const record::Hex& hex);
    void put_value(record::MessageFields fields);
    void put_value(const record::Distribution& distribution);
    void put_value(record::FindingTotals findings);
    void put_value(record::CauseCandidates candidates);
    void put_field(const wire::FieldValue& value);
    void put_names(std::string_view key, record::ValueNames names);

    JsonOptions options_;
    Output* output_;
    JsonBuffer out_;
    JsonBuffer split_lines_;         ///< the lines into which a long record is split
    std::uint64_t passed_bytes_ = 0; ///< number of bytes passed to the output
    ItemWriter items_;
    std::optional<std::int64_t> second_; ///< the UTC second whose text is in `second_text_`
    std::string second_text_;
    std::uint32_t segment_;        ///< 0 if the output has no segments
    bool lists_all_items_ = false; ///< true if the current snapshot must list all items
    OpenSessions sessions_;        ///< filled only if the output has segments
};

/// Returns a record as a JSON line, with its newline; empty if the options leave the record out.
[[nodiscard]] std::string json_line(const record::Record& record, const JsonOptions& options = {});

} // namespace tw::sink
