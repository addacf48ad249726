#include "proxy/capture/state_blocks.h"

#include "proxy/sink/capture_blocks.h"
#include "proxy/sink/pcapng.h"
#include "proxy/sink/session_state.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tw::capture {

namespace {

constexpr std::uint32_t kInterface = 1;
constexpr std::size_t kPage = 4096;                           ///< more than stands around a state
constexpr std::uint32_t kMaxBlock = std::uint32_t{16} << 20U; ///< libpcap's

std::uint32_t swapped(std::uint32_t value) {
    return value << 24U | (value & 0xff00U) << 8U | (value >> 8U & 0xff00U) | value >> 24U;
}

/// What libpcap hands on as a packet: of old, simple, and usual blocks.
bool is_packet(std::uint32_t type) {
    return type == 2 || type == 3 || type == 6;
}

CaptureEndpoint endpoint_of(const sink::FrameEndpoint& frame) {
    using boost::asio::ip::address_v4;
    using boost::asio::ip::address_v6;
    CaptureEndpoint endpoint{.address = {}, .port = frame.port};
    if (frame.is_v6) {
        endpoint.address = address_v6{frame.address};
    } else {
        address_v4::bytes_type four{};
        std::copy_n(frame.address.begin(), four.size(), four.begin());
        endpoint.address = address_v4{four};
    }
    return endpoint;
}

} // namespace

std::uint32_t StateBlocks::number_at(std::size_t at) const {
    std::uint32_t value = 0;
    std::memcpy(&value, head_.data() + at, sizeof value);
    return swapped_ ? swapped(value) : value;
}

void StateBlocks::on_bytes(std::span<const std::byte> bytes) {
    while (!bytes.empty() && !lost_) {
        if (left_ != 0) {
            const auto here = bytes.first(std::min<std::uint64_t>(left_, bytes.size()));
            if (keeps_) {
                body_.insert(body_.end(), here.begin(), here.end());
            }
            left_ -= here.size();
            bytes = bytes.subspan(here.size());
            if (left_ == 0) {
                end_block();
            }
            continue;
        }
        const bool section = head_size_ >= kHead && number_at(0) == sink::kPcapngSection;
        const std::size_t wanted = (section ? kSectionHead : kHead) - head_size_;
        const auto here = bytes.first(std::min(wanted, bytes.size()));
        std::ranges::copy(here, head_.begin() + static_cast<std::ptrdiff_t>(head_size_));
        head_size_ += here.size();
        bytes = bytes.subspan(here.size());
        if (here.size() == wanted && (section || number_at(0) != sink::kPcapngSection)) {
            begin_block();
        }
    }
}

void StateBlocks::begin_block() {
    const std::uint32_t type = number_at(0);
    if (type == sink::kPcapngSection) {
        begun_ = true;
        swapped_ = false;
        swapped_ = number_at(kHead) != sink::kPcapngByteOrder;
    }
    const std::uint32_t size = number_at(sizeof type);
    constexpr std::uint32_t kLengthBehind = 4;
    if (!begun_ || size < kSectionHead || size % 4 != 0 || size > kMaxBlock ||
        size < head_size_ + kLengthBehind) {
        lost_ = true;
        return;
    }
    left_ = size - head_size_;
    interface_ = type == kInterface && !interface_seen_;
    interface_seen_ = interface_seen_ || interface_;
    keeps_ = (interface_ && size <= kPage) ||
             (type == sink::kStateBlock && size <= sink::kMaxStateBytes + kPage);
    packets_ += is_packet(type) ? 1U : 0U;
    head_size_ = 0;
}

void StateBlocks::end_block() {
    if (!std::exchange(keeps_, false)) {
        return;
    }
    const std::vector<std::byte> body = std::exchange(body_, {});
    if (interface_) {
        look_at_interface(body);
        return;
    }
    const auto state = sink::read_session_state(std::span{body}.first(body.size() - 4));
    if (!state) {
        return;
    }
    if (found_.empty() || found_.back().packet != packets_) {
        found_.emplace_back().packet = packets_;
    }
    found_.back().state = {.client = endpoint_of(state->client),
                           .server = endpoint_of(state->server),
                           .bytes = {state->bytes.begin(), state->bytes.end()}};
}

/// Its description stands somewhere among its options.
void StateBlocks::look_at_interface(std::span<const std::byte> body) {
    const auto described = std::as_bytes(std::span{sink::kClientsDescription});
    by_twscope_ =
        std::search(body.begin(), body.end(), described.begin(), described.end()) != body.end();
}

const CapturedState* StateBlocks::before(std::uint64_t packet) {
    due_.reset();
    while (!found_.empty() && found_.front().packet <= packet) {
        if (found_.front().packet == packet) {
            due_ = std::move(found_.front().state);
        }
        found_.pop_front();
    }
    return due_ ? &*due_ : nullptr;
}

} // namespace tw::capture
