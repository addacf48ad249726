#pragma once

#include "proxy/sink/json_buffer.h"
#include "snapshot/item.h"
#include "snapshot/objects.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tw::sink {

/// Writes the items of one object. All text that does not depend on the item's ints is made once,
/// and so is the bound of what an item takes; then an item is a run of copies and numbers.
class ObjectWriter {
  public:
    explicit ObjectWriter(const snapshot::ObjectSpec& object);

    /// Appends `{"type":"character","type_id":9,"id":0,"fields":{...},"names":{...}`, which the
    /// caller goes on with.
    /// `untold`: bits of ints that are not known (record::Sightings); their fields are left out.
    void write(snapshot::ItemKey key, std::span<const std::int32_t> data, std::uint32_t untold,
               JsonBuffer& out) const;

  private:
    struct Field {
        Literal key; ///< `,"x":`, without the comma for the first
        snapshot::FieldKind kind = snapshot::FieldKind::integer;
        std::uint8_t offset = 0;
        std::uint8_t count = 1;
        std::uint32_t bit = 0; ///< of its first int, among those that may be untold
    };

    struct Flag {
        std::uint32_t mask = 0;
        Literal name; ///< `,"in_menu"`
    };

    struct Name {
        std::int64_t value = 0;
        Literal text; ///< `,"weapon":"gun"`
    };

    /// A field with names beside its number.
    struct Names {
        std::uint8_t offset = 0;
        std::uint32_t when = 0;
        std::uint32_t bit = 0;
        std::vector<Name> values{}; ///< by value, each once
        Literal key{};              ///< `,"playerflags":[`, for flags
        std::vector<Flag> flags{};
    };

    void prepare_names(const snapshot::FieldSpec& field);
    [[nodiscard]] char* put_fields(char* to, std::span<const std::int32_t> data,
                                   std::uint32_t untold) const;
    [[nodiscard]] char* put_names(char* to, std::span<const std::int32_t> data,
                                  std::uint32_t untold) const;
    [[nodiscard]] static char* put_name(char* to, const Names& names, std::int32_t value);

    Literal front_; ///< `{"type":"character","type_id":`
    std::vector<Field> fields_;
    std::vector<Names> names_;
    std::size_t room_ = 0; ///< bytes that an item takes at most
};

/// Appends the text that is packed in these ints as a JSON string.
void append_int_string(JsonBuffer& out, std::span<const std::int32_t> ints);

} // namespace tw::sink
