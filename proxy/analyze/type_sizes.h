#pragma once

#include "proxy/record/records.h"
#include "snapshot/objects.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json.hpp>

namespace tw::analyze {

/// A numbered type whose items have another size than the protocol sets.
struct SizeDifference {
    std::string object; ///< name of the type
    std::uint16_t type_id = 0;
    std::size_t agreed_ints = 0; ///< number of ints that the protocol sets
    std::size_t actual_ints = 0; ///< number of ints in the server's snapshots
    std::uint64_t snapshots = 0; ///< number of verified snapshots with items of this size
    /// For example "client_info: 18 ints instead of 17; read this way, 1237 snapshots have the
    /// right checksum".
    std::string text;
    /// True if the server sends the agreed size, and the objects file describes another one.
    bool is_file_wrong = false;
};

/// Collects the sizes of numbered item types in verified snapshots, and finds sizes other than the
/// agreed ones. The protocol sets a type's agreed size, so deltas do not contain it. The records
/// must come from an inspector with inspect::Options::learn_sizes.
class TypeSizes final : public record::RecordSink {
  public:
    /// `objects`: the objects with which the traffic is decoded, including those of an objects
    /// file.
    explicit TypeSizes(const snapshot::ObjectSet& objects = snapshot::ObjectSet::standard())
        : objects_{&objects} {}

    void on_record(const record::Record& record) override;

    [[nodiscard]] bool has_snapshots() const { return num_snapshots_ != 0; }

    [[nodiscard]] bool has_differences() const { return !differing_.empty(); }

    /// True if a type has a size that neither the protocol nor the objects file sets, but no
    /// finding names the type, because too few snapshots contain it.
    [[nodiscard]] bool has_unreported_differences() const;

    [[nodiscard]] std::string sizes_table() const;
    [[nodiscard]] boost::json::object sizes_json() const;
    /// Returns the counted types with another size than the protocol sets.
    [[nodiscard]] std::vector<SizeDifference> differences() const;
    /// Returns an objects file (snapshot/OBJECTS.md) with the types whose size is not the agreed
    /// one. Ints without a name are called `int_4` and so on.
    [[nodiscard]] std::string objects_json() const;

  private:
    struct SizeCounts {
        /// Number of snapshots with an item of the type, by the item's size.
        std::map<std::size_t, std::uint64_t> snapshots;
        std::uint64_t counted = 0; ///< number of the latest snapshot that was counted
    };

    /// A numbered type. 0.6 and 0.7 have separate numbers.
    using NumberedType = std::pair<snapshot::Dialect, std::uint16_t>;

    /// Returns the size that the objects file sets; 0 if deltas contain the size; nullopt if the
    /// file does not change the agreed size.
    [[nodiscard]] std::optional<std::size_t> size_in_objects_file(const NumberedType& type) const;
    /// True if the objects file describes this size, and the protocol sets another one.
    [[nodiscard]] bool is_in_objects_file(const NumberedType& type, std::size_t size) const;
    [[nodiscard]] bool is_unreported_difference(const NumberedType& type, std::size_t size) const;
    [[nodiscard]] std::string_view size_note(const NumberedType& type, std::size_t size) const;

    const snapshot::ObjectSet* objects_;
    std::map<std::uint32_t, snapshot::Dialect> sessions_; ///< the dialect of each session
    std::map<NumberedType, SizeCounts> types_;
    /// The sizes that snapshot.size_differs findings report, by type; 0 if deltas contain the size.
    std::map<NumberedType, std::size_t> differing_;
    std::uint64_t num_snapshots_ = 0;
};

/// Returns whether TypeSizes::objects_json() could have returned this text. False if somebody
/// changed it, for example moved or renamed a field.
[[nodiscard]] bool is_unedited_objects_json(std::string_view text);

} // namespace tw::analyze
