#include "proxy/process/handover.h"

#include "proxy/base/endpoint.h"
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
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tw::process {

namespace {

using relay::HandoverError;
using relay::ServerIndex;
using std::chrono::milliseconds;

/// The time for the first message, so that a silent peer does not block others.
constexpr milliseconds kGreetingTime{1000};
/// The time for slow preparations, such as an observer that reads a folder of maps.
constexpr milliseconds kReadyTime{60'000};
/// The time for handing over, while no relay forwards. Normally a millisecond or two.
constexpr milliseconds kGiveTime{250};
/// The time in which the new relay must begin to forward. A crash is noticed at once; this limit is
/// for a process that was stopped.
constexpr milliseconds kGoTime{500};
/// The time for sending a message to which no answer is awaited.
constexpr milliseconds kWordTime{50};
/// The time for an answer of the old relay, which comes at once unless the machine is busy.
constexpr milliseconds kPatience{5000};

constexpr const char* kEndedIt = "the running twscope aborted the takeover (see its log)";

TakeoverLink::Time in(milliseconds time) {
    return base::Clock::now() + time;
}

/// Reads a message of the peer. Errors: HandoverError.
template <typename Said>
Said read(const TakeoverLink::Message& message) {
    auto said = base::from_archive<Said>(message.body);
    if (!said) {
        throw HandoverError{"a message of the takeover is damaged"};
    }
    return std::move(*said);
}

bool contains(const std::vector<ServerIndex>& servers, ServerIndex server) {
    return std::ranges::find(servers, server) != servers.end();
}

} // namespace

HandoverGiver::HandoverGiver(Parts parts, TakeoverSocket takeover_socket)
    : parts_{std::move(parts)}, takeover_socket_{std::move(takeover_socket)}, asked_{*parts_.io},
      messages_{*parts_.io}, deadline_{*parts_.io} {}

void HandoverGiver::start() {
    boost::system::error_code error;
    asked_.assign(::dup(takeover_socket_.descriptor()), error);
    if (error) {
        spdlog::warn("no other run can take over from this one: {}", error.message());
        return;
    }
    await_asker();
}

void HandoverGiver::stop() {
    boost::system::error_code ignored;
    asked_.close(ignored);
    deadline_.cancel();
    messages_.close(ignored);
    if (!gave()) {
        link_.reset();
    }
}

void HandoverGiver::await_asker() {
    asked_.async_wait(boost::asio::posix::stream_descriptor::wait_read, [this](const auto& error) {
        if (!error) {
            on_asker();
            await_asker();
        }
    });
}

void HandoverGiver::on_asker() {
    auto asker = takeover_socket_.accept();
    if (!asker) {
        return;
    }
    if (!asker->is_trusted() || asker->is_of(parts_.now().observer_process)) {
        spdlog::warn("rejected a takeover by a process that lacks permission");
        return;
    }
    if (stage_ != Stage::idle) {
        std::ignore = asker->send(TakeoverMessage::busy, in(kWordTime));
        return;
    }
    link_ = std::move(asker);
    stage_ = Stage::greeting;
    set_deadline(kGreetingTime);
    boost::system::error_code error;
    messages_.assign(::dup(link_->descriptor()), error);
    if (error) {
        refuse(error.message());
        return;
    }
    await_message();
}

void HandoverGiver::await_message() {
    messages_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                         [this](const auto& error) {
                             if (!error && link_) {
                                 on_message();
                             }
                         });
}

void HandoverGiver::on_message() {
    const auto message = link_->receive(base::Clock::now());
    if (message) {
        handle(*message);
    } else if (link_->closed()) {
        abort_handover("the new one ended before it was ready");
    }
    if (messages_.is_open()) {
        await_message();
    }
}

void HandoverGiver::handle(const TakeoverLink::Message& message) {
    try {
        if (stage_ == Stage::greeting && message.kind == TakeoverMessage::hello) {
            greet(message.body);
        } else if (stage_ == Stage::preparing && message.kind == TakeoverMessage::ready) {
            hand_over(read<TakeoverSelection>(message).servers);
        } else if (stage_ == Stage::given && message.kind == TakeoverMessage::going) {
            finish();
        } else {
            abort_handover("the new one sent an unexpected message");
        }
    } catch (const HandoverError& error) {
        abort_handover(error.what());
    }
}

void HandoverGiver::greet(std::span<const std::byte> greeting) {
    base::ArchiveReader reader{greeting};
    TakeoverHello hello;
    reader.read(hello);
    if (reader.failed() || hello.name != TakeoverHello::kName) { // other versions may append more
        abort_handover("the greeting is not that of a twscope");
    } else if (hello.version != TakeoverHello::kVersion) {
        refuse(fmt::format("the running twscope uses takeover version {}, the new one version {}: "
                           "restart it once",
                           TakeoverHello::kVersion, hello.version));
    } else {
        offer();
    }
}

/// Describes the servers, and sends their listening sockets.
void HandoverGiver::offer() {
    const relay::Relay& relay = *parts_.relay;
    const Now now = parts_.now();
    TakeoverOffer offer{.network = own_network(), .observer = now.observer};
    std::vector<int> sockets{takeover_socket_.descriptor()};
    for (const auto& [number, name, host_name] : now.servers) {
        const auto listening = relay.listening_sockets(number);
        offer.servers.push_back({.number = number,
                                 .name = name,
                                 .listening_sockets = static_cast<std::uint32_t>(listening.size()),
                                 .server = relay.server_endpoint(number),
                                 .host_name = host_name,
                                 .former = relay.former_servers(number),
                                 .mode = relay.client_address(number)});
        for (const auto& endpoint : relay.listen_endpoints(number)) {
            offer.servers.back().listen.push_back(base::endpoint_from(endpoint.data()));
        }
        sockets.insert(sockets.end(), listening.begin(), listening.end());
    }
    if (!link_->send(TakeoverMessage::offer, base::archived(offer), sockets, in(kWordTime))) {
        abort_handover("the new one did not accept the offer");
        return;
    }
    spdlog::info("another twscope is starting a takeover");
    offered_ = now.servers;
    stage_ = Stage::preparing;
    set_deadline(kReadyTime);
}

/// Returns why these servers cannot be handed over; empty if they can.
std::string HandoverGiver::objection_to(const std::vector<ServerIndex>& wanted) const {
    if (!std::ranges::equal(parts_.now().servers, offered_, {}, &Served::number, &Served::number)) {
        return "the running twscope's servers have changed in the meantime; try again";
    }
    const bool offered = std::ranges::all_of(wanted, [this](ServerIndex server) {
        return std::ranges::find(offered_, server, &Served::number) != offered_.end();
    });
    const std::set<ServerIndex> different{wanted.begin(), wanted.end()};
    return offered && !wanted.empty() && different.size() == wanted.size()
               ? ""
               : "the new one requested no server, or one that it was not offered";
}

void HandoverGiver::hand_over(const std::vector<ServerIndex>& wanted) {
    deadline_.cancel();
    if (const std::string why = objection_to(wanted); !why.empty()) {
        refuse(why);
        return;
    }
    let_go_.clear();
    for (const Served& server : offered_) {
        if (!contains(wanted, server.number)) {
            let_go_.push_back(server.number);
        }
    }
    const auto held_at = base::Clock::now();
    if (give(wanted, held_at)) {
        stage_ = Stage::given;
        set_deadline(kGoTime);
        return;
    }
    parts_.relay->resume();
    const std::chrono::duration<double, std::milli> held = base::Clock::now() - held_at;
    abort_handover(fmt::format("the new one did not accept the sessions in time; forwarding "
                               "paused for {:.1f} ms",
                               held.count()));
}

/// Stops forwarding and sends everything. Returns false if that takes too long.
bool HandoverGiver::give(const std::vector<ServerIndex>& wanted, TakeoverLink::Time held_at) {
    if (!parts_.relay->pause(kGiveTime)) {
        return false;
    }
    auto [state, sockets] = parts_.relay->handover(wanted);
    ended_sessions_ = parts_.relay->num_sessions() -
                      static_cast<std::size_t>(std::ranges::count_if(
                          state.sessions, &relay::SessionState::counts_against_limit));
    const auto bytes =
        base::archived(TakeoverState{.held_at = held_at.time_since_epoch().count(),
                                     .numbered_sessions = parts_.now().numbered_sessions,
                                     .relay = std::move(state)});
    return link_->send(TakeoverMessage::state, bytes, sockets, held_at + kGiveTime);
}

/// The new relay forwards. Logs which servers do not continue, and how many sessions end.
void HandoverGiver::finish() {
    stage_ = Stage::gone;
    takeover_socket_.keep_file();
    std::vector<std::string_view> names;
    for (const Served& server : offered_) {
        if (contains(let_go_, server.number)) {
            names.push_back(server.name);
        }
    }
    if (!names.empty()) {
        spdlog::warn("the new twscope has no server {}: {}", fmt::join(names, ", "),
                     record::counted(ended_sessions_, "session[s] [ends|end]"));
    }
    parts_.given();
}

void HandoverGiver::refuse(std::string_view why) {
    std::ignore =
        link_->send(TakeoverMessage::refusal, std::as_bytes(std::span{why}), {}, in(kWordTime));
    abort_handover(why);
}

void HandoverGiver::abort_handover(std::string_view why) {
    if (stage_ == Stage::given) { // the new relay never said that it forwards
        parts_.relay->resume();
        notify_ready(); // the service manager may take the new process for the service by now
    }
    if (stage_ != Stage::greeting ||
        !link_->closed()) { // a peer that only checked for a running relay sends nothing
        spdlog::warn("takeover failed: {}; this twscope carries on as before", why);
    }
    stage_ = Stage::idle;
    boost::system::error_code ignored;
    messages_.close(ignored);
    deadline_.cancel();
    link_.reset();
}

void HandoverGiver::set_deadline(milliseconds patience) {
    deadline_.expires_after(patience);
    deadline_.async_wait([this](const auto& error) {
        if (!error && stage_ != Stage::idle && stage_ != Stage::gone) {
            on_deadline();
        }
    });
}

/// Handles messages that arrived before the deadline and rejects later ones, so that the new relay
/// cannot start.
void HandoverGiver::on_deadline() {
    link_->stop_receiving();
    const auto late = link_->receive(base::Clock::now());
    if (late && stage_ == Stage::given) {
        handle(*late);
    } else {
        abort_handover("the new one has stopped responding");
    }
}

void HandoverGiver::leave(const TakeoverLeft& left, int checkpoint) {
    const auto descriptors =
        checkpoint < 0 ? std::span<const int>{} : std::span<const int>{&checkpoint, 1};
    std::ignore =
        link_->send(TakeoverMessage::left, base::archived(left), descriptors, in(kWordTime));
}

namespace {

/// The server's name and address for log messages.
std::string shown(const TakeoverServer& server) {
    return server.name.empty() ? base::to_string(server.server) : server.name;
}

/// Whether a relay can have such a server. Its name may be shown to users.
bool is_possible(const TakeoverServer& server) {
    return std::ranges::all_of(server.name, [](char c) { return c > ' ' && c <= '~'; }) &&
           !server.listen.empty() && server.listening_sockets != 0;
}

/// Checks that a server is the running relay's: with the same address or the same host name, which
/// may resolve to a new address by now.
/// Errors: HandoverError.
void check_same(const relay::Relay& relay, const HandoverTaker::Taken& taken) {
    const TakeoverServer& there = *taken.from;
    const bool same = relay.server_endpoint(taken.number) == there.server ||
                      (!taken.host_name.empty() && taken.host_name == there.host_name);
    if (!same || relay.client_address(taken.number) != there.mode) {
        throw HandoverError{fmt::format("the running twscope forwards to {}{}, or uses other "
                                        "client addresses; restart it to change that",
                                        there.name.empty() ? "" : there.name + " at ",
                                        base::to_string(there.server))};
    }
}

TakeoverLink ask(const std::filesystem::path& file) {
    auto link = TakeoverSocket::ask(file);
    if (!link) {
        throw NoTakeoverPeer{fmt::format("there is no running twscope to take over from ({}: {})",
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
    std::ignore =
        link_.send(TakeoverMessage::hello, base::archived(TakeoverHello{}), {}, in(kPatience));
    auto message = receive(TakeoverMessage::offer);
    std::vector<base::UniqueFd>& sockets = message.descriptors;
    offer_ = read<TakeoverOffer>(message);
    if (offer_.servers.empty() || !std::ranges::all_of(offer_.servers, is_possible)) {
        throw HandoverError{"the running twscope names no server, or one that cannot be"};
    }
    if (offer_.network != own_network()) {
        throw HandoverError{"the running twscope is in another network namespace"};
    }
    std::set<std::string_view> names;
    std::size_t used = 1; // the first one is the takeover socket
    for (const TakeoverServer& server : offer_.servers) {
        names.insert(server.name);
        const std::size_t count = server.listening_sockets;
        if (sockets.size() < used + count) {
            throw HandoverError{"listening sockets were announced but did not arrive"};
        }
        const auto first =
            std::make_move_iterator(sockets.begin()) + static_cast<std::ptrdiff_t>(used);
        listening_.emplace_back(first, first + static_cast<std::ptrdiff_t>(count));
        used += count;
    }
    if (names.size() != offer_.servers.size()) {
        throw HandoverError{"the running twscope names a server twice"};
    }
    takeover_socket_ = std::move(sockets.front());
}

TakeoverLink::Message HandoverTaker::receive(TakeoverMessage wanted) {
    auto message = link_.receive(in(kPatience));
    if (!message) {
        throw HandoverError{link_.closed() ? kEndedIt : "the running twscope does not respond"};
    }
    if (message->kind == TakeoverMessage::busy) {
        throw NoTakeoverPeer{"another takeover from the running twscope is in progress"};
    }
    if (message->kind == TakeoverMessage::refusal) {
        throw HandoverError{
            {reinterpret_cast<const char*>(message->body.data()), message->body.size()}};
    }
    if (message->kind != wanted) {
        throw HandoverError{"the running twscope sent an unexpected message"};
    }
    return std::move(*message);
}

const TakeoverServer* HandoverTaker::find(std::string_view name) const {
    const auto found = std::ranges::find(offer_.servers, name, &TakeoverServer::name);
    return found == offer_.servers.end() ? nullptr : &*found;
}

void HandoverTaker::check(const std::vector<ServedServer>& wanted) const {
    const auto is_there = [this](const ServedServer& each) { return find(each.name) != nullptr; };
    if (std::ranges::none_of(wanted, is_there)) {
        throw HandoverError{fmt::format("the running twscope has none of these servers, but {}; "
                                        "restart it instead",
                                        shown(offer_.servers.front()))};
    }
    for (const ServedServer& each : wanted) {
        const TakeoverServer* const same = find(each.name);
        for (const TakeoverServer& other : offer_.servers) {
            // Both would be bound if threads share the address.
            if (&other != same && std::ranges::any_of(each.where.listen, [&](const auto& own) {
                    return std::ranges::find(other.listen, base::endpoint_from(own.data())) !=
                           other.listen.end();
                })) {
                throw HandoverError{fmt::format("the running twscope listens on {} for {}, which "
                                                "should now be {}; restart it to change that",
                                                base::to_string(each.where.listen.front()),
                                                shown(other), each.name)};
            }
        }
    }
}

HandoverTaker::Begun HandoverTaker::begin(const ServedServer& served, ServerIndex number) {
    Begun begun{.where = served.where};
    const TakeoverServer* const there = listening_.empty() ? nullptr : find(served.name);
    if (there == nullptr) {
        return begun;
    }
    begun.where.listen.clear();
    for (const base::Endpoint& endpoint : there->listen) {
        begun.where.listen.push_back(base::to_asio(endpoint));
    }
    const auto fits = [](const auto& own, const auto& other) {
        return own.address() == other.address() && (own.port() == 0 || own.port() == other.port());
    };
    if (!std::ranges::equal(served.where.listen, begun.where.listen, fits)) {
        throw HandoverError{
            fmt::format("the running twscope listens on other addresses{} ({} first); "
                        "restart it to change them",
                        there->name.empty() ? "" : " for " + there->name,
                        base::to_string(there->listen.front()))};
    }
    begun.listening =
        std::move(listening_[static_cast<std::size_t>(there - offer_.servers.data())]);
    taken_.push_back({.from = there, .number = number, .host_name = host_name(served.where)});
    return begun;
}

TakeoverState HandoverTaker::take(relay::Relay& relay) {
    TakeoverSelection selection;
    for (const Taken& each : taken_) {
        check_same(relay, each);
        auto servers = each.from->former;
        servers.push_back(each.from->server);
        relay.set_former_servers(std::move(servers), each.number);
        selection.servers.push_back(each.from->number);
    }
    listening_.clear(); // closes the sockets of servers that are not continued
    if (!link_.send(TakeoverMessage::ready, base::archived(selection), {}, in(kPatience))) {
        throw HandoverError{kEndedIt};
    }
    auto message = receive(TakeoverMessage::state);
    auto state = read<TakeoverState>(message);
    if (!std::ranges::equal(state.relay.servers, selection.servers, {},
                            &relay::ServerState::server)) {
        throw HandoverError{"the running twscope handed over other servers"};
    }
    for (relay::ServerState& server : state.relay.servers) {
        server.server = number_here(server.server);
    }
    for (relay::SessionState& session : state.relay.sessions) {
        session.server = number_here(session.server);
    }
    relay.take_over(state.relay, std::move(message.descriptors));
    std::ignore = link_.receive(base::Clock::now());
    if (link_.closed()) {
        throw HandoverError{kEndedIt};
    }
    return state;
}

ServerIndex HandoverTaker::number_here(ServerIndex there) const {
    const auto found = std::ranges::find_if(
        taken_, [there](const Taken& each) { return each.from->number == there; });
    if (found == taken_.end()) {
        throw HandoverError{"the running twscope handed over a session of another server"};
    }
    return found->number;
}

void HandoverTaker::confirm_forwarding() const {
    if (!link_.send(TakeoverMessage::going, in(kPatience))) {
        throw HandoverError{"the running twscope timed out"};
    }
}

std::optional<HandoverTaker::Left> HandoverTaker::left() {
    auto message = link_.receive(base::Clock::now());
    if (!message || message->kind != TakeoverMessage::left) {
        return std::nullopt;
    }
    try {
        Left left{.said = read<TakeoverLeft>(*message)};
        if (message->descriptors.size() == 1) {
            left.checkpoint = std::move(message->descriptors.front());
        }
        return left;
    } catch (const HandoverError&) {
        return std::nullopt;
    }
}

void HandoverTaker::report(const relay::Relay& relay, unsigned threads) const {
    // new servers have sockets in all threads
    std::size_t sets = taken_.size() < relay.next_server() ? threads : 0;
    for (const auto& [there, number, host] : taken_) {
        const base::Endpoint now = relay.server_endpoint(number);
        if (now != there->server) {
            spdlog::info("the server {} is now at {}; new sessions go there", host,
                         base::to_string(now));
        }
        sets = std::max(sets, there->listening_sockets / there->listen.size());
    }
    for (const TakeoverServer& there : offer_.servers) {
        if (std::ranges::find(taken_, &there, &Taken::from) == taken_.end()) {
            spdlog::warn("the server {} is no longer configured: its sessions end", there.name);
        }
    }
    if (sets < threads) {
        spdlog::warn(
            "{} of {} relay threads are idle: only a restart spreads the clients over more threads",
            threads - sets, threads);
    }
}

std::uint64_t own_network() {
    struct stat found {};

    return ::stat("/proc/self/ns/net", &found) == 0 ? found.st_ino : 0;
}

} // namespace tw::process
