#include "proxy/run/handover_taker.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <system_error>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace tw::run {

namespace {

using relay::HandoverError;
using std::chrono::milliseconds;

/// The old one answers at once; it may only be that its machine is busy.
constexpr milliseconds kPatience{5000};

TakeoverLink ask(const std::filesystem::path& file) {
    auto link = TakeoverDoor::ask(file);
    if (!link) {
        throw NobodyThere{fmt::format("there is no running twscope to take over from ({}: {})",
                                      file.string(), std::system_category().message(errno))};
    }
    if (!link->is_trusted()) {
        throw HandoverError{fmt::format("{} belongs to another user's process", file.string())};
    }
    return std::move(*link);
}

} // namespace

HandoverTaker::HandoverTaker(std::filesystem::path file)
    : file_{std::move(file)}, link_{ask(file_)} {
    std::ignore = link_.send(TakeoverWord::hello, written(TakeoverGreeting{}), {},
                             relay::Clock::now() + kPatience);
    auto offered = receive(TakeoverWord::offer, kPatience);
    offer_ = read_offer(offered.body);
    if (offered.descriptors.size() == 1) {
        door_ = std::move(offered.descriptors.front());
    }
    while (listening_.size() < offer_.listening_sockets) {
        auto message = receive(TakeoverWord::listening, kPatience);
        if (message.descriptors.empty()) {
            throw HandoverError{"listening sockets were announced and did not come"};
        }
        std::ranges::move(message.descriptors, std::back_inserter(listening_));
    }
    if (offer_.network != own_network()) {
        throw HandoverError{"the running twscope is in another network namespace, whose addresses "
                            "are not this one's"};
    }
}

TakeoverLink::Message HandoverTaker::receive_any(milliseconds patience) {
    auto message = link_.receive(relay::Clock::now() + patience);
    if (!message) {
        throw HandoverError{link_.closed()
                                ? "the running twscope has ended the takeover (its log says why)"
                                : "the running twscope says nothing"};
    }
    if (message->word == TakeoverWord::busy) {
        throw NobodyThere{"another twscope is about to take over from the running one"};
    }
    if (message->word == TakeoverWord::refusal) {
        const std::string why{reinterpret_cast<const char*>(message->body.data()),
                              message->body.size()};
        throw HandoverError{why};
    }
    return std::move(*message);
}

TakeoverLink::Message HandoverTaker::receive(TakeoverWord wanted, milliseconds patience) {
    auto message = receive_any(patience);
    if (message.word != wanted) {
        throw HandoverError{"the running twscope said what was not to be said"};
    }
    return message;
}

std::vector<boost::asio::ip::udp::endpoint>
HandoverTaker::addresses(const std::vector<boost::asio::ip::udp::endpoint>& listen) const {
    std::vector<boost::asio::ip::udp::endpoint> addresses;
    for (const relay::Endpoint& endpoint : offer_.listen) {
        addresses.push_back(relay::to_asio(endpoint));
    }
    const bool same = std::ranges::equal(listen, addresses, [](const auto& own, const auto& other) {
        return own.address() == other.address() && (own.port() == 0 || own.port() == other.port());
    });
    if (!same) {
        throw HandoverError{
            fmt::format("the running twscope listens on other addresses ({} first); "
                        "restart it to change them",
                        relay::to_string(offer_.listen.front()))};
    }
    return addresses;
}

TakeoverRest HandoverTaker::take(relay::Relay& relay, const std::string& server_name) {
    // A name may lead elsewhere since the running one looked it up.
    const bool same_server = relay.server_endpoint() == offer_.server ||
                             (!server_name.empty() && server_name == offer_.server_name);
    if (!same_server || relay.client_address() != offer_.mode) {
        throw HandoverError{fmt::format("the running twscope forwards to {}, or shows it other "
                                        "client addresses; restart it to change that",
                                        relay::to_string(offer_.server))};
    }
    if (!link_.send(TakeoverWord::ready, relay::Clock::now() + kPatience)) {
        throw HandoverError{"the running twscope has ended the takeover (its log says why)"};
    }
    auto servers = offer_.former;
    servers.push_back(offer_.server);
    relay.set_former_servers(std::move(servers));
    std::uint32_t sessions = 0;
    auto message = receive_any(kPatience);
    for (; message.word == TakeoverWord::sessions; message = receive_any(kPatience)) {
        const auto states = read_sessions(message);
        for (std::size_t i = 0; i < states.size(); ++i, ++sessions) {
            relay.take_over(states[i], std::move(message.descriptors[i]));
        }
    }
    TakeoverRest rest = read_rest(message.body);
    if (message.word != TakeoverWord::rest || rest.sessions != sessions) {
        throw HandoverError{"sessions were announced and did not come"};
    }
    relay.take_over(relay::read_relay(rest.relay));
    if (!link_.send(TakeoverWord::taken, relay::Clock::now() + kPatience)) {
        throw HandoverError{"the running twscope has ended the takeover (its log says why)"};
    }
    std::ignore = receive(TakeoverWord::go, kPatience);
    return rest;
}

void HandoverTaker::say_going() const {
    std::ignore = link_.send(TakeoverWord::going, relay::Clock::now() + kPatience);
}

std::optional<TakeoverDoor> HandoverTaker::take_door() {
    return TakeoverDoor::take_over(file_, std::move(door_));
}

std::optional<HandoverTaker::Left> HandoverTaker::left() {
    auto message = link_.receive(relay::Clock::now());
    if (!message || message->word != TakeoverWord::left) {
        return std::nullopt;
    }
    try {
        Left left{.said = read_left(message->body)};
        if (message->descriptors.size() == 1) {
            left.legacy = std::move(message->descriptors.front());
        }
        return left;
    } catch (const HandoverError&) {
        return std::nullopt;
    }
}

} // namespace tw::run
