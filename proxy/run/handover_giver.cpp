#include "proxy/run/handover_giver.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

namespace tw::run {

namespace {

using std::chrono::milliseconds;

/// For the first word: nobody may keep others from asking.
constexpr milliseconds kGreetingTime{1000};
/// For all that is slow: an observer that reads a folder of maps.
constexpr milliseconds kReadyTime{60'000};
/// Nobody forwards meanwhile. It takes a millisecond or two; more only where the other one hangs.
constexpr milliseconds kGiveTime{250};
/// For words that nobody has to wait for.
constexpr milliseconds kWordTime{50};

TakeoverLink::Time in(milliseconds time) {
    return relay::Clock::now() + time;
}

void refuse(const TakeoverLink& link, std::string_view why) {
    std::ignore =
        link.send(TakeoverWord::refusal, std::as_bytes(std::span{why}), {}, in(kWordTime));
}

} // namespace

HandoverGiver::HandoverGiver(Parts parts, TakeoverDoor door)
    : parts_{std::move(parts)}, door_{std::move(door)}, asked_{*parts_.io}, words_{*parts_.io},
      deadline_{*parts_.io} {}

void HandoverGiver::start() {
    boost::system::error_code error;
    asked_.assign(::dup(door_.descriptor()), error);
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
    words_.close(ignored);
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
    auto asker = door_.accept();
    if (!asker) {
        return;
    }
    if (!asker->is_trusted()) {
        spdlog::warn("a process of another user asked to take over; it was turned away");
        return;
    }
    if (stage_ != Stage::idle) {
        std::ignore = asker->send(TakeoverWord::busy, in(kWordTime));
        return;
    }
    link_ = std::move(asker);
    stage_ = Stage::greeting;
    set_deadline(kGreetingTime);
    boost::system::error_code error;
    words_.assign(::dup(link_->descriptor()), error);
    if (error) {
        refuse(*link_, error.message());
        give_up(error.message());
        return;
    }
    await_word();
}

void HandoverGiver::await_word() {
    words_.async_wait(boost::asio::posix::stream_descriptor::wait_read, [this](const auto& error) {
        if (!error && link_) {
            on_word();
        }
    });
}

void HandoverGiver::on_word() {
    const auto message = link_->receive(relay::Clock::now());
    if (message) {
        obey(*message);
    } else if (link_->closed()) {
        give_up("it has ended");
    }
    if (words_.is_open()) {
        await_word();
    }
}

void HandoverGiver::obey(const TakeoverLink::Message& message) {
    if (stage_ == Stage::greeting && message.word == TakeoverWord::hello) {
        try {
            const TakeoverGreeting greeting = read_greeting(message.body);
            if (greeting.version == TakeoverGreeting::kVersion) {
                offer();
                return;
            }
            refuse(*link_, fmt::format("the running twscope hands over in version {}, this one "
                                       "takes over in version {}; restart it instead",
                                       TakeoverGreeting::kVersion, greeting.version));
            give_up("it is of another version");
        } catch (const relay::HandoverError& error) {
            give_up(error.what());
        }
    } else if (stage_ == Stage::preparing && message.word == TakeoverWord::ready) {
        hand_over();
    } else if (stage_ == Stage::given && message.word == TakeoverWord::going) {
        stage_ = Stage::gone;
        door_.keep_file();
        parts_.given();
    } else {
        give_up("it said what was not to be said");
    }
}

void HandoverGiver::offer() {
    const auto listening = parts_.relay->listening_sockets();
    TakeoverOffer offer{.network = own_network(),
                        .listen = {},
                        .listening_sockets = static_cast<std::uint32_t>(listening.size()),
                        .server = parts_.relay->server_endpoint(),
                        .server_name = parts_.server_name,
                        .former = parts_.relay->former_servers(),
                        .mode = parts_.relay->client_address(),
                        .observer = parts_.observer()};
    for (const auto& endpoint : parts_.relay->listen_endpoints()) {
        offer.listen.push_back(relay::endpoint_from(endpoint.data()));
    }
    const int door = door_.descriptor();
    bool sent =
        link_->send(TakeoverWord::offer, written(offer), std::span{&door, 1}, in(kWordTime));
    for (std::size_t i = 0; i < listening.size() && sent; i += TakeoverLink::kMaxDescriptors) {
        const std::size_t count = std::min(listening.size() - i, TakeoverLink::kMaxDescriptors);
        sent = link_->send(TakeoverWord::listening, {}, std::span{listening}.subspan(i, count),
                           in(kWordTime));
    }
    if (!sent) {
        give_up("it does not listen");
        return;
    }
    spdlog::info("another twscope is about to take over");
    stage_ = Stage::preparing;
    set_deadline(kReadyTime);
}

void HandoverGiver::hand_over() {
    deadline_.cancel();
    const auto held_at = relay::Clock::now();
    const auto problem = give(held_at);
    if (!problem) {
        stage_ = Stage::given;
        return;
    }
    parts_.relay->resume();
    const std::chrono::duration<double, std::milli> held = relay::Clock::now() - held_at;
    give_up(fmt::format("{}; forwarding paused for {:.1f} ms", *problem, held.count()));
}

/// What went wrong, if anything did.
std::optional<std::string> HandoverGiver::give(TakeoverLink::Time held_at) {
    const auto deadline = held_at + kGiveTime;
    if (!parts_.relay->hold(kGiveTime)) {
        return "the relay was too busy";
    }
    if (!give_sessions(deadline)) {
        return "it did not take the sessions in time";
    }
    TakeoverRest rest{.held_at = held_at.time_since_epoch().count(),
                      .sessions = given_sessions_,
                      .numbered_sessions = parts_.numbered_sessions(),
                      .relay = {}};
    relay::write(rest.relay, parts_.relay->handover_state());
    if (!link_->send(TakeoverWord::rest, written(rest), {}, deadline)) {
        return "it did not take the totals in time";
    }
    const auto taken = link_->receive(deadline);
    if (!taken || taken->word != TakeoverWord::taken) {
        return link_->closed() ? "it has ended" : "it has fallen silent";
    }
    return link_->send(TakeoverWord::go, deadline) ? std::nullopt
                                                   : std::optional<std::string>{"it has ended"};
}

bool HandoverGiver::give_sessions(TakeoverLink::Time deadline) {
    SessionBatch batch;
    std::vector<std::byte> session;
    bool sent = true;
    const auto flush = [&] {
        sent = sent && (batch.sockets().empty() || link_->send(TakeoverWord::sessions, batch.body(),
                                                               batch.sockets(), deadline));
        batch.clear();
    };
    given_sessions_ = 0;
    parts_.relay->for_each_session([&](const relay::SessionState& state, int socket) {
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

void HandoverGiver::give_up(std::string_view why) {
    if (stage_ == Stage::given) {
        parts_.relay->resume(); // it never said that it forwards
    }
    spdlog::warn("nobody took over: {}; this twscope goes on", why);
    stage_ = Stage::idle;
    close_link();
}

void HandoverGiver::set_deadline(milliseconds patience) {
    deadline_.expires_after(patience);
    deadline_.async_wait([this](const auto& error) {
        if (!error && (stage_ == Stage::greeting || stage_ == Stage::preparing)) {
            give_up("it has fallen silent");
        }
    });
}

void HandoverGiver::close_link() {
    boost::system::error_code ignored;
    words_.close(ignored);
    deadline_.cancel();
    link_.reset();
}

void HandoverGiver::leave(const TakeoverLeft& left, int legacy) {
    const auto descriptors = legacy < 0 ? std::span<const int>{} : std::span<const int>{&legacy, 1};
    std::ignore = link_->send(TakeoverWord::left, written(left), descriptors, in(kWordTime));
}

} // namespace tw::run
