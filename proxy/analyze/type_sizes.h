#pragma once

#include "proxy/record/records.h"
#include "snapshot/objects.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include <boost/json.hpp>

namespace tw::analyze {

/// Collects the sizes of numbered item types in correct snapshots, and finds those that differ from the
/// agreed sizes. The records must come from an inspector that learns sizes.
class TypeSizes final : public record::RecordSink {
  public:
    void on_record(const record::Record& record) override;

    /// True if sizes could be read from at least one snapshot.
    [[nodiscard]] bool has_snapshots() const { return snapshots_ != 0; }

    /// True if a size differs from the agreed size.
    [[nodiscard]] bool has_differences() const { return !differing_.empty(); }

    /// True if items were read with another size than agreed that no finding names: because too few
    /// snapshots contain them, or because a file of objects describes them so.
    [[nodiscard]] bool has_unnamed_differences() const;

    /// Returns the sizes as aligned columns.
    [[nodiscard]] std::string table() const;
    [[nodiscard]] boost::json::object table_json() const;
    /// Returns the types with differing sizes as a file of objects (snapshot/OBJECTS.md). Ints without a
    /// name are called `int_4` and so on.
    [[nodiscard]] std::string objects_json() const;

  private:
    struct SeenSizes {
        /// Number of snapshots with each size of item.
        std::map<std::size_t, std::uint64_t> snapshots;
        std::uint64_t counted = 0; ///< ordinal of the last snapshot that was counted
    };

    /// A numbered type. 0.6 and 0.7 have separate numbers.
    using Type = std::pair<snapshot::Dialect, std::uint16_t>;

    /// True if a size is not the agreed one, and no finding names the type.
    [[nodiscard]] bool is_unnamed(const Type& type, std::size_t size) const;

    std::map<std::uint32_t, snapshot::Dialect> sessions_; ///< the dialect of each session
    std::map<Type, SeenSizes> types_;
    /// The size of each differing type; 0 if deltas contain the size.
    std::map<Type, std::size_t> differing_;
    std::uint64_t snapshots_ = 0;
};

} // namespace tw::analyze
