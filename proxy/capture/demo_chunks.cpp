#include "proxy/capture/demo_chunks.h"

#include "proxy/sink/demo_format.h"
#include "proxy/wire/huffman.h"
#include "snapshot/varint.h"

namespace tw::capture {

namespace {

namespace demo = sink::demo;

constexpr std::size_t kIntBytes = 4;

} // namespace

std::uint8_t DemoChunks::u8() {
    return std::to_integer<std::uint8_t>(chunks_[used_++]);
}

std::optional<DemoChunk> DemoChunks::fail(DemoErrc code) {
    error_ = {code, at_ + begin_};
    return std::nullopt;
}

std::optional<DemoChunk> DemoChunks::next() {
    if (failed() || left() == 0) {
        return std::nullopt;
    }
    begin_ = used_;
    const std::uint8_t first = u8();
    return (first & demo::kTickBit) != 0 ? next_tick(first) : next_data(first);
}

std::optional<DemoChunk> DemoChunks::next_tick(std::uint8_t first) {
    const bool steps = version_ >= demo::kStepsVersion;
    const bool by_step = steps ? (first & demo::kStepBit) != 0 : (first & demo::kOldStepMask) != 0;
    std::int64_t tick = 0;
    if (by_step) {
        if (!tick_) {
            return fail(DemoErrc::tick_before_first);
        }
        tick = std::int64_t{*tick_} + (first & (steps ? demo::kStepMask : demo::kOldStepMask));
    } else {
        if (left() < kIntBytes) {
            return fail(DemoErrc::chunk_cut);
        }
        std::uint32_t absolute = 0;
        for (std::size_t i = 0; i < kIntBytes; ++i) {
            absolute = absolute << 8U | u8();
        }
        tick = static_cast<std::int32_t>(absolute);
    }
    if (tick < 0 || tick > demo::kMaxTick) {
        return fail(DemoErrc::tick_out_of_range);
    }
    tick_ = static_cast<snapshot::Tick>(tick);
    return DemoChunk{.kind = DemoChunk::Kind::tick,
                     .keyframe = (first & demo::kKeyframeBit) != 0,
                     .tick = *tick_,
                     .offset = at_ + begin_,
                     .data = {}};
}

std::optional<DemoChunk> DemoChunks::next_data(std::uint8_t first) {
    std::size_t size = first & demo::kSizeMask;
    const std::size_t more = size < demo::kSizeOneByte ? 0 : size == demo::kSizeOneByte ? 1 : 2;
    if (left() < more) {
        return fail(DemoErrc::chunk_cut);
    }
    if (more != 0) {
        size = u8();
        size |= more == 1 ? 0 : std::size_t{u8()} << 8U;
    }
    if (left() < size) {
        return fail(DemoErrc::chunk_cut);
    }
    using enum DemoChunk::Kind;
    static constexpr DemoChunk::Kind kKinds[] = {other, snapshot, message, delta};
    const DemoChunk chunk{.kind = kKinds[first >> demo::kTypeShift & demo::kTypeMask],
                          .offset = at_ + begin_,
                          .data = chunks_.subspan(used_, size)};
    used_ += size;
    return chunk;
}

DemoPayload::DemoPayload()
    : bytes_(demo::kMaxPayload), ints_(demo::kMaxPayload + snapshot::kVarintsSlack) {}

DemoResult<std::span<const std::byte>> DemoPayload::varints(const DemoChunk& chunk) {
    if (chunk.data.empty()) {
        return chunk.data; // players do not decompress it
    }
    const auto size = wire::huffman_decompress(chunk.data, bytes_);
    if (!size) {
        const bool long_one = size.error().code == wire::WireErrc::huffman_overflow;
        return tl::unexpected{DemoError{
            long_one ? DemoErrc::payload_too_long : DemoErrc::payload_undecodable, chunk.offset}};
    }
    return std::span<const std::byte>{bytes_}.first(*size);
}

DemoResult<std::span<const std::int32_t>> DemoPayload::ints(const DemoChunk& chunk) {
    const auto bytes = varints(chunk);
    if (!bytes) {
        return tl::unexpected{bytes.error()};
    }
    const snapshot::VarintsDecoded decoded = snapshot::decode_varints(*bytes, ints_);
    if (decoded.bytes != bytes->size()) {
        return tl::unexpected{DemoError{DemoErrc::payload_ints_cut, chunk.offset}};
    }
    if (decoded.count > demo::kMaxPayload / kIntBytes) {
        return tl::unexpected{DemoError{DemoErrc::payload_too_long, chunk.offset}};
    }
    return std::span<const std::int32_t>{ints_}.first(decoded.count);
}

DemoResult<std::span<const std::byte>> DemoPayload::message(const DemoChunk& chunk) {
    const auto decoded = ints(chunk);
    if (!decoded) {
        return tl::unexpected{decoded.error()};
    }
    message_.clear();
    for (const std::int32_t value : *decoded) {
        const auto bits = static_cast<std::uint32_t>(value);
        for (const unsigned shift : {0U, 8U, 16U, 24U}) {
            message_.push_back(static_cast<std::byte>(bits >> shift));
        }
    }
    return std::span<const std::byte>{message_};
}

} // namespace tw::capture
