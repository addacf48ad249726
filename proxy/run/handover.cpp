#include "proxy/run/handover.h"

#include "proxy/relay/archive.h"
#include "proxy/relay/upstream.h"
#include "proxy/run/shared_block.h"

#include <algorithm>
#include <concepts>
#include <type_traits>

#include <sys/stat.h>

namespace tw::run {

namespace {

using relay::ArchiveReader;
using relay::ArchiveWriter;
using relay::HandoverError;

/// One that is read, or one that is written.
template <typename Message, typename State>
concept Said = std::same_as<std::remove_const_t<Message>, State>;

void archive(auto& archive, Said<TakeoverOffer> auto& offer) {
    archive.number(offer.network);
    archive.number(offer.servers);
    archive.number(offer.observer);
}

void archive(auto& archive, Said<TakeoverServer> auto& server) {
    archive.number(server.number);
    archive.bytes(server.name, ServerFacts::kMaxName);
    archive.list(server.listen, relay::kMaxListeners,
                 [](auto& inner, auto& endpoint) { relay::archive_endpoint(inner, endpoint); });
    archive.number(server.listening_sockets);
    relay::archive_endpoint(archive, server.server);
    archive.bytes(server.host_name, TakeoverServer::kMaxHostName);
    archive.list(server.former, relay::UpstreamFactory::kMaxFormer,
                 [](auto& inner, auto& endpoint) { relay::archive_endpoint(inner, endpoint); });
    archive.choice(server.mode, relay::ClientAddress::transparent);
}

void archive(auto& archive, Said<TakeoverWish> auto& wish) {
    archive.list(wish.servers, relay::kMaxServers,
                 [](auto& inner, auto& server) { inner.number(server); });
}

/// It is shown to people: what stands for itself, and nothing that a terminal obeys.
bool is_printable(const std::string& name) {
    return std::ranges::all_of(name, [](char c) { return c > ' ' && c <= '~'; });
}

void archive(auto& archive, Said<TakeoverRest> auto& rest) {
    archive.number(rest.held_at);
    archive.number(rest.sessions);
    archive.number(rest.numbered_sessions);
    archive.bytes(rest.relay, TakeoverLink::kMaxBytes);
}

void archive(auto& archive, Said<TakeoverLeft> auto& left) {
    archive.number(left.numbered_sessions);
}

std::vector<std::byte> bytes_of(const auto& message) {
    std::vector<std::byte> out;
    ArchiveWriter writer{out};
    archive(writer, message);
    return out;
}

template <typename State>
State finished(const ArchiveReader& reader, State state, const char* what) {
    if (!reader.done()) {
        throw HandoverError{std::string{"the running twscope's message about "} + what +
                            " is damaged"};
    }
    return state;
}

} // namespace

std::vector<std::byte> written(const TakeoverGreeting& greeting) {
    std::vector<std::byte> out;
    ArchiveWriter writer{out};
    writer.bytes(TakeoverGreeting::kName, TakeoverGreeting::kName.size());
    writer.number(greeting.version);
    return out;
}

std::vector<std::byte> written(const TakeoverOffer& offer) {
    return bytes_of(offer);
}

std::vector<std::byte> written(const TakeoverServer& server) {
    return bytes_of(server);
}

std::vector<std::byte> written(const TakeoverWish& wish) {
    return bytes_of(wish);
}

std::vector<std::byte> written(const TakeoverRest& rest) {
    return bytes_of(rest);
}

std::vector<std::byte> written(const TakeoverLeft& left) {
    return bytes_of(left);
}

TakeoverGreeting read_greeting(std::span<const std::byte> in) {
    ArchiveReader reader{in};
    std::string name;
    TakeoverGreeting greeting;
    reader.bytes(name, TakeoverGreeting::kName.size());
    reader.number(greeting.version);
    if (reader.failed() || name != TakeoverGreeting::kName) { // more may follow in other versions
        throw HandoverError{"the greeting is not that of a twscope"};
    }
    return greeting;
}

TakeoverOffer read_offer(std::span<const std::byte> in) {
    ArchiveReader reader{in};
    TakeoverOffer offer;
    archive(reader, offer);
    if (offer.servers == 0 || offer.servers > relay::kMaxServers) {
        throw HandoverError{"the running twscope reports no server"};
    }
    return finished(reader, offer, "itself");
}

TakeoverServer read_server(std::span<const std::byte> in) {
    ArchiveReader reader{in};
    TakeoverServer server;
    archive(reader, server);
    if (!is_printable(server.name)) {
        reader.fail();
    }
    if (server.listen.empty() || server.listening_sockets == 0 ||
        server.listening_sockets > relay::kMaxListeningSockets) {
        throw HandoverError{"the running twscope reports no listening address"};
    }
    return finished(reader, std::move(server), "its servers");
}

TakeoverWish read_wish(std::span<const std::byte> in) {
    ArchiveReader reader{in};
    TakeoverWish wish;
    archive(reader, wish);
    if (!reader.done() || wish.servers.empty()) {
        throw HandoverError{"it named no servers to take over"};
    }
    return wish;
}

TakeoverRest read_rest(std::span<const std::byte> in) {
    ArchiveReader reader{in};
    TakeoverRest rest;
    archive(reader, rest);
    return finished(reader, std::move(rest), "its totals");
}

TakeoverLeft read_left(std::span<const std::byte> in) {
    ArchiveReader reader{in};
    TakeoverLeft left;
    archive(reader, left);
    return finished(reader, left, "its end");
}

bool SessionBatch::add(std::span<const std::byte> session, int socket) {
    constexpr std::size_t kLength = sizeof(std::uint32_t);
    if (sockets_.size() == TakeoverLink::kMaxDescriptors ||
        body_.size() + kLength + session.size() >= TakeoverLink::kMaxBytes) {
        return false;
    }
    ArchiveWriter{body_}.bytes(session, session.size());
    sockets_.push_back(socket);
    return true;
}

void SessionBatch::clear() {
    body_.clear();
    sockets_.clear();
}

std::vector<relay::SessionState> read_sessions(const TakeoverLink::Message& message) {
    ArchiveReader reader{message.body};
    std::vector<relay::SessionState> sessions;
    std::vector<std::byte> session;
    sessions.reserve(message.descriptors.size());
    for (std::size_t i = 0; i < message.descriptors.size(); ++i) {
        reader.bytes(session, message.body.size());
        sessions.push_back(relay::read_session(session));
    }
    return finished(reader, std::move(sessions), "its sessions");
}

std::uint64_t own_network() {
    struct stat found {};

    return ::stat("/proc/self/ns/net", &found) == 0 ? found.st_ino : 0;
}

} // namespace tw::run
