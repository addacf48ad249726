#include "proxy/capture/capture_sessions.h"

#include "proxy/inspect/connection/session_checkpoint.h"
#include "proxy/record/records.h"
#include "proxy/wire/connless.h"
#include "proxy/wire/packet.h"

#include <algorithm>

namespace tw::capture {

namespace {

/// The most servers that are remembered. A capture may contain any number of hosts.
constexpr std::size_t kMaxServers = 4096;
constexpr std::int64_t kSecond = record::kNanosecondsPerSecond;
/// A connection counts as unanswered if no answer arrives within this time. Clients repeat their
/// requests every half second.
constexpr std::int64_t kConnectionAnswerTimeout = kSecond;

constexpr bool is_game_port(std::uint16_t port) {
    return port >= 8303 && port <= 8310;
}

/// Determines which side sent these chunks, by the first message that only one side sends. If
/// `sure` is true, requires that all chunks are complete messages of this side, because other
/// traffic could look similar.
std::optional<wire::Direction> direction_of_chunks(const wire::Packet& packet, bool sure) {
    std::optional<wire::Direction> direction;
    wire::ChunkReader reader{packet.payload, packet.num_chunks, packet.dialect};
    while (const auto chunk = reader.next()) {
        const auto head = wire::decode_message_header(chunk->payload, packet.dialect);
        const bool known = head && head->spec != nullptr;
        if (!known && sure) {
            return std::nullopt;
        }
        const wire::MessageDirection who =
            known ? head->spec->direction : wire::MessageDirection::none;
        if (who != wire::MessageDirection::c2s && who != wire::MessageDirection::s2c) {
            continue;
        }
        const auto said =
            who == wire::MessageDirection::c2s ? wire::Direction::c2s : wire::Direction::s2c;
        if (!sure) {
            return said;
        }
        if (direction && *direction != said) {
            return std::nullopt;
        }
        direction = said;
    }
    const std::size_t behind = reader.rest().size();
    const bool ends_well = !reader.error() && (behind == 0 || behind == wire::kTokenSize);
    return !sure || ends_well ? direction : std::nullopt;
}

std::optional<wire::Direction> direction_of_control(const wire::Packet& packet, bool sure) {
    const bool seven = packet.dialect == wire::Dialect::seven;
    if (sure && (packet.ack != 0 || packet.num_chunks != 0)) {
        return std::nullopt; // not a handshake, because the packet acknowledges chunks
    }
    switch (wire::decode_control(packet, std::nullopt).kind) {
    case wire::ControlKind::connect:
        return wire::Direction::c2s;
    case wire::ControlKind::accept:
        return seven ? wire::Direction::s2c : wire::Direction::c2s;
    case wire::ControlKind::token: // a client's request cannot contain the server's token yet
        return packet.header_token == wire::kTokenUnknown ? wire::Direction::c2s
                                                          : wire::Direction::s2c;
    case wire::ControlKind::connectaccept:
        return wire::Direction::s2c;
    default:
        return std::nullopt;
    }
}

std::optional<wire::Direction> direction_of_connless(const wire::Packet& packet) {
    const wire::ConnlessSpec* const spec = wire::find_connless(packet.payload, packet.dialect);
    if (spec != nullptr && spec->name.starts_with("get_info")) {
        return wire::Direction::c2s;
    }
    if (spec != nullptr && spec->name.starts_with("info")) {
        return wire::Direction::s2c;
    }
    return std::nullopt;
}

/// Determines by the content which side sent this datagram; nullopt if both sides may have sent it.
std::optional<wire::Direction> direction_by_content(std::span<const std::byte> payload, bool sure) {
    wire::PacketScratch scratch;
    // A packet is 0.7 if its chunks, read as 0.7, end exactly at its end. Packets of 0.6.5 with a
    // token in the header may fit, too, and are excluded.
    constexpr std::byte kHeaderToken{0x08};
    const bool joined_midway = !payload.empty() &&
                               (payload.front() & kHeaderToken) == std::byte{0} &&
                               wire::may_be_seven_chunks(payload, scratch);
    const auto packet = wire::decode_packet(
        payload, joined_midway ? wire::Protocol::seven : wire::Protocol::unknown, scratch);
    if (!packet) {
        return std::nullopt;
    }
    switch (packet->kind) {
    case wire::PacketKind::control:
        return direction_of_control(*packet, sure);
    case wire::PacketKind::connless:
        return direction_of_connless(*packet);
    default:
        return direction_of_chunks(*packet, sure);
    }
}

/// Returns true if the datagram goes to the server, according to the recorded state of its session;
/// nullopt if no state of this session precedes the datagram.
std::optional<bool> recorded_direction(const CapturedDatagram& datagram) {
    const StoredSessionState* const state = datagram.state;
    if (state != nullptr && state->client == datagram.source &&
        state->server == datagram.destination) {
        return true;
    }
    return state != nullptr && state->client == datagram.destination &&
                   state->server == datagram.source
               ? std::optional{false}
               : std::nullopt;
}

} // namespace

void ServerDetector::add_server(std::uint16_t port,
                                std::optional<boost::asio::ip::address> address) {
    requested_servers_.push_back({.port = port, .address = std::move(address)});
}

bool ServerDetector::is_requested_server(const CaptureEndpoint& endpoint) const {
    return std::ranges::any_of(requested_servers_, [&](const RequestedServer& wanted) {
        return endpoint.port == wanted.port &&
               (!wanted.address || endpoint.address == *wanted.address);
    });
}

ServerDetector::Side ServerDetector::find_server_side(const CapturedDatagram& datagram) {
    if (requested_servers_.empty()) {
        return recognise_server_side(datagram);
    }
    return is_requested_server(datagram.destination) ? Side::destination
           : is_requested_server(datagram.source)    ? Side::source
                                                     : Side::neither;
}

void ServerDetector::remember_server(const CaptureEndpoint& server) {
    if (servers_.size() < kMaxServers) {
        servers_.insert(server);
    }
}

bool ServerDetector::is_from_client(const CapturedDatagram& datagram) {
    if (!requested_servers_.empty() ||
        direction_by_content(datagram.payload, true) != wire::Direction::c2s) {
        return false;
    }
    servers_.erase(datagram.source);
    remember_server(datagram.destination);
    return true;
}

ServerDetector::Side ServerDetector::recognise_server_side(const CapturedDatagram& datagram) {
    const CaptureEndpoint& source = datagram.source;
    const CaptureEndpoint& destination = datagram.destination;
    if (is_from_client(datagram)) {
        return Side::destination;
    }
    const bool knows_source = servers_.contains(source);
    const bool knows_destination = servers_.contains(destination);
    if (knows_source != knows_destination) {
        return knows_source ? Side::source : Side::destination;
    }
    bool to_server = destination.port < source.port;
    const bool on_game_port = is_game_port(source.port) || is_game_port(destination.port);
    const bool sure = selection_ == TrafficSelection::recognised ||
                      (selection_ == TrafficSelection::game_ports && !on_game_port);
    if (const auto direction = direction_by_content(datagram.payload, sure)) {
        to_server = *direction == wire::Direction::c2s;
        // A connectionless answer does not show that its sender is a game server: master servers
        // send them, too.
        if (to_server || !wire::is_connless(datagram.payload)) {
            remember_server(to_server ? destination : source);
        }
    } else if (sure) {
        return Side::neither;
    } else if (is_game_port(source.port) != is_game_port(destination.port)) {
        to_server = is_game_port(destination.port);
    }
    return to_server ? Side::destination : Side::source;
}

void InspectorSessionReceiver::on_session_open(std::uint64_t key, std::int64_t time,
                                               const CaptureEndpoint& client,
                                               const CaptureEndpoint& server) {
    inspector_->on_open(key, time, record::client_address_text(to_string(client), pseudonym_key_),
                        to_string(server));
}

void InspectorSessionReceiver::on_datagram(std::uint64_t key, std::int64_t time,
                                           wire::Direction direction,
                                           std::span<const std::byte> bytes,
                                           std::span<const std::byte> next) {
    inspector_->on_datagram(key, time, direction, bytes, next);
}

void InspectorSessionReceiver::on_truncated_datagram(std::uint64_t key, std::int64_t time) {
    inspector_->on_missed_datagrams(key, time, 1, "truncated");
}

void InspectorSessionReceiver::on_session_end(std::uint64_t key, std::int64_t time,
                                              SessionEndReason why) {
    inspector_->on_close(key, time,
                         why == SessionEndReason::idle      ? "idle"
                         : why == SessionEndReason::evicted ? "displaced"
                                                            : "sides turned");
}

void InspectorSessionReceiver::on_session_state(std::uint64_t key,
                                                std::span<const std::byte> state) {
    auto checkpoint = inspect::decode_checkpoint(state);
    // A checkpoint with an unknown token form contains no state.
    if (checkpoint && checkpoint->token_form != inspect::TokenForm::unknown) {
        inspector_->restore_session(key, *std::move(checkpoint));
    }
}

std::size_t CaptureSessions::PairHash::operator()(const EndpointPair& pair) const {
    const std::hash<boost::asio::ip::address> address;
    std::size_t hash = address(pair.first.address);
    for (const std::size_t part : {std::size_t{pair.first.port}, address(pair.second.address),
                                   std::size_t{pair.second.port}}) {
        constexpr std::size_t kMix = 0x9e3779b97f4a7c15;
        hash = (hash ^ part) * kMix;
    }
    return hash;
}

void CaptureSessions::on_time(std::int64_t now) {
    now_ = now;
    // True if time went back, because the clock was set or the time of a datagram is wrong.
    if (now_ + kSecond < next_idle_check_) {
        next_idle_check_ = now_ + kSecond;
    }
    if (now_ >= next_idle_check_) {
        close_idle_sessions();
        next_idle_check_ = now_ + kSecond;
    }
}

void CaptureSessions::on_datagram(const CapturedDatagram& datagram) {
    on_time(datagram.time);
    wire::Direction direction = wire::Direction::c2s;
    auto found = find_session(datagram, direction);
    if (datagram.is_truncated) {
        on_truncated_datagram(found);
        return;
    }
    // The sides can be exchanged until the content of a datagram has shown which side is the
    // client.
    if (found != open_sessions_.end() && !found->second.are_sides_known &&
        detector_->is_from_client(datagram)) {
        found->second.are_sides_known = true;
        if (direction == wire::Direction::s2c) {
            end_session(found, SessionEndReason::sides_exchanged);
            found = open_sessions_.end();
        }
    }
    if (found == open_sessions_.end()) {
        found = open_session(datagram);
        if (found == open_sessions_.end()) {
            receiver_->on_ignored_datagram();
            return;
        }
        direction =
            found->first.first == datagram.source ? wire::Direction::c2s : wire::Direction::s2c;
    }
    update_session_activity(found, direction, !wire::is_connless(datagram.payload));
    if (recorded_direction(datagram) == (direction == wire::Direction::c2s)) {
        receiver_->on_session_state(found->second.key, datagram.state->bytes);
    }
    receiver_->on_datagram(found->second.key, now_, direction, datagram.payload, datagram.next);
}

CaptureSessions::Sessions::iterator CaptureSessions::find_session(const CapturedDatagram& datagram,
                                                                  wire::Direction& direction) {
    auto found = open_sessions_.find({datagram.source, datagram.destination});
    if (found == open_sessions_.end()) {
        direction = wire::Direction::s2c;
        found = open_sessions_.find({datagram.destination, datagram.source});
    }
    return found;
}

/// Reports a truncated datagram of an open session. Truncated datagrams do not open sessions,
/// because they may be other traffic.
void CaptureSessions::on_truncated_datagram(Sessions::iterator session) {
    receiver_->on_ignored_datagram();
    if (session == open_sessions_.end()) {
        return;
    }
    ++truncated_count_;
    update_session_activity(session, wire::Direction::c2s, false);
    receiver_->on_truncated_datagram(session->second.key, now_);
}

/// Opens a session for a datagram. Returns end() if the datagram does not belong to a requested
/// server or the limit of sessions is reached.
CaptureSessions::Sessions::iterator
CaptureSessions::open_session(const CapturedDatagram& datagram) {
    const ServerDetector::Side side = detector_->find_server_side(datagram);
    if (side == ServerDetector::Side::neither) {
        ++ignored_count_;
        return open_sessions_.end();
    }
    if (open_sessions_.size() >= limits_.max_sessions &&
        !make_room_for_session(!wire::is_connless(datagram.payload))) {
        ++refused_count_;
        return open_sessions_.end();
    }
    const std::optional<bool> said = recorded_direction(datagram);
    const bool to_server = said.value_or(side == ServerDetector::Side::destination);
    const auto& client = to_server ? datagram.source : datagram.destination;
    const auto& server = to_server ? datagram.destination : datagram.source;
    const auto made =
        open_sessions_
            .emplace(EndpointPair{client, server},
                     OpenSession{.key = next_key_++, .are_sides_known = said.has_value()})
            .first;
    SessionList& line = sessions_by_stage_[static_cast<std::size_t>(SessionStage::info_only)];
    made->second.list_position = line.insert(line.end(), &made->first);
    receiver_->on_session_open(made->second.key, now_, client, server);
    return made;
}

/// Ends a session to make room for a new one. Returns false if no session may be replaced.
/// `is_connection`: the new session begins with a connection. If it does not, no session is ended.
bool CaptureSessions::make_room_for_session(bool is_connection) {
    const auto& [info_only, one_sided, two_sided] = sessions_by_stage_;
    if (!is_connection || (info_only.empty() && one_sided.empty())) {
        return false;
    }
    const auto longest = open_sessions_.find(*(info_only.empty() ? one_sided : info_only).front());
    if (info_only.empty() && now_ - longest->second.last_time < kConnectionAnswerTimeout) {
        return false;
    }
    end_session(longest, SessionEndReason::evicted);
    return true;
}

void CaptureSessions::update_session_activity(Sessions::iterator session, wire::Direction direction,
                                              bool is_connection) {
    OpenSession& open = session->second;
    open.last_time = std::max(open.last_time, now_);
    SessionList& from = sessions_by_stage_[static_cast<std::size_t>(open.stage)];
    if (is_connection) {
        open.seen_directions[direction == wire::Direction::c2s ? 0 : 1] = true;
        open.stage = open.seen_directions[0] && open.seen_directions[1] ? SessionStage::two_sided
                                                                        : SessionStage::one_sided;
    }
    SessionList& to = sessions_by_stage_[static_cast<std::size_t>(open.stage)];
    to.splice(to.end(), from, open.list_position);
}

void CaptureSessions::end_session(Sessions::iterator session, SessionEndReason why) {
    const std::uint64_t key = session->second.key;
    sessions_by_stage_[static_cast<std::size_t>(session->second.stage)].erase(
        session->second.list_position);
    open_sessions_.erase(session);
    receiver_->on_session_end(key, now_, why);
}

void CaptureSessions::close_idle_sessions() {
    std::vector<std::pair<std::uint64_t, Sessions::iterator>> idle;
    for (auto at = open_sessions_.begin(); at != open_sessions_.end(); ++at) {
        at->second.last_time = std::min(at->second.last_time, now_);
        if (now_ - at->second.last_time > limits_.idle_timeout) {
            idle.emplace_back(at->second.key, at);
        }
    }
    std::ranges::sort(idle, {}, [](const auto& each) { return each.first; });
    for (const auto& [key, session] : idle) {
        end_session(session, SessionEndReason::idle);
    }
}

} // namespace tw::capture
