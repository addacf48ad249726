#include "proxy/capture/time_order.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace tw::capture {

namespace {

std::size_t hash_of(const CaptureEndpoint& end) {
    constexpr std::size_t kMix = 0x9e3779b97f4a7c15;
    return (std::hash<boost::asio::ip::address>{}(end.address) * kMix + end.port) * kMix;
}

std::size_t size_of(const TimeOrder::Item& item) {
    return sizeof item + item.payload.size() + (item.state ? item.state->bytes.size() : 0);
}

} // namespace

void TimeOrder::put(const CapturedDatagram& datagram, std::size_t file) {
    auto item = std::make_unique<Item>(
        Item{.datagram = datagram,
             .payload = {datagram.payload.begin(), datagram.payload.end()},
             .state = datagram.state == nullptr ? std::nullopt : std::optional{*datagram.state},
             .file = file});
    item->datagram.payload = item->payload;
    item->datagram.state = item->state ? &*item->state : nullptr;
    bytes_ += size_of(*item);

    std::int64_t time = datagram.time;
    const std::size_t ends = hash_of(datagram.source) + hash_of(datagram.destination);
    if (!waiting_.empty() && time < waiting_.back().time - kWindow) {
        settled_ = waiting_.size();
    }
    std::size_t place = waiting_.size();
    while (place > settled_ && waiting_[place - 1].time > time) {
        if (waiting_[place - 1].ends == ends) {
            time = waiting_[place - 1].time;
            break;
        }
        --place;
    }
    if (place < waiting_.size() && time == datagram.time && !several_) {
        const auto before = waiting_.begin() + static_cast<std::ptrdiff_t>(place);
        several_ = std::any_of(waiting_.begin() + static_cast<std::ptrdiff_t>(settled_), before,
                               [ends](const Waiting& each) { return each.ends == ends; });
        if (!several_) {
            place = waiting_.size();
            time = waiting_.back().time;
        }
    }
    waiting_.insert(waiting_.begin() + static_cast<std::ptrdiff_t>(place),
                    {.time = time, .ends = ends, .item = std::move(item)});
}

const TimeOrder::Item* TimeOrder::take(bool all) {
    taken_.reset();
    const bool due = !waiting_.empty() && (all || settled_ != 0 ||
                                           waiting_.size() > kMaxDatagrams || bytes_ > kMaxBytes ||
                                           waiting_.front().time <= waiting_.back().time - kWindow);
    if (!due) {
        return nullptr;
    }
    taken_ = std::move(waiting_.front().item);
    waiting_.pop_front();
    settled_ -= settled_ == 0 ? 0 : 1;
    bytes_ -= size_of(*taken_);
    // Unless one comes that stands before it; then it was looked at for nothing.
    taken_->datagram.next = waiting_.empty()
                                ? std::span<const std::byte>{}
                                : std::span<const std::byte>{waiting_.front().item->payload};
    return taken_.get();
}

} // namespace tw::capture
