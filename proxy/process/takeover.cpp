#include "proxy/process/takeover.h"

#include "proxy/base/archive.h"
#include "proxy/base/endpoint.h"
#include "proxy/base/log.h"
#include "proxy/process/signals.h"
#include "proxy/record/terminal_text.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tw::process {

namespace {

using relay::ServerIndex;
using relay::TakeoverError;
using std::chrono::milliseconds;

/// The longest wait for the first message of a new relay. A silent peer must not block other peers.
constexpr milliseconds kHelloTimeout{1000};
/// The longest time for slow preparations of the new relay, such as reading a folder of maps.
constexpr milliseconds kPreparationTimeout{60'000};
/// The longest time for pausing and sending the state, while no relay forwards; usually 1 to 2 ms.
constexpr milliseconds kStateTimeout{250};
/// The longest wait until the new relay forwards. This relay notices at once if the new relay
/// crashes; the limit is for a new relay that hangs.
constexpr milliseconds kForwardingTimeout{500};
/// The longest time for sending a message that needs no answer.
constexpr milliseconds kSendTimeout{50};
/// The longest wait for an answer from the old relay, which answers at once unless the machine is
/// busy.
constexpr milliseconds kAnswerTimeout{5000};

constexpr std::string_view kNewRelayEnded = "the new one ended before it was ready";
constexpr std::string_view kNewRelaySilent = "the new one has stopped responding";
constexpr std::string_view kUnexpectedMessage = "the new one sent an unexpected message";
constexpr const char* kTakeoverAborted = "the running twscope aborted the takeover (see its log)";

TakeoverLink::Time deadline_after(milliseconds time) {
    return base::Clock::now() + time;
}

/// Reads the content of a message from the peer. Errors: TakeoverError.
template <typename Content>
Content read_content(const TakeoverLink::Message& message) {
    auto said = base::from_archive<Content>(message.body);
    if (!said) {
        throw TakeoverError{"a message of the takeover is damaged"};
    }
    return std::move(*said);
}

/// Returns the server's name, or its address if it has no name, for log messages.
std::string name_or_address(const TakeoverServer& server) {
    return server.name.empty() ? base::to_string(server.server_endpoint) : server.name;
}

/// Checks that a server is the same in both relays: it must have the same address or host name, and
/// the same ClientAddressMode. Errors: TakeoverError.
void check_same_server(const relay::Relay& relay, const TakeoverRequester::ContinuedServer& taken) {
    const TakeoverServer& there = *taken.old_server;
    const bool same = relay.server_endpoint(taken.number) == there.server_endpoint ||
                      (!taken.host_name.empty() && taken.host_name == there.host_name);
    if (!same || relay.client_address_mode(taken.number) != there.mode) {
        throw TakeoverError{fmt::format("the running twscope forwards to {}{}, or uses other "
                                        "client addresses; restart it to change that",
                                        there.name.empty() ? "" : there.name + " at ",
                                        base::to_string(there.server_endpoint))};
    }
}

TakeoverLink connect_to_running_relay(const std::filesystem::path& file) {
    auto link = TakeoverSocket::connect(file);
    if (!link) {
        throw NoTakeoverPeerError{
            fmt::format("there is no running twscope to take over from ({}: {})", file.string(),
                        std::system_category().message(errno))};
    }
    if (!link->is_trusted()) {
        throw TakeoverError{fmt::format("{} belongs to another user's process", file.string())};
    }
    return std::move(*link);
}

} // namespace

TakeoverResponder::TakeoverResponder(Dependencies parts, TakeoverSocket takeover_socket)
    : parts_{std::move(parts)}, takeover_socket_{std::move(takeover_socket)},
      connections_{*parts_.io}, messages_{*parts_.io}, deadline_{*parts_.io} {}

void TakeoverResponder::start() {
    try {
        connections_.start(takeover_socket_.descriptor(), [this] { on_connection(); });
    } catch (const boost::system::system_error& error) {
        log::warn("no other run can take over from this one: {}", error.code().message());
    }
}

void TakeoverResponder::stop() {
    connections_.stop();
    deadline_.cancel();
    messages_.stop();
    if (!has_handed_over()) {
        link_.reset();
    }
}

void TakeoverResponder::on_connection() {
    auto peer = takeover_socket_.accept();
    if (!peer) {
        return;
    }
    if (!peer->is_trusted(parts_.relay_status().observer_pid)) {
        log::warn("rejected a takeover by a process that lacks permission");
        return;
    }
    if (stage_ != Stage::idle) {
        std::ignore = peer->send(TakeoverMessage::busy, deadline_after(kSendTimeout));
        return;
    }
    link_ = std::move(peer);
    stage_ = Stage::connected;
    set_deadline(kHelloTimeout);
    try {
        messages_.start(link_->descriptor(), [this] { on_message(); });
    } catch (const boost::system::system_error& error) {
        reject_takeover(error.code().message());
    }
}

void TakeoverResponder::on_message() {
    const auto message = link_->receive(base::Clock::now());
    if (message) {
        handle_message(*message);
    } else if (link_->is_closed()) {
        abort_takeover(kNewRelayEnded);
    }
}

void TakeoverResponder::handle_message(const TakeoverLink::Message& message) {
    try {
        if (stage_ == Stage::connected && message.kind == TakeoverMessage::hello) {
            handle_hello(message.body);
        } else if (stage_ == Stage::preparing && message.kind == TakeoverMessage::ready) {
            hand_over_servers(read_content<std::vector<ServerIndex>>(message));
        } else {
            abort_takeover(kUnexpectedMessage);
        }
    } catch (const TakeoverError& error) {
        abort_takeover(error.what());
    }
}

void TakeoverResponder::handle_hello(std::span<const std::byte> greeting) {
    // from_archive() would reject the members of other versions.
    base::ArchiveReader reader{greeting};
    TakeoverHello hello{.version = 0};
    reader.read(hello);
    if (hello.name != TakeoverHello::kName) {
        abort_takeover("the greeting is not that of a twscope");
    } else if (hello.version != TakeoverHello::kVersion) {
        reject_takeover(
            fmt::format("the running twscope uses takeover version {}, the new one version {}: "
                        "restart it once",
                        TakeoverHello::kVersion, hello.version));
    } else if (!parts_.example_client.empty() && !hello.example_client.empty() &&
               parts_.example_client != hello.example_client) {
        // If both relays recorded the address of a continued session, each in its own form, the
        // records would reveal whose pseudonym it is.
        reject_takeover(
            hello.example_client == kExampleClient
                ? "the running twscope replaces client addresses by pseudonyms, but the "
                  "new one has no secret for pseudonyms; restart it to change that"
            : parts_.example_client == kExampleClient
                ? "the running twscope records client addresses as they are, but the "
                  "new one would replace them by pseudonyms; restart it to change that"
                : "the new twscope has another secret for pseudonyms than the running "
                  "one; restart it to change that");
    } else {
        send_offer();
    }
}

/// Sends the new relay the offer: a description of the servers, and their listening sockets.
void TakeoverResponder::send_offer() {
    const relay::Relay& relay = *parts_.relay;
    const RelayStatus now = parts_.relay_status();
    TakeoverOffer offer{.network_namespace = own_network_namespace_number(),
                        .observer_number = now.observer_number,
                        .servers = now.servers};
    std::vector<int> sockets{takeover_socket_.descriptor()};
    for (TakeoverServer& server : offer.servers) {
        const auto listening = relay.listening_sockets(server.number);
        server.num_listening_sockets = static_cast<std::uint32_t>(listening.size());
        server.server_endpoint = relay.server_endpoint(server.number);
        server.mode = relay.client_address_mode(server.number);
        for (const auto& endpoint : relay.listen_endpoints(server.number)) {
            server.listen_endpoints.push_back(base::endpoint_from(endpoint.data()));
        }
        sockets.insert(sockets.end(), listening.begin(), listening.end());
    }
    if (!link_->send(TakeoverMessage::offer, base::to_archive(offer), sockets,
                     deadline_after(kSendTimeout))) {
        abort_takeover("the new one did not accept the offer");
        return;
    }
    log::info("another twscope is starting a takeover");
    offered_servers_ = now.servers;
    stage_ = Stage::preparing;
    set_deadline(kPreparationTimeout);
}

/// Returns why these servers cannot be handed over; empty if they can be handed over.
std::string TakeoverResponder::find_takeover_problem(const std::vector<ServerIndex>& wanted) const {
    if (!std::ranges::equal(parts_.relay_status().servers, offered_servers_, {},
                            &TakeoverServer::number, &TakeoverServer::number)) {
        return "the running twscope's servers have changed in the meantime; try again";
    }
    const bool offered = std::ranges::all_of(wanted, [this](ServerIndex server) {
        return std::ranges::find(offered_servers_, server, &TakeoverServer::number) !=
               offered_servers_.end();
    });
    const std::set<ServerIndex> different{wanted.begin(), wanted.end()};
    return offered && !wanted.empty() && different.size() == wanted.size()
               ? ""
               : "the new one requested no server, or one that it was not offered";
}

void TakeoverResponder::hand_over_servers(const std::vector<ServerIndex>& wanted) {
    deadline_.cancel();
    if (const std::string why = find_takeover_problem(wanted); !why.empty()) {
        reject_takeover(why);
        return;
    }
    not_continued_.clear();
    std::vector<std::string_view> names;
    for (const TakeoverServer& server : offered_servers_) {
        if (std::ranges::find(wanted, server.number) == wanted.end()) {
            not_continued_.push_back(server.number);
            names.push_back(server.name);
        }
    }
    const auto paused_at = base::Clock::now();
    const std::string_view problem = send_state(wanted, paused_at)
                                         ? await_forwarding()
                                         : "the new one did not accept the sessions in time";
    if (problem.empty()) {
        stage_ = Stage::handed_over;
        takeover_socket_.keep_socket_file();
        if (!names.empty()) {
            log::warn("the new twscope has no server {}: {}", fmt::join(names, ", "),
                      record::count_with_noun(num_ended_sessions_, "session[s] [ends|end]"));
        }
        return parts_.on_handed_over();
    }
    parts_.relay->resume_threads();
    // The service manager may already treat the new relay as the service's main process.
    notify_service_ready();
    const std::chrono::duration<double, std::milli> held = base::Clock::now() - paused_at;
    abort_takeover(fmt::format("{}; forwarding paused for {:.1f} ms", problem, held.count()));
}

/// Stops forwarding and sends the state to the new relay. Returns false if that takes too long.
bool TakeoverResponder::send_state(const std::vector<ServerIndex>& wanted,
                                   TakeoverLink::Time paused_at) {
    if (!parts_.relay->pause_threads(kStateTimeout)) {
        return false;
    }
    auto [state, sockets] = parts_.relay->takeover_state(wanted);
    num_ended_sessions_ = parts_.relay->num_sessions();
    for (const relay::HandedOverServer& server : state.servers) {
        num_ended_sessions_ -= static_cast<std::size_t>(std::ranges::count_if(
            server.sessions, &relay::TransferredSessionData::counts_against_limit,
            &relay::HandedOverSession::facts));
    }
    const auto bytes = base::to_archive(
        TakeoverState{.paused_at = paused_at.time_since_epoch().count(),
                      .last_recorded_session = parts_.relay_status().last_recorded_session,
                      .relay = std::move(state)});
    return link_->send(TakeoverMessage::state, bytes, sockets, paused_at + kStateTimeout);
}

/// Waits until the new relay reports that it forwards. Returns an empty text if it does, otherwise
/// the reason for the failure.
std::string_view TakeoverResponder::await_forwarding() {
    auto message = link_->receive(deadline_after(kForwardingTimeout));
    if (!message && !link_->is_closed()) {
        // The report may be arriving at this moment. After stop_receiving(), no report can arrive,
        // so one more attempt to receive it is enough.
        link_->stop_receiving();
        message = link_->receive(base::Clock::now());
        if (!message) {
            return kNewRelaySilent;
        }
    }
    return !message                                       ? kNewRelayEnded
           : message->kind != TakeoverMessage::forwarding ? kUnexpectedMessage
                                                          : std::string_view{};
}

void TakeoverResponder::reject_takeover(std::string_view why) {
    std::ignore = link_->send(TakeoverMessage::refusal, std::as_bytes(std::span{why}), {},
                              deadline_after(kSendTimeout));
    abort_takeover(why);
}

void TakeoverResponder::abort_takeover(std::string_view why) {
    // A peer that only checks whether a relay runs disconnects at once. It causes no warning.
    if (stage_ != Stage::connected || !link_->is_closed()) {
        log::warn("takeover failed: {}; this twscope carries on as before", why);
    }
    stage_ = Stage::idle;
    messages_.stop();
    deadline_.cancel();
    link_.reset();
}

void TakeoverResponder::set_deadline(milliseconds timeout) {
    deadline_.expires_after(timeout);
    deadline_.async_wait([this](const auto& error) {
        if (!error && stage_ != Stage::idle && stage_ != Stage::handed_over) {
            abort_takeover(kNewRelaySilent);
        }
    });
}

void TakeoverResponder::report_end(std::uint32_t last_recorded_session, int checkpoint) {
    const auto descriptors =
        checkpoint < 0 ? std::span<const int>{} : std::span<const int>{&checkpoint, 1};
    std::ignore = link_->send(TakeoverMessage::ended, base::to_archive(last_recorded_session),
                              descriptors, deadline_after(kSendTimeout));
}

TakeoverRequester::TakeoverRequester(std::filesystem::path file, std::string example_client)
    : file_{std::move(file)}, link_{connect_to_running_relay(file_)} {
    const TakeoverHello hello{.example_client = std::move(example_client)};
    std::ignore = link_.send(TakeoverMessage::hello, base::to_archive(hello), {},
                             deadline_after(kAnswerTimeout));
    auto message = receive(TakeoverMessage::offer);
    std::vector<base::UniqueFd>& sockets = message.descriptors;
    offer_ = read_content<TakeoverOffer>(message);
    const auto is_valid = [](const TakeoverServer& server) { // with a printable name
        return std::ranges::all_of(server.name, [](char c) { return c > ' ' && c <= '~'; }) &&
               !server.listen_endpoints.empty() && server.num_listening_sockets != 0;
    };
    if (offer_.servers.empty() || !std::ranges::all_of(offer_.servers, is_valid)) {
        throw TakeoverError{"the running twscope names no server, or one that cannot be"};
    }
    if (offer_.network_namespace != own_network_namespace_number()) {
        throw TakeoverError{"the running twscope is in another network namespace"};
    }
    std::set<std::string_view> names;
    std::size_t used = 1; // the first descriptor is the takeover socket
    for (const TakeoverServer& server : offer_.servers) {
        names.insert(server.name);
        const std::size_t count = server.num_listening_sockets;
        if (sockets.size() < used + count) {
            throw TakeoverError{"listening sockets were announced but did not arrive"};
        }
        const auto first =
            std::make_move_iterator(sockets.begin()) + static_cast<std::ptrdiff_t>(used);
        listening_.emplace_back(first, first + static_cast<std::ptrdiff_t>(count));
        used += count;
    }
    if (names.size() != offer_.servers.size()) {
        throw TakeoverError{"the running twscope names a server twice"};
    }
    takeover_socket_ = std::move(sockets.front());
}

TakeoverLink::Message TakeoverRequester::receive(TakeoverMessage wanted) {
    auto message = link_.receive(deadline_after(kAnswerTimeout));
    if (!message) {
        throw TakeoverError{link_.is_closed() ? kTakeoverAborted
                                              : "the running twscope does not respond"};
    }
    if (message->kind == TakeoverMessage::busy) {
        throw NoTakeoverPeerError{"another takeover from the running twscope is in progress"};
    }
    if (message->kind == TakeoverMessage::refusal) {
        throw TakeoverError{
            {reinterpret_cast<const char*>(message->body.data()), message->body.size()}};
    }
    if (message->kind != wanted) {
        throw TakeoverError{"the running twscope sent an unexpected message"};
    }
    return std::move(*message);
}

const TakeoverServer* TakeoverRequester::find_server(std::string_view name) const {
    const auto found = std::ranges::find(offer_.servers, name, &TakeoverServer::name);
    return found == offer_.servers.end() ? nullptr : &*found;
}

void TakeoverRequester::check_servers(const std::vector<ConfiguredServer>& wanted) const {
    const auto is_there = [this](const ConfiguredServer& each) {
        return find_server(each.name) != nullptr;
    };
    if (std::ranges::none_of(wanted, is_there)) {
        throw TakeoverError{fmt::format("the running twscope has none of these servers, but {}; "
                                        "restart it instead",
                                        name_or_address(offer_.servers.front()))};
    }
    for (const ConfiguredServer& each : wanted) {
        const TakeoverServer* const same = find_server(each.name);
        for (const TakeoverServer& other : offer_.servers) {
            // Two servers must not listen on the same address, although the kernel allows it.
            if (&other != same && std::ranges::any_of(each.options.listen, [&](const auto& own) {
                    return std::ranges::find(other.listen_endpoints,
                                             base::endpoint_from(own.data())) !=
                           other.listen_endpoints.end();
                })) {
                throw TakeoverError{fmt::format("the running twscope listens on {} for {}, which "
                                                "should now be {}; restart it to change that",
                                                base::to_string(each.options.listen.front()),
                                                name_or_address(other), each.name)};
            }
        }
    }
}

TakeoverRequester::PreparedServer TakeoverRequester::prepare_server(const ConfiguredServer& served,
                                                                    ServerIndex number) {
    PreparedServer begun{.options = served.options};
    const TakeoverServer* const there = listening_.empty() ? nullptr : find_server(served.name);
    if (there == nullptr) {
        return begun;
    }
    begun.options.listen.clear();
    for (const base::Endpoint& endpoint : there->listen_endpoints) {
        begun.options.listen.push_back(base::to_asio_endpoint(endpoint));
    }
    const auto fits = [](const auto& own, const auto& other) {
        return own.address() == other.address() && (own.port() == 0 || own.port() == other.port());
    };
    if (!std::ranges::equal(served.options.listen, begun.options.listen, fits)) {
        throw TakeoverError{
            fmt::format("the running twscope listens on other addresses{} ({} first); "
                        "restart it to change them",
                        there->name.empty() ? "" : " for " + there->name,
                        base::to_string(there->listen_endpoints.front()))};
    }
    begun.listening =
        std::move(listening_[static_cast<std::size_t>(there - offer_.servers.data())]);
    continued_.push_back(
        {.old_server = there, .number = number, .host_name = host_and_port(served.options)});
    return begun;
}

TakeoverState TakeoverRequester::take_sessions(relay::Relay& relay) {
    std::vector<ServerIndex> there;
    std::vector<ServerIndex> here;
    for (const ContinuedServer& each : continued_) {
        check_same_server(relay, each);
        there.push_back(each.old_server->number);
        here.push_back(each.number);
    }
    listening_.clear(); // closes the sockets of servers that are not continued
    if (!link_.send(TakeoverMessage::ready, base::to_archive(there), {},
                    deadline_after(kAnswerTimeout))) {
        throw TakeoverError{kTakeoverAborted};
    }
    auto message = receive(TakeoverMessage::state);
    auto state = read_content<TakeoverState>(message);
    relay.take_over(state.relay, here, std::move(message.descriptors));
    std::ignore = link_.receive(base::Clock::now());
    if (link_.is_closed()) {
        throw TakeoverError{kTakeoverAborted};
    }
    return state;
}

void TakeoverRequester::confirm_forwarding() const {
    if (!link_.send(TakeoverMessage::forwarding, deadline_after(kAnswerTimeout))) {
        throw TakeoverError{"the running twscope timed out"};
    }
}

std::optional<TakeoverRequester::EndReport> TakeoverRequester::receive_end_report() {
    auto message = link_.receive(base::Clock::now());
    const auto said = message && message->kind == TakeoverMessage::ended
                          ? base::from_archive<std::uint32_t>(message->body)
                          : std::nullopt;
    if (!said) {
        return std::nullopt;
    }
    EndReport left{.last_recorded_session = *said};
    if (message->descriptors.size() == 1) {
        left.checkpoint = std::move(message->descriptors.front());
    }
    return left;
}

void TakeoverRequester::log_takeover_changes(const relay::Relay& relay, unsigned threads) const {
    // If a server is new, no thread is idle: a new server has listening sockets in all threads.
    std::size_t sets = continued_.size() < relay.next_server_index() ? threads : 0;
    for (const auto& [there, number, host] : continued_) {
        const base::Endpoint now = relay.server_endpoint(number);
        if (now != there->server_endpoint) {
            log::info("the server {} is now at {}; new sessions go there", host,
                      base::to_string(now));
        }
        sets = std::max(sets, there->num_listening_sockets / there->listen_endpoints.size());
    }
    for (const TakeoverServer& there : offer_.servers) {
        if (std::ranges::find(continued_, &there, &ContinuedServer::old_server) ==
            continued_.end()) {
            log::warn("the server {} is no longer configured: its sessions end", there.name);
        }
    }
    if (sets < threads) {
        log::warn(
            "{} of {} relay threads {} idle: only a restart spreads the clients over more threads",
            threads - sets, threads, record::choose_plural(threads - sets, "[is|are]"));
    }
}

std::uint64_t own_network_namespace_number() {
    struct stat found {};

    return ::stat("/proc/self/ns/net", &found) == 0 ? found.st_ino : 0;
}

} // namespace tw::process
