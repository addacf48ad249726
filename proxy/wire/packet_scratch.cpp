#include "proxy/wire/packet_scratch.h"

#include "proxy/wire/huffman.h"
#include "proxy/wire/packet.h"

#include <algorithm>

namespace tw::wire {

namespace {

/// The same bytes at the same place, to be decompressed to as many.
bool is_same(const CompressedPayload& left, const CompressedPayload& right) {
    return left.bytes.data() == right.bytes.data() && left.bytes.size() == right.bytes.size() &&
           left.most == right.most;
}

bool is_within(std::span<const std::byte> part, std::span<const std::byte> whole) {
    return part.data() >= whole.data() && part.data() + part.size() == whole.data() + whole.size();
}

} // namespace

void PacketScratch::begin(std::span<const std::byte> datagram, std::span<const std::byte> next) {
    // Somebody else's bytes may stand now where those stood that were not asked for.
    if (ahead_ && !is_within(ahead_->payload.bytes, datagram)) {
        ahead_.reset();
    }
    next_ = next;
}

Result<std::span<const std::byte>> PacketScratch::decompress(const CompressedPayload& payload) {
    if (ahead_ && is_same(ahead_->payload, payload)) {
        current_ = 1 - current_;
        const Result<std::size_t> size = ahead_->size;
        ahead_.reset();
        return shown(size);
    }
    Room& room = rooms_[current_];
    const HuffmanPayload asked{payload.bytes,
                               std::span{room}.first(std::min(payload.most, room.size()))};
    const CompressedPayload next = ahead_ ? CompressedPayload{} : compressed_payload(next_);
    if (next.bytes.empty()) {
        return shown(huffman_decompress(asked.in, asked.out));
    }
    Room& other = rooms_[1 - current_];
    const auto sizes = huffman_decompress(asked, {next.bytes, std::span{other}.first(next.most)});
    ahead_ = Ahead{next, sizes[1]};
    return shown(sizes[0]);
}

Result<std::span<const std::byte>> PacketScratch::shown(const Result<std::size_t>& size) const {
    if (!size) {
        return tl::unexpected{size.error()};
    }
    return std::span{rooms_[current_]}.first(*size);
}

} // namespace tw::wire
