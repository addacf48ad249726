#include "proxy/capture/section_order.h"

#include "proxy/sink/pcapng.h"

#include <algorithm>
#include <cstring>

namespace tw::capture {

namespace {

constexpr std::uint32_t kInterfaceBlock = 1;
constexpr std::uint32_t kSimplePacketBlock = 3;
constexpr std::uint32_t kPacketBlock = 6;
constexpr std::size_t kHead = 8;         ///< type and size
constexpr std::size_t kSectionHead = 12; ///< and the mark that shows the byte order
constexpr std::size_t kSmallest = 12;    ///< a block without a body

std::uint32_t in_other_order(std::uint32_t value) {
    return value << 24U | (value & 0xff00U) << 8U | (value >> 8U & 0xff00U) | value >> 24U;
}

std::uint32_t number_at(std::span<const std::byte> bytes, std::size_t at, bool is_swapped) {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return is_swapped ? in_other_order(value) : value;
}

/// Turns a block field by field; those that are not there are left out.
class Turner {
  public:
    explicit Turner(std::span<std::byte> block) : block_{block} {}

    void turn(std::size_t at, std::size_t size) {
        if (at + size <= block_.size()) {
            std::ranges::reverse(block_.subspan(at, size));
        }
    }

    void turn_numbers(std::size_t from, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            turn(from + 4 * i, 4);
        }
    }

    /// Codes and sizes of options, and the one value that is read of them and has several bytes.
    /// `is_swapped`: the order in which they stand there.
    void turn_options(std::size_t at, bool is_swapped) {
        constexpr unsigned kTimeOffset = 14; // if_tsoffset
        while (at + 4 <= block_.size()) {
            const std::uint32_t both = number_at(block_, at, false);
            std::uint16_t code = 0;
            std::uint16_t size = 0;
            std::memcpy(&code, block_.data() + at, sizeof code);
            std::memcpy(&size, block_.data() + at + sizeof code, sizeof size);
            if (is_swapped) {
                code = static_cast<std::uint16_t>(code << 8U | code >> 8U);
                size = static_cast<std::uint16_t>(size << 8U | size >> 8U);
            }
            turn(at, 2);
            turn(at + 2, 2);
            if (both == 0) {
                return;
            }
            if (code == kTimeOffset) {
                turn(at + 4, size);
            }
            at += 4 + (std::size_t{size} + 3) / 4 * 4;
        }
    }

  private:
    std::span<std::byte> block_;
};

/// `is_swapped`: the order in which it stands there.
void turn_block(std::span<std::byte> block, std::uint32_t type, bool is_swapped) {
    Turner turner{block.first(block.size() - 4)};
    turner.turn_numbers(0, 2);
    switch (type) {
    case sink::kPcapngSection: // version and length
        turner.turn(8, 4);
        turner.turn(12, 2);
        turner.turn(14, 2);
        turner.turn(16, 8);
        break;
    case kInterfaceBlock: // link type, snap length
        turner.turn(8, 2);
        turner.turn(12, 4);
        turner.turn_options(16, is_swapped);
        break;
    case kPacketBlock: // interface, time, sizes
        turner.turn_numbers(8, 5);
        break;
    case kSimplePacketBlock:
        turner.turn_numbers(8, 1);
        break;
    default: // nobody looks into it
        break;
    }
    std::ranges::reverse(block.last(4));
}

} // namespace

std::optional<SectionOrder::Head> SectionOrder::head_of(std::span<const std::byte> bytes) {
    if (bytes.size() < kHead) {
        return std::nullopt;
    }
    const bool section = number_at(bytes, 0, false) == sink::kPcapngSection;
    if (section && bytes.size() < kSectionHead) {
        return std::nullopt;
    }
    if (section) {
        const bool its_order = number_at(bytes, kHead, false) != sink::kPcapngByteOrder;
        swapped_ = begun_ ? swapped_ : its_order;
        begun_ = true;
        foreign_ = its_order != swapped_;
    }
    const bool its_order = swapped_ != foreign_;
    const Head head{.type = number_at(bytes, 0, its_order),
                    .size = number_at(bytes, sizeof head.type, its_order)};
    is_pcapng_ = begun_ && head.size >= kSmallest && head.size % 4 == 0 && head.size <= kMaxBlock;
    return is_pcapng_ ? std::optional{head} : std::nullopt;
}

std::size_t SectionOrder::passing(std::span<const std::byte> bytes) {
    std::size_t at = 0;
    while (at < bytes.size()) {
        const std::size_t here = std::min<std::uint64_t>(left_, bytes.size() - at);
        at += here;
        left_ -= here;
        if (at == bytes.size()) {
            break;
        }
        const auto head = head_of(bytes.subspan(at));
        if (!head || foreign_) {
            break;
        }
        left_ = head->size;
    }
    return is_pcapng_ ? at : bytes.size();
}

void SectionOrder::make_ready() {
    std::size_t at = 0;
    while (at < held_.size()) {
        const std::size_t passes = passing(std::span{held_}.subspan(at));
        ready_.insert(ready_.end(), held_.begin() + static_cast<std::ptrdiff_t>(at),
                      held_.begin() + static_cast<std::ptrdiff_t>(at + passes));
        at += passes;
        const std::span<std::byte> rest = std::span{held_}.subspan(at);
        const auto head = is_pcapng_ ? head_of(rest) : std::nullopt;
        if (!head || !foreign_ || head->size > rest.size()) {
            break;
        }
        turn_block(rest.first(head->size), head->type, swapped_ != foreign_);
        ready_.insert(ready_.end(), rest.begin(),
                      rest.begin() + static_cast<std::ptrdiff_t>(head->size));
        at += head->size;
    }
    held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(at));
}

std::size_t SectionOrder::read(std::span<std::byte> room, const Read& source) {
    while (true) {
        if (handed_ < ready_.size()) {
            const std::size_t size = std::min(room.size(), ready_.size() - handed_);
            std::copy_n(ready_.begin() + static_cast<std::ptrdiff_t>(handed_), size, room.begin());
            handed_ += size;
            return size;
        }
        ready_.clear();
        handed_ = 0;
        make_ready();
        if (!ready_.empty()) {
            continue;
        }
        const std::size_t size = source(room);
        if (size == 0 && !held_.empty()) { // cut short: as it stands there
            ready_.swap(held_);
            is_pcapng_ = false;
            continue;
        }
        if (size == 0 || !is_pcapng_) {
            return size;
        }
        const auto bytes = room.first(size);
        const std::size_t passes = held_.empty() ? passing(bytes) : 0;
        held_.insert(held_.end(), bytes.begin() + static_cast<std::ptrdiff_t>(passes), bytes.end());
        if (passes != 0) {
            return passes;
        }
    }
}

} // namespace tw::capture
