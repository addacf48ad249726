#pragma once

#include "proxy/inspect/records.h"
#include "proxy/record/json_buffer.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace tw::record {

/// Which items of a snapshot are written.
enum class ItemChoice : std::uint8_t {
    none,
    changed, ///< new or different from the session's previous snapshot; all on every 250th
    all,
};

/// Appends the names of the set flags as an array.
void write_flag_names(const snapshot::NameTable& names, std::int32_t value, JsonBuffer& out);

/// Writes the `items` and `removed` of snapshots. Keys and names are prepared once for every object
/// of the table; then an item is a run of copies and numbers.
class ItemWriter {
  public:
    ItemWriter(ItemChoice choice, bool raw, const snapshot::ObjectSet& objects);

    /// Appends `,"items":[...],"removed":[...]`, and `,"full":true` when all items are listed.
    void write(const inspect::SnapshotRecord& record, JsonBuffer& out) const;
    /// Appends an object for a place: `{"x":..,"y":..,"tile":[..],...}`.
    static void write_place(const inspect::WorldPlace& place, JsonBuffer& out);

  private:
    struct NamedField {
        Literal key; ///< `"weapon":`
        std::uint8_t offset = 0;
        const snapshot::NameTable* names = nullptr;
        std::uint32_t names_when = 0;
    };

    struct PreparedField {
        Literal key; ///< `,"x":`, without the comma for the first
        snapshot::FieldKind kind = snapshot::FieldKind::integer;
        std::uint8_t offset = 0;
        std::uint8_t count = 1;
    };

    struct PreparedObject {
        Literal front; ///< `{"type":"character","type_id":`
        std::vector<PreparedField> fields;
        std::vector<NamedField> names;
    };

    void write_item(const inspect::SnapshotRecord& record, const snapshot::ItemView& item,
                    JsonBuffer& out) const;
    static void write_fields(const PreparedObject& object, std::span<const std::int32_t> data,
                             JsonBuffer& out);
    static void write_names(const PreparedObject& object, std::span<const std::int32_t> data,
                            JsonBuffer& out);
    static void write_player(const inspect::SnapshotRecord& record, std::uint16_t client,
                             JsonBuffer& out);

    void prepare(const snapshot::ObjectSpec& object);

    const snapshot::ObjectSet* set_;
    ItemChoice choice_;
    bool raw_;
    std::vector<PreparedObject> objects_; ///< in the order of ObjectSet::index_of
};

} // namespace tw::record
