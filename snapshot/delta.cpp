#include "snapshot/delta.h"

#include "snapshot/cursor.h"

#include <algorithm>
#include <cassert>

namespace tw::snapshot {

namespace {

tl::unexpected<DecodeError> error(DecodeErrc code, std::size_t offset,
                                  std::optional<ItemKey> key = {}, int ddnet_code = 0) {
    return tl::unexpected{
        DecodeError{.code = code, .offset = offset, .key = key, .ddnet_code = ddnet_code}};
}

Result<void> decode_ints(std::span<const std::byte> body, RawVector<std::int32_t>& ints) {
    // decode_varints needs kVarintsSlack more ints than bytes to be fast.
    ints.resize(std::min(body.size(), kMaxDeltaInts) + kVarintsSlack);
    const DecodedVarints decoded = decode_varints(body, ints);
    ints.resize(std::min(decoded.count, kMaxDeltaInts)); // drops the ints after the decoded ones
    if (decoded.count > kMaxDeltaInts) {
        return error(DecodeErrc::too_many_ints, kMaxDeltaInts);
    }
    if (decoded.bytes < body.size()) {
        return error(DecodeErrc::truncated, body.size());
    }
    return {};
}

// Appends an update for `item` to `out`. `base`: the ints of the same item in the base snapshot;
// empty for a new item. The update contains the differences to these ints.
void encode_update(ItemView item, std::span<const std::int32_t> base, const AgreedSizes& sizes,
                   std::vector<std::byte>& out) {
    encode_varint(item.key.type, out);
    encode_varint(item.key.id, out);
    const std::size_t agreed = agreed_size(item.key.type, sizes);
    assert(agreed == 0 || agreed == item.data.size());
    if (agreed == 0) {
        encode_varint(static_cast<std::int32_t>(item.data.size()), out);
    }
    for (std::size_t i = 0; i < item.data.size(); ++i) {
        const auto value = static_cast<std::uint32_t>(item.data[i]);
        const auto old = base.empty() ? 0U : static_cast<std::uint32_t>(base[i]);
        encode_varint(static_cast<std::int32_t>(value - old), out);
    }
}

// The implementation of decode_update. It is inline, because calls would make decode_delta 1.5
// times as slow.
inline Result<DeltaUpdate> read_update(std::span<const std::int32_t> ints, std::size_t& at,
                                       const AgreedSizes& sizes) {
    const std::size_t left = ints.size() - at;
    if (left < 2) {
        return error(DecodeErrc::update_truncated, ints.size());
    }
    const std::int32_t type = ints[at];
    if (type < 0 || type > kMaxItemType) {
        return error(DecodeErrc::type_out_of_range, at);
    }
    const std::int32_t id = ints[at + 1];
    if (id < 0 || id > kMaxItemId) {
        return error(DecodeErrc::id_out_of_range, at + 1);
    }
    const ItemKey key{static_cast<std::uint16_t>(type), static_cast<std::uint16_t>(id)};
    at += 2;
    std::size_t size = agreed_size(key.type, sizes);
    if (size == 0) {
        if (left < 3) {
            return error(DecodeErrc::update_truncated, ints.size(), key, -103);
        }
        if (ints[at] < 0) {
            return error(DecodeErrc::size_out_of_range, at, key, -204);
        }
        size = static_cast<std::size_t>(ints[at]);
        ++at;
    }
    if (size > ints.size() - at) {
        return error(DecodeErrc::size_out_of_range, at - 1, key);
    }
    const DeltaUpdate update{.key = key,
                             .begin = static_cast<std::uint32_t>(at),
                             .size = static_cast<std::uint32_t>(size)};
    at += size;
    return update;
}

} // namespace

Result<DeltaUpdate> decode_update(std::span<const std::int32_t> ints, std::size_t& at,
                                  const AgreedSizes& sizes) {
    return read_update(ints, at, sizes);
}

Result<void> decode_delta(std::span<const std::byte> body, Delta& out, const AgreedSizes& sizes) {
    out.deleted = {};
    out.updates.clear();
    out.surplus_ints = 0;
    if (auto decoded = decode_ints(body, out.ints); !decoded) {
        return decoded;
    }
    const std::span<const std::int32_t> ints{out.ints};
    if (ints.empty()) {
        return {};
    }
    if (ints[0] < 0) {
        return error(DecodeErrc::negative_count, 0);
    }
    const auto num_deleted = static_cast<std::size_t>(ints[0]);
    if (ints.size() < kDeltaHeaderInts || num_deleted > ints.size() - kDeltaHeaderInts) {
        return error(DecodeErrc::deleted_out_of_range, 0);
    }
    out.deleted = ints.subspan(kDeltaHeaderInts, num_deleted);
    std::size_t at = kDeltaHeaderInts + num_deleted;
    for (std::int32_t left = ints[1]; left > 0; --left) {
        const auto update = read_update(ints, at, sizes);
        if (!update) {
            return tl::unexpected{update.error()};
        }
        out.updates.push_back(*update);
    }
    out.surplus_ints = ints.size() - at;
    return {};
}

std::vector<std::byte> encode_delta(const SnapshotView& from, const SnapshotView& to,
                                    const AgreedSizes& sizes) {
    std::vector<std::byte> deleted;
    std::vector<std::byte> updated;
    std::int32_t num_deleted = 0;
    std::int32_t num_updated = 0;
    std::size_t old = 0;
    const auto delete_before = [&](std::uint64_t key) {
        for (; old < from.size() && from.keys()[old] < key; ++old) {
            encode_varint(static_cast<std::int32_t>(from.keys()[old]), deleted);
            ++num_deleted;
        }
    };
    for (std::size_t i = 0; i < to.size(); ++i) {
        const ItemView item = to[i];
        delete_before(item.key.packed());
        std::span<const std::int32_t> base;
        if (old < from.size() && from.keys()[old] == item.key.packed()) {
            base = from[old].data;
            ++old;
            assert(base.size() == item.data.size());
            if (std::equal(base.begin(), base.end(), item.data.begin(), item.data.end())) {
                continue;
            }
        }
        encode_update(item, base, sizes, updated);
        ++num_updated;
    }
    delete_before(std::uint64_t{1} << 32U);

    std::vector<std::byte> body;
    encode_varint(num_deleted, body);
    encode_varint(num_updated, body);
    encode_varint(0, body);
    body.insert(body.end(), deleted.begin(), deleted.end());
    body.insert(body.end(), updated.begin(), updated.end());
    return body;
}

std::size_t IntOffsets::byte_offset(std::size_t int_index) {
    std::int32_t ignored = 0;
    for (; index_ < int_index && offset_ < body_.size(); ++index_) {
        const auto rest = body_.subspan(offset_);
        const std::size_t used = decode_varint(rest.data(), rest.size(), ignored);
        offset_ = used == 0 ? body_.size() : offset_ + used;
    }
    return offset_;
}

} // namespace tw::snapshot
