#include "proxy/channel/process_link.h"
#include "proxy/relay/impairment.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/input.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <sys/socket.h>

/// The messages that a faulty observer process sends to the relay. Before each message is a byte with its
/// length divided by sixteen. A message that is not empty must arrive unchanged. An impairment's text must
/// either be parsed and remain the same when written, or give an error of one line.
namespace {

using tw::channel::ProcessLink;
using tw::fuzz::demand;

constexpr std::size_t kScale = 16;

void check_impairment(std::string_view text) {
    const auto read = tw::relay::parse_impairment(text, 7);
    if (!read) {
        demand(!read.error().empty());
        return;
    }
    for (const tw::relay::DirectionImpairment& line : read->directions) {
        demand(line.delay_us <= tw::relay::kMaxImpairDelayUs);
        demand(line.loss_ppm <= tw::relay::DirectionImpairment::kCertainPpm);
        demand(line.bits_per_second == 0 ||
               (line.bits_per_second >= tw::relay::kMinImpairBitsPerSecond &&
                line.bits_per_second <= tw::relay::kMaxImpairBitsPerSecond));
    }
    demand(tw::relay::parse_impairment(tw::relay::to_string(*read), 7) == *read);
}

/// Sends one message over the link. Returns false if the receiver then takes the other end for closed.
bool send_and_receive(const ProcessLink& from, ProcessLink& to, std::span<const std::byte> said) {
    if (::send(from.descriptor(), said.data(), said.size(), MSG_NOSIGNAL) < 0) {
        return true; // longer than the link's limit
    }
    const auto heard = to.receive();
    demand(heard.has_value() != said.empty());
    demand(to.is_closed() == said.empty()); // an empty message means the end
    if (!heard) {
        return false;
    }
    demand(static_cast<std::byte>(heard->kind) == said[0]);
    const auto text = said.subspan(1, std::min(said.size() - 1, ProcessLink::kMaxTextBytes));
    demand(std::equal(heard->text.begin(), heard->text.end(), text.begin(), text.end(),
                      [](char a, std::byte b) { return static_cast<std::byte>(a) == b; }));
    check_impairment(heard->text);
    return true;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    auto [observer, relay] = ProcessLink::create_pair();
    tw::fuzz::Input in{data, size};
    for (bool open = true; open && !in.empty();) {
        const auto length = in.take<std::uint8_t>() * kScale;
        open = send_and_receive(observer, relay, in.take_bytes(length));
    }
    return 0;
}
