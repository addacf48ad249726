#pragma once

#include "proxy/record/records.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

/// What can stand under a key of a record beside numbers, bools and texts.
namespace tw::record {

inline constexpr std::array<std::string_view, 2> kDirectionNames{"c2s", "s2c"};
inline constexpr std::array<std::string_view, 3> kSessionEvents{"open", "established", "close"};
/// Messages in chunks are the usual ones: their records have no `layer`.
inline constexpr std::array<std::string_view, 2> kMessageLayers{"control", "connless"};
inline constexpr std::array<std::string_view, 4> kMapSources{"folder", "wire", "demo", "none"};
/// In the order of Record.
inline constexpr std::array<std::string_view, std::variant_size_v<Record>> kRecordTypes{
    "session", "message",    "map",          "snapshot", "finding",
    "summary", "impairment", "records_lost", "world"};
/// Why records are lost.
inline constexpr std::array<std::string_view, 3> kLossCauses{"disk_full", "disk_error", "too_slow"};

/// One of a closed set of words.
template <const auto& kWords>
struct Word {
    static constexpr std::span<const std::string_view> kAll{kWords};
    std::string_view text;
};

template <typename Value>
inline constexpr bool kIsWord = requires {
    Value::kAll;
};

/// A number that is null when there is none, instead of absent.
struct OrNull {
    std::optional<std::int32_t> value;
};

/// RFC 3339 in UTC, with microseconds.
struct Moment {
    Timestamp time;
};

/// Hex digits of bytes.
struct Hex {
    std::span<const std::byte> bytes;
    wire::Secrecy secrecy = wire::Secrecy::open;
};

/// Eight hex digits of a number.
struct Hex32 {
    std::uint32_t value;
};

/// The named values of a message.
struct Fields {
    std::span<const wire::FieldValue> values;
};

/// The names of those values that have some; absent when none has.
struct FieldNames {
    std::span<const wire::FieldValue> values;
};

/// The items of a snapshot or a world.
struct Items {
    const SnapshotRecord* record;
};

/// Two numbers: a list in JSON, the keys `.x` and `.y` for filters.
struct Pair {
    std::int32_t x;
    std::int32_t y;
};

/// Stands in or beside `items`, and is written and read by whoever does that with these.
struct WithItems {};

/// A list of objects, each with kCandidateSchema.
struct Candidates {
    std::span<const Candidate> list;
};

/// How often each finding occurred; those that did not are left out of the JSON.
struct FindingTotals {
    const FindingCounts* counts;
};

} // namespace tw::record
