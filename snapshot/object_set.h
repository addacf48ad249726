#pragma once

#include "snapshot/objects.h"

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tw::snapshot {

/// What a mod adds: an object that is not in the table. Owns what its description points at.
struct CustomObject {
    struct Field {
        std::string name;
        FieldKind kind = FieldKind::integer;
        std::uint8_t offset = 0;
        std::uint8_t count = 1;
        bool flags = false;
        std::vector<std::pair<std::int64_t, std::string>> names{};
    };

    std::uint16_t type = 0; ///< number on the wire, 0 for those named by a UUID
    Uuid uuid{};
    std::string name;
    std::uint8_t size = 0;
    bool agreed = false; ///< numbered types: the size is not written in deltas
    std::vector<Field> fields{};
    std::optional<PositionSpec> position{};
    Dialect dialect = Dialect::six; ///< of a numbered type
};

/// The objects of a run: the table of objects.h and what a mod adds to it.
class ObjectSet {
  public:
    ObjectSet();

    /// The table alone.
    [[nodiscard]] static const ObjectSet& standard();

    /// False when the type or UUID is there already, or the type is none that can be added. A type
    /// that everybody agreed on gives way. Types are those of 0.6; of 0.7 where the object says so.
    [[nodiscard]] bool add(const CustomObject& object);

    [[nodiscard]] const ObjectSpec* find(std::uint16_t type, Dialect dialect) const;
    [[nodiscard]] const ObjectSpec* find(const Uuid& uuid) const;

    [[nodiscard]] const AgreedSizes& sizes(Dialect dialect) const {
        return sizes_[static_cast<std::size_t>(dialect)];
    }

    /// What was added; specs stay where they are.
    [[nodiscard]] std::span<const ObjectSpec> custom() const { return custom_; }

    /// Place of a spec that `find` gave: those of the table come first, then what was added.
    [[nodiscard]] std::size_t index_of(const ObjectSpec& spec) const;

  private:
    /// More than any mod has; a server describes at most 64 types.
    static constexpr std::size_t kMaxCustom = 256;

    /// What custom specs point at.
    struct Owned {
        CustomObject object;
        std::vector<FieldSpec> fields;
        std::deque<std::vector<NamedValue>> values;
        std::deque<NameTable> tables;
    };

    std::vector<ObjectSpec> custom_; ///< never grows past what it has reserved
    std::vector<std::unique_ptr<Owned>> owned_;
    std::array<AgreedSizes, kDialects> sizes_{kAgreedSizes, kSevenAgreedSizes};
};

} // namespace tw::snapshot
