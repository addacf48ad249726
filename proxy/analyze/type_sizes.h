#pragma once

#include "proxy/record/records.h"
#include "snapshot/objects.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace tw::analyze {

/// The sizes that items of numbered types have in right snapshots, and which of them nobody agreed
/// on. The records are those of an inspector that learns sizes.
class TypeSizes final : public record::RecordSink {
  public:
    void on_record(const record::Record& record) override;

    /// Whether there was anything whose sizes could be seen.
    [[nodiscard]] bool any_snapshot() const { return snapshots_ != 0; }

    /// Whether a size differs from the agreed one.
    [[nodiscard]] bool any_differs() const { return !differs_.empty(); }

    /// Aligned columns for people.
    [[nodiscard]] std::string table() const;
    /// What differs, as a file of objects (snapshot/OBJECTS.md); ints without a name are `int_4`.
    [[nodiscard]] std::string objects_json() const;

  private:
    struct Seen {
        std::map<std::size_t, std::uint64_t> snapshots; ///< by size
        std::uint64_t counted = 0; ///< number of the last snapshot that counted
    };

    /// A numbered type: 0.6 and 0.7 number their own.
    using Type = std::pair<snapshot::Dialect, std::uint16_t>;

    std::map<std::uint32_t, snapshot::Dialect> sessions_; ///< what their connections speak
    std::map<Type, Seen> types_;
    std::map<Type, std::size_t> differs_; ///< 0: written in deltas
    std::uint64_t snapshots_ = 0;
};

} // namespace tw::analyze
