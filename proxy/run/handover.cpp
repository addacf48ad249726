#include "proxy/run/handover.h"

#include "proxy/relay/archive.h"
#include "proxy/relay/upstream.h"

#include <sys/stat.h>

namespace tw::run {

namespace {

using relay::ArchiveReader;
using relay::ArchiveWriter;
using relay::HandoverError;

void archive_offer(auto& archive, auto& offer) {
    archive.number(offer.network);
    archive.list(offer.listen, relay::kMaxListeners,
                 [](auto& inner, auto& endpoint) { relay::archive_endpoint(inner, endpoint); });
    archive.number(offer.listening_sockets);
    relay::archive_endpoint(archive, offer.server);
    archive.bytes(offer.server_name, TakeoverOffer::kMaxName);
    archive.list(offer.former, relay::UpstreamFactory::kMaxFormer,
                 [](auto& inner, auto& endpoint) { relay::archive_endpoint(inner, endpoint); });
    archive.choice(offer.mode, relay::ClientAddress::transparent);
    archive.number(offer.observer);
}

void archive_rest(auto& archive, auto& rest) {
    archive.number(rest.held_at);
    archive.number(rest.sessions);
    archive.number(rest.numbered_sessions);
    archive.bytes(rest.relay, TakeoverLink::kMaxBytes);
}

void archive_left(auto& archive, auto& left) {
    archive.number(left.numbered_sessions);
}

template <typename State>
State finished(const ArchiveReader& reader, State state, const char* what) {
    if (!reader.done()) {
        throw HandoverError{std::string{"what the running twscope said of "} + what +
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
    std::vector<std::byte> out;
    ArchiveWriter writer{out};
    archive_offer(writer, offer);
    return out;
}

std::vector<std::byte> written(const TakeoverRest& rest) {
    std::vector<std::byte> out;
    ArchiveWriter writer{out};
    archive_rest(writer, rest);
    return out;
}

std::vector<std::byte> written(const TakeoverLeft& left) {
    std::vector<std::byte> out;
    ArchiveWriter writer{out};
    archive_left(writer, left);
    return out;
}

TakeoverGreeting read_greeting(std::span<const std::byte> in) {
    ArchiveReader reader{in};
    std::string name;
    TakeoverGreeting greeting;
    reader.bytes(name, TakeoverGreeting::kName.size());
    reader.number(greeting.version);
    if (reader.failed() || name != TakeoverGreeting::kName) { // more may follow in other versions
        throw HandoverError{"that was no greeting of a twscope"};
    }
    return greeting;
}

TakeoverOffer read_offer(std::span<const std::byte> in) {
    ArchiveReader reader{in};
    TakeoverOffer offer;
    archive_offer(reader, offer);
    if (offer.listen.empty() || offer.listening_sockets == 0 ||
        offer.listening_sockets > relay::kMaxListeningSockets) {
        throw HandoverError{"the running twscope says that it listens nowhere"};
    }
    return finished(reader, std::move(offer), "itself");
}

TakeoverRest read_rest(std::span<const std::byte> in) {
    ArchiveReader reader{in};
    TakeoverRest rest;
    archive_rest(reader, rest);
    return finished(reader, std::move(rest), "its totals");
}

TakeoverLeft read_left(std::span<const std::byte> in) {
    ArchiveReader reader{in};
    TakeoverLeft left;
    archive_left(reader, left);
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
