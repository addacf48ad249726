#include "proxy/process/handover_giver.h"

#include "proxy/process/signals.h"
#include "proxy/record/terminal_text.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

namespace tw::process {

namespace {

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

TakeoverLink::Time in(milliseconds time) {
    return base::Clock::now() + time;
}

void refuse(const TakeoverLink& link, std::string_view why) {
    std::ignore =
        link.send(TakeoverMessage::refusal, std::as_bytes(std::span{why}), {}, in(kWordTime));
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
    if (!asker->is_trusted() || asker->is_of(parts_.observer_process())) {
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
        refuse(*link_, error.message());
        give_up(error.message());
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
        give_up("it has ended");
    }
    if (messages_.is_open()) {
        await_message();
    }
}

void HandoverGiver::handle(const TakeoverLink::Message& message) {
    if (stage_ == Stage::greeting && message.word == TakeoverMessage::hello) {
        try {
            const TakeoverHello greeting = read_hello(message.body);
            if (greeting.version == TakeoverHello::kVersion) {
                offer();
                return;
            }
            refuse(*link_, fmt::format("the running twscope uses takeover version {}, this one "
                                       "version {}; restart it instead",
                                       TakeoverHello::kVersion, greeting.version));
            give_up("it uses another version");
        } catch (const relay::HandoverError& error) {
            give_up(error.what());
        }
    } else if (stage_ == Stage::preparing && message.word == TakeoverMessage::ready) {
        try {
            hand_over(read_selection(message.body));
        } catch (const relay::HandoverError& error) {
            give_up(error.what());
        }
    } else if (stage_ == Stage::given && message.word == TakeoverMessage::going) {
        stage_ = Stage::gone;
        takeover_socket_.keep_file();
        tell_of_let_go();
        parts_.given();
    } else {
        give_up("it sent an unexpected message");
    }
}

void HandoverGiver::offer() {
    offered_ = parts_.servers();
    const TakeoverOffer offered{.network = own_network(),
                                .servers = static_cast<std::uint32_t>(offered_.size()),
                                .observer = parts_.observer()};
    const int descriptor = takeover_socket_.descriptor();
    const bool sent =
        link_->send(TakeoverMessage::offer, written(offered), std::span{&descriptor, 1},
                    in(kWordTime)) &&
        std::ranges::all_of(offered_, [this](const Served& server) { return offer(server); });
    if (!sent) {
        give_up("it did not accept the offer");
        return;
    }
    spdlog::info("another twscope is starting a takeover");
    stage_ = Stage::preparing;
    set_deadline(kReadyTime);
}

/// Sends a server's description and its listening sockets. Returns false if the peer does not
/// receive them.
bool HandoverGiver::offer(const Served& server) const {
    const auto listening = parts_.relay->listening_sockets(server.number);
    TakeoverServer offered{.number = server.number,
                           .name = server.name,
                           .listening_sockets = static_cast<std::uint32_t>(listening.size()),
                           .server = parts_.relay->server_endpoint(server.number),
                           .host_name = server.host_name,
                           .former = parts_.relay->former_servers(server.number),
                           .mode = parts_.relay->client_address(server.number)};
    for (const auto& endpoint : parts_.relay->listen_endpoints(server.number)) {
        offered.listen.push_back(base::endpoint_from(endpoint.data()));
    }
    bool sent = link_->send(TakeoverMessage::server, written(offered), {}, in(kWordTime));
    for (std::size_t i = 0; i < listening.size() && sent; i += TakeoverLink::kMaxDescriptors) {
        const std::size_t count = std::min(listening.size() - i, TakeoverLink::kMaxDescriptors);
        sent = link_->send(TakeoverMessage::listening, {}, std::span{listening}.subspan(i, count),
                           in(kWordTime));
    }
    return sent;
}

/// Returns why these servers cannot be handed over; nullopt if they can.
std::optional<std::string> HandoverGiver::objection_to(const TakeoverSelection& selection) const {
    const auto now = parts_.servers();
    if (!std::ranges::equal(now, offered_, {}, &Served::number, &Served::number)) {
        return "the running twscope's servers have changed in the meantime; try again";
    }
    const auto offers = [this](relay::ServerIndex server) {
        return std::ranges::find(offered_, server, &Served::number) != offered_.end();
    };
    const std::set<relay::ServerIndex> different{selection.servers.begin(),
                                                 selection.servers.end()};
    if (different.size() != selection.servers.size() || !std::ranges::all_of(different, offers)) {
        return "it requested servers that it was not offered";
    }
    return std::nullopt;
}

void HandoverGiver::hand_over(const TakeoverSelection& selection) {
    deadline_.cancel();
    if (const auto why = objection_to(selection)) {
        refuse(*link_, *why);
        give_up(*why);
        return;
    }
    let_go_.clear();
    for (const Served& server : offered_) {
        if (std::ranges::find(selection.servers, server.number) == selection.servers.end()) {
            let_go_.push_back(server.number);
        }
    }
    const auto held_at = base::Clock::now();
    const auto problem = give(selection, held_at);
    if (!problem) {
        stage_ = Stage::given;
        set_deadline(kGoTime);
        return;
    }
    parts_.relay->resume();
    const std::chrono::duration<double, std::milli> held = base::Clock::now() - held_at;
    give_up(fmt::format("{}; forwarding paused for {:.1f} ms", *problem, held.count()));
}

/// Hands over the sessions and the state. Returns the error; nullopt on success.
std::optional<std::string> HandoverGiver::give(const TakeoverSelection& selection,
                                               TakeoverLink::Time held_at) {
    const auto deadline = held_at + kGiveTime;
    if (!parts_.relay->hold(kGiveTime)) {
        return "the relay was too busy";
    }
    if (!give_sessions(deadline)) {
        return "it did not accept the sessions in time";
    }
    if (!give_totals(selection, deadline)) {
        return "it did not accept the totals in time";
    }
    TakeoverRest rest{.held_at = held_at.time_since_epoch().count(),
                      .sessions = given_sessions_,
                      .numbered_sessions = parts_.numbered_sessions(),
                      .relay = {}};
    relay::write(rest.relay, parts_.relay->handover_state());
    if (!link_->send(TakeoverMessage::rest, written(rest), {}, deadline)) {
        return "it did not accept the totals in time";
    }
    const auto taken = link_->receive(deadline);
    if (!taken || taken->word != TakeoverMessage::taken) {
        return link_->closed() ? "it has ended" : "it has stopped responding";
    }
    return link_->send(TakeoverMessage::go, deadline) ? std::nullopt
                                                      : std::optional<std::string>{"it has ended"};
}

bool HandoverGiver::give_sessions(TakeoverLink::Time deadline) {
    SessionBatch batch;
    std::vector<std::byte> session;
    bool sent = true;
    const auto flush = [&] {
        sent = sent &&
               (batch.sockets().empty() ||
                link_->send(TakeoverMessage::sessions, batch.body(), batch.sockets(), deadline));
        batch.clear();
    };
    given_sessions_ = 0;
    ended_sessions_ = 0;
    parts_.relay->for_each_session([&](const relay::SessionState& state, int socket) {
        if (std::ranges::find(let_go_, state.server) != let_go_.end()) {
            ended_sessions_ += state.has_place ? 1 : 0;
            return;
        }
        session.clear();
        relay::write(session, state);
        ++given_sessions_;
        if (sent && !batch.add(session, socket)) {
            flush();
            std::ignore = batch.add(session, socket);
        }
    });
    flush();
    return sent;
}

bool HandoverGiver::give_totals(const TakeoverSelection& selection,
                                TakeoverLink::Time deadline) const {
    std::vector<std::byte> totals;
    return std::ranges::all_of(selection.servers, [&](relay::ServerIndex server) {
        totals.clear();
        relay::write(totals, parts_.relay->handover_state(server));
        return link_->send(TakeoverMessage::totals, totals, {}, deadline);
    });
}

/// Logs which servers do not continue, and how many sessions end.
void HandoverGiver::tell_of_let_go() const {
    if (let_go_.empty()) {
        return;
    }
    std::vector<std::string_view> names;
    for (const Served& server : offered_) {
        if (std::ranges::find(let_go_, server.number) != let_go_.end()) {
            names.push_back(server.name);
        }
    }
    spdlog::warn("the new twscope has no server {}: {}", fmt::join(names, ", "),
                 record::counted(ended_sessions_, "session[s] [ends|end]"));
}

void HandoverGiver::give_up(std::string_view why) {
    if (stage_ == Stage::given) { // the new relay never confirmed that it forwards
        parts_.relay->resume();
        notify_ready(); // the service manager may take the new process for the service by now
    }
    if (stage_ != Stage::greeting ||
        !link_->closed()) { // a peer that only checked for a running relay sends nothing
        spdlog::warn("takeover failed: {}; this twscope carries on", why);
    }
    stage_ = Stage::idle;
    close_link();
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
        give_up("it has stopped responding");
    }
}

void HandoverGiver::close_link() {
    boost::system::error_code ignored;
    messages_.close(ignored);
    deadline_.cancel();
    link_.reset();
}

void HandoverGiver::leave(const TakeoverLeft& left, int checkpoint) {
    const auto descriptors =
        checkpoint < 0 ? std::span<const int>{} : std::span<const int>{&checkpoint, 1};
    std::ignore = link_->send(TakeoverMessage::left, written(left), descriptors, in(kWordTime));
}

} // namespace tw::process
