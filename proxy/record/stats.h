#pragma once

#include "proxy/record/findings.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace tw::record {

/// Minimum, mean and maximum of a stream of numbers.
struct Spread {
    std::uint64_t count = 0;
    std::int64_t sum = 0;
    std::int64_t min = 0;
    std::int64_t max = 0;

    void add(std::int64_t value) {
        min = count == 0 ? value : std::min(min, value);
        max = count == 0 ? value : std::max(max, value);
        sum += value;
        ++count;
    }

    void merge(const Spread& other) {
        if (other.count == 0) {
            return;
        }
        min = count == 0 ? other.min : std::min(min, other.min);
        max = count == 0 ? other.max : std::max(max, other.max);
        sum += other.sum;
        count += other.count;
    }

    [[nodiscard]] double mean() const {
        return count == 0 ? 0.0 : static_cast<double>(sum) / static_cast<double>(count);
    }
};

/// Totals of one direction.
struct DirectionStats {
    std::uint64_t datagrams = 0;
    std::uint64_t bytes = 0;              ///< of UDP payload
    std::uint64_t malformed = 0;          ///< datagrams that are no packet
    std::uint64_t compressed = 0;         ///< packets
    std::uint64_t compressed_bytes = 0;   ///< their payload as sent
    std::uint64_t decompressed_bytes = 0; ///< and after decompression
    std::uint64_t chunks = 0;
    std::uint64_t messages = 0;   ///< accepted: duplicates and those behind a gap do not count
    std::uint64_t vital = 0;      ///< accepted vital chunks
    std::uint64_t resent = 0;     ///< chunks with the resend bit
    std::uint64_t duplicates = 0; ///< vital chunks had before
    std::uint64_t gaps = 0;       ///< vital chunks dropped because one before them is missing
    std::uint64_t recovered = 0;  ///< vital chunks that were accepted as a resend only
    /// What came behind something younger, and was not had before: vital chunks, snapshots.
    std::uint64_t reordered = 0;
    std::uint64_t resend_requests = 0;
    std::uint64_t control = 0;
    std::uint64_t connless = 0;
    std::uint64_t wrong_token = 0;
    /// How much longer or shorter a snapshot (s2c) or an input (c2s) took than the one before it,
    /// by the game's clock; the mean is what RFC 3550 smooths into its jitter.
    Spread jitter_us;

    void merge(const DirectionStats& other);
};

/// Totals of a session, or of the run.
struct SessionStats {
    std::array<DirectionStats, 2> directions; ///< c2s, s2c

    std::uint64_t snapshots = 0;   ///< complete ones, rebuilt or not
    std::uint64_t verified = 0;    ///< checksum agreed, or empty on a known base
    std::uint64_t mismatched = 0;  ///< checksum disagreed
    std::uint64_t undecodable = 0; ///< broken deltas
    std::uint64_t unknown_base = 0;
    std::uint64_t incomplete = 0; ///< parts missing
    std::uint64_t repeated = 0;   ///< a tick that was there already
    std::uint64_t full = 0;       ///< built on nothing
    std::uint64_t empty = 0;      ///< nothing changed
    std::uint64_t parts = 0;
    std::uint64_t delta_bytes = 0;
    std::uint64_t ticks_skipped = 0; ///< ticks between snapshots beyond the usual step: lost ones
    std::uint64_t missed = 0;        ///< snapshots that would fill these ticks, incomplete ones too
    Spread items;
    Spread snapshot_bytes;       ///< as the reference builder counts
    Spread delta_distance;       ///< ticks between a snapshot and its base
    Spread snapshot_interval_us; ///< between two snapshots' arrival
    Spread ack_lag_ticks;        ///< newest snapshot sent minus the one acknowledged
    Spread input_margin_ms;      ///< how early inputs reach the server (input_timing)
    std::uint64_t map_changes = 0;
    std::uint64_t gap_lost = 0; ///< copies of datagrams that were never looked at

    std::array<std::uint64_t, kFindingCount> findings{};

    void merge(const SessionStats& other);
};

} // namespace tw::record
