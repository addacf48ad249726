#include "proxy/demo/demo_encoder.h"

#include "proxy/wire/huffman.h"
#include "snapshot/cursor.h"
#include "snapshot/delta.h"

#include <algorithm>

namespace tw::demo {

namespace {

using snapshot::SnapshotView;
using Bytes = std::vector<std::byte>;

void put_be32(std::uint32_t value, Bytes& out) {
    for (const unsigned shift : {24U, 16U, 8U, 0U}) {
        out.push_back(static_cast<std::byte>(value >> shift));
    }
}

void put_raw(std::span<const std::uint8_t> bytes, Bytes& out) {
    const auto raw = std::as_bytes(bytes);
    out.insert(out.end(), raw.begin(), raw.end());
}

/// Writes a text, a NUL, and zeros up to the end of the field. `field`: the size of the field.
void put_text(std::string_view text, std::size_t field, Bytes& out) {
    const auto raw = std::as_bytes(std::span{text}).first(std::min(text.size(), field - 1));
    out.insert(out.end(), raw.begin(), raw.end());
    out.resize(out.size() + field - raw.size());
}

void put_markers(std::span<const std::int32_t> markers, Bytes& out) {
    const std::size_t count = std::min(markers.size(), kMaxMarkers);
    put_be32(static_cast<std::uint32_t>(count), out);
    for (std::size_t i = 0; i < kMaxMarkers; ++i) {
        put_be32(i < count ? static_cast<std::uint32_t>(markers[i]) : 0, out);
    }
}

Bytes full_snapshot(const SnapshotView& items) {
    Bytes out;
    const auto put = [&out](std::size_t value) {
        snapshot::encode_varint(static_cast<std::int32_t>(value), out);
    };
    put((items.size() + items.data().size()) * kIntBytes);
    put(items.size());
    std::size_t offset = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
        put(offset);
        offset += (1 + items[i].data.size()) * kIntBytes;
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
        const snapshot::ItemView item = items[i];
        snapshot::encode_varint(static_cast<std::int32_t>(item.key.packed()), out);
        for (const std::int32_t value : item.data) {
            snapshot::encode_varint(value, out);
        }
    }
    return out;
}

/// Returns whether demo players can decode a delta between the two snapshots: items must have the
/// sizes that `sizes` contains for their types, and must not change their size.
bool can_encode_delta(const SnapshotView& from, const SnapshotView& to,
                      const snapshot::AgreedSizes& sizes) {
    for (std::size_t i = 0; i < to.size(); ++i) {
        const snapshot::ItemView item = to[i];
        const std::size_t agreed = snapshot::agreed_size(item.key.type, sizes);
        if (agreed != 0 && agreed != item.data.size()) {
            return false;
        }
        const auto old = from.find(item.key);
        if (old && from[*old].data.size() != item.data.size()) {
            return false;
        }
    }
    return true;
}

} // namespace

Bytes DemoEncoder::encode_start(const DemoHeader& header, std::span<const std::byte> map) {
    Bytes out;
    put_raw({reinterpret_cast<const std::uint8_t*>(kDemoMagic.data()), kDemoMagic.size()}, out);
    out.push_back(static_cast<std::byte>(header.version));
    put_text(header.net_version, kTextBytes, out);
    put_text(header.map_name, kTextBytes, out);
    put_be32(static_cast<std::uint32_t>(map.size()), out);
    put_be32(header.map_crc, out);
    put_text(header.type, kTypeBytes, out);
    put_be32(static_cast<std::uint32_t>(header.length), out);
    put_text(header.timestamp, kTimestampBytes, out);
    if (header.version >= kFirstVersionWithMarkers) {
        put_markers(header.markers, out);
    }
    if (header.version >= kFirstVersionWithSha256 && header.sha256) {
        put_raw(kSha256Uuid, out);
        put_raw(*header.sha256, out);
    }
    out.insert(out.end(), map.begin(), map.end());
    return out;
}

void DemoEncoder::put_tick(snapshot::Tick tick, bool keyframe, Bytes& out) const {
    const bool steps = version_ >= kFirstVersionWithSteps;
    const std::int64_t step = std::int64_t{tick} - last_;
    const std::uint8_t flags = kTickBit | (keyframe ? kKeyframeBit : 0);
    if (first_ && !keyframe && step <= (steps ? kStepMask : kOldStepMask)) {
        out.push_back(static_cast<std::byte>(flags | (steps ? kStepBit : 0) | step));
        return;
    }
    out.push_back(static_cast<std::byte>(flags));
    put_be32(static_cast<std::uint32_t>(tick), out);
}

bool DemoEncoder::put_chunk(std::uint8_t type, std::span<const std::byte> varints, Bytes& out) {
    if (varints.size() > kMaxPayloadBytes) {
        return false;
    }
    const Bytes data = wire::huffman_compress(varints, wire::HuffmanEnding::without_zero_byte);
    if (data.size() > kMaxCompressedBytes) {
        return false;
    }
    const auto put = [&out](std::size_t value) { out.push_back(static_cast<std::byte>(value)); };
    const auto head = static_cast<std::size_t>(type) << kTypeShift;
    if (data.size() < kSizeOneByte) {
        put(head | data.size());
    } else if (data.size() <= UINT8_MAX) {
        put(head | kSizeOneByte);
        put(data.size());
    } else {
        put(head | kSizeTwoBytes);
        put(data.size());
        put(data.size() >> 8U);
    }
    out.insert(out.end(), data.begin(), data.end());
    return true;
}

bool DemoEncoder::append_snapshot(snapshot::Tick tick, const SnapshotView& items, Bytes& out) {
    if (tick < 0 || tick > kMaxTick || (first_ && tick <= last_) ||
        items.size() > snapshot::kMaxItems || items.size_bytes() > snapshot::kMaxSnapshotBytes) {
        return false;
    }
    const SnapshotView base = base_.view();
    const bool keyframe = !first_ || tick - last_keyframe_tick_ > kKeyframeTicks ||
                          !can_encode_delta(base, items, *sizes_);
    const std::size_t begin = out.size();
    put_tick(tick, keyframe, out);
    const bool unchanged = !keyframe && base == items;
    const bool fits =
        unchanged ||
        (keyframe ? put_chunk(kSnapshotChunk, full_snapshot(items), out)
                  : put_chunk(kDeltaChunk, snapshot::encode_delta(base, items, *sizes_), out));
    if (!fits) {
        out.resize(begin);
        return false;
    }
    last_keyframe_tick_ = keyframe ? tick : last_keyframe_tick_;
    is_last_tick_unshown_ = unchanged;
    first_ = first_.value_or(tick);
    last_ = tick;
    if (!unchanged) {
        base_.clear();
        for (std::size_t i = 0; i < items.size(); ++i) {
            base_.append(items[i].key, items[i].data);
        }
    }
    return true;
}

bool DemoEncoder::append_message(std::span<const std::byte> payload, Bytes& out) {
    Bytes varints;
    for (std::size_t at = 0; at < payload.size(); at += kIntBytes) {
        std::uint32_t value = 0;
        for (std::size_t i = 0; i < kIntBytes && at + i < payload.size(); ++i) {
            value |= std::to_integer<std::uint32_t>(payload[at + i]) << 8U * i;
        }
        snapshot::encode_varint(static_cast<std::int32_t>(value), varints);
    }
    if (!put_chunk(kMessageChunk, varints, out)) {
        return false;
    }
    is_last_tick_unshown_ = false;
    return true;
}

void DemoEncoder::add_marker() {
    if (first_ && markers_.size() < kMaxMarkers &&
        (markers_.empty() || last_ - markers_.back() >= kMarkerTicks)) {
        markers_.push_back(last_);
    }
}

void DemoEncoder::append_final_chunk(Bytes& out) {
    // Demo players show the last tick only if a chunk follows it; an empty delta is enough.
    if (is_last_tick_unshown_ &&
        put_chunk(kDeltaChunk, snapshot::encode_delta({}, {}, *sizes_), out)) {
        is_last_tick_unshown_ = false;
    }
}

std::vector<DemoPatch> DemoEncoder::header_patches() const {
    Bytes length;
    put_be32(static_cast<std::uint32_t>((last_ - first_.value_or(last_)) / kTicksPerSecond),
             length);
    std::vector<DemoPatch> patches{{kLengthAt, std::move(length)}};
    if (version_ >= kFirstVersionWithMarkers && !markers_.empty()) {
        Bytes markers;
        put_markers(markers_, markers);
        patches.push_back({kNumMarkersAt, std::move(markers)});
    }
    return patches;
}

} // namespace tw::demo
