#include "proxy/relay/ring.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <chrono>
#include <ctime>
#include <tuple>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tw::relay {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

void ThreadWaker::wake_by_futex() noexcept {
    // The waking thread clears is_sleeping_ itself. So a sleeping process that was killed costs
    // only one system call.
    if (is_sleeping_.exchange(0, std::memory_order_seq_cst) != 0) {
        std::ignore = ::syscall(SYS_futex, &is_sleeping_, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    }
}

void ThreadWaker::sleep_on_futex(base::Clock::time_point time) noexcept {
    const auto left = std::max(time - base::Clock::now(), base::Clock::duration::zero());
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec timeout{
        .tv_sec = static_cast<time_t>(seconds.count()),
        .tv_nsec = std::chrono::duration_cast<std::chrono::nanoseconds>(left - seconds).count()};
    std::ignore = ::syscall(SYS_futex, &is_sleeping_, FUTEX_WAIT, 1, &timeout, nullptr, 0);
}

Ring::Ring(std::span<std::byte> shared)
    : capacity_{shared.size() - kPositionsBytes},
      positions_{reinterpret_cast<Positions*>(shared.data())}, bytes_{shared.data() +
                                                                      kPositionsBytes} {
    assert(std::has_single_bit(capacity_));
}

std::size_t Ring::shared_memory_size(std::size_t bytes) noexcept {
    return kPositionsBytes + std::bit_ceil(std::max(bytes, kMinBytes));
}

std::byte* Ring::reserve_record(std::size_t size) noexcept {
    const std::size_t offset = producer_.tail & (capacity_ - 1);
    const std::size_t to_end = capacity_ - offset;
    const std::size_t padding = size > to_end ? to_end : 0;
    const auto fits = [&] { return producer_.tail + padding + size - producer_.head <= capacity_; };
    if (!fits()) {
        producer_.head = positions_->head.load(std::memory_order_acquire);
        if (!fits()) {
            return nullptr;
        }
    }
    if (padding != 0) {
        Header header{};
        header.size = static_cast<std::uint32_t>(padding);
        header.event.kind = kPadding;
        std::memcpy(bytes_ + offset, &header, sizeof header);
        producer_.tail += padding;
    }
    std::byte* const at = bytes_ + (producer_.tail & (capacity_ - 1));
    producer_.tail += size;
    return at;
}

bool Ring::has_room(std::size_t bytes) noexcept {
    // In the worst case, the event needs a padding record of almost the same size before it.
    const std::size_t size = 2 * (sizeof(Header) + bytes + kAlign);
    if (producer_.tail + size - producer_.head <= capacity_) {
        return true;
    }
    producer_.head = positions_->head.load(std::memory_order_acquire);
    return producer_.tail + size - producer_.head <= capacity_;
}

bool Ring::try_push(const RelayEvent& event) noexcept {
    const SessionAddresses& addresses = event;
    const std::span<const std::byte> payload =
        event.kind == EventKind::open ? std::as_bytes(std::span{&addresses, 1}) : event.bytes;
    assert(payload.size() <= kMinBytes / 4);
    const std::size_t size = (sizeof(Header) + payload.size() + kAlign - 1) / kAlign * kAlign;
    std::byte* const at = reserve_record(size);
    if (at == nullptr) {
        return false;
    }
    const Header header{static_cast<std::uint32_t>(size),
                        static_cast<std::uint32_t>(payload.size()),
                        static_cast<const EventHeader&>(event)};
    std::memcpy(at, &header, sizeof header);
    if (!payload.empty()) {
        std::memcpy(at + sizeof header, payload.data(), payload.size());
    }
    return true;
}

RelayEvent Ring::to_event(const Record& record) noexcept {
    RelayEvent event;
    static_cast<EventHeader&>(event) = record.header.event;
    if (event.kind == EventKind::open) {
        SessionAddresses addresses;
        std::memcpy(&addresses, record.payload, sizeof addresses);
        static_cast<SessionAddresses&>(event) = addresses;
    } else {
        event.bytes = {record.payload, record.header.length};
    }
    return event;
}

} // namespace tw::relay
