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

/// An object that a mod adds, or its own form of a known one. Owns what its description points at.
struct CustomObject {
    struct Field {
        std::string name;
        FieldKind kind = FieldKind::integer;
        std::uint8_t offset = 0;
        std::uint8_t count = 1;
        bool flags = false;
        std::vector<std::pair<std::int64_t, std::string>> names{};
        const NameTable* known_names = nullptr; ///< of the table; used if `names` is empty
        std::uint32_t names_when = 0;           ///< as in FieldSpec; only of `known_names`
        FieldMerge merge = FieldMerge::any;
        InSix in_six = InSix::same;
    };

    std::uint16_t type = 0; ///< number on the wire, 0 for those named by a UUID
    Uuid uuid{};
    std::string name;
    std::string uuid_name{}; ///< what the UUID was made of; empty if unknown
    std::uint8_t size = 0;
    bool agreed = false; ///< numbered types: the size is not written in deltas
    std::vector<Field> fields{};
    std::optional<PositionSpec> position{};
    std::optional<ClientSpec> client{};
    Dialect dialect = Dialect::six; ///< of a numbered type
    ObjectKind kind = ObjectKind::object;
    MergeSpec merge{};
};

/// The objects of a run: the table of objects.h and what a mod adds to it.
class ObjectSet {
  public:
    ObjectSet();

    /// The table alone.
    [[nodiscard]] static const ObjectSet& standard();

    /// More than any mod has; a server describes at most 64 types.
    static constexpr std::size_t kMaxCustom = 256;

    /// Adds an object, or replaces the table's object of that type or UUID. False if another added
    /// object has the type or UUID, if the type is not one that can be added, or if the set is full.
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
