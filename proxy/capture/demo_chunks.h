#pragma once

#include "proxy/capture/demo_error.h"
#include "snapshot/item.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tw::capture {

/// One chunk of a demo.
struct DemoChunk {
    enum class Kind : std::uint8_t {
        tick,     ///< what follows belongs to `tick`
        snapshot, ///< in full
        delta,    ///< to the snapshot before it in the file
        message,
        other, ///< of a type nobody uses; players unpack it and show nothing of it
    };

    Kind kind = Kind::other;
    bool keyframe = false;           ///< of a tick
    snapshot::Tick tick = 0;         ///< of a tick
    std::size_t offset = 0;          ///< of its first byte in the file
    std::span<const std::byte> data; ///< compressed
};

/// Cuts a demo into its chunks, front to back.
class DemoChunks {
  public:
    /// `at`: where `chunks` begin in the file, for the offsets of errors.
    DemoChunks(std::span<const std::byte> chunks, int version, std::size_t at)
        : chunks_{chunks}, version_{version}, at_{at} {}

    /// Nothing at the end, and at an error; `error` tells them apart.
    /// Errors: chunk_cut, tick_before_first, tick_out_of_range; they last.
    [[nodiscard]] std::optional<DemoChunk> next();

    [[nodiscard]] DemoError error() const { return error_; }

    [[nodiscard]] bool failed() const { return error_.code != DemoErrc::none; }

  private:
    [[nodiscard]] std::optional<DemoChunk> next_tick(std::uint8_t first);
    [[nodiscard]] std::optional<DemoChunk> next_data(std::uint8_t first);
    [[nodiscard]] std::optional<DemoChunk> fail(DemoErrc code);

    [[nodiscard]] std::uint8_t u8();

    [[nodiscard]] std::size_t left() const { return chunks_.size() - used_; }

    std::span<const std::byte> chunks_;
    int version_;
    std::size_t at_;
    std::size_t used_ = 0;
    std::size_t begin_ = 0; ///< of the chunk at hand
    std::optional<snapshot::Tick> tick_;
    DemoError error_;
};

/// Unpacks what chunks hold; its room is used again and again.
class DemoPayload {
  public:
    DemoPayload();

    /// The varints that a chunk holds: of a delta its body, as on the network. None of a chunk
    /// without a byte.
    /// Errors: payload_undecodable, payload_too_long.
    [[nodiscard]] DemoResult<std::span<const std::byte>> varints(const DemoChunk& chunk);
    /// The ints behind them. Errors: the same, and payload_ints_cut.
    [[nodiscard]] DemoResult<std::span<const std::int32_t>> ints(const DemoChunk& chunk);
    /// The message that a chunk holds, with up to three zeros behind it. Errors: as ints.
    [[nodiscard]] DemoResult<std::span<const std::byte>> message(const DemoChunk& chunk);

  private:
    std::vector<std::byte> bytes_;
    std::vector<std::int32_t> ints_;
    std::vector<std::byte> message_;
};

} // namespace tw::capture
