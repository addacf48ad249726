#include "proxy/process/relay_run.h"

#include "proxy/base/endpoint.h"
#include "proxy/base/log.h"
#include "proxy/pipeline/pipeline.h"
#include "proxy/record/terminal_text.h"
#include "proxy/wire/client_trust.h"
#include "proxy/wire/connless.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

namespace tw::process {

namespace {

static_assert(std::is_trivially_copyable_v<wire::ClientTrustState>);
static_assert(sizeof(wire::ClientTrustState) <= sizeof(relay::RememberedHandshakes));

/// kStandings and kRequests map the values of wire::Trust and wire::ConnlessRequest to the relay's
/// own types. The relay does not depend on the protocol.
constexpr std::array kStandings{
    relay::ClientStanding::connless,          relay::ClientStanding::unrecognised,
    relay::ClientStanding::unverified,        relay::ClientStanding::verified,
    relay::ClientStanding::unverified_player, relay::ClientStanding::player};
static_assert(static_cast<std::size_t>(wire::Trust::player) + 1 == kStandings.size());
constexpr std::array kRequests{relay::RequestKind::none, relay::RequestKind::server_info,
                               relay::RequestKind::rare, relay::RequestKind::other};
static_assert(static_cast<std::size_t>(wire::ConnlessRequest::other) + 1 == kRequests.size());

wire::InfoRequest to_info_request(const relay::ClientQuestion& question) {
    return {.kind = static_cast<wire::InfoRequestKind>(question.kind), .token = question.token};
}

relay::ClientQuestion read_question(std::span<const std::byte> datagram) {
    const auto request = wire::read_info_request(datagram);
    return request ? relay::ClientQuestion{.kind = static_cast<std::uint8_t>(request->kind),
                                           .token = request->token}
                   : relay::ClientQuestion{};
}

relay::AnswerPartKind classify_answer(std::span<const std::byte> datagram,
                                      const relay::ClientQuestion& question) {
    const auto part = wire::classify_info_part(datagram, to_info_request(question));
    return !part                            ? relay::AnswerPartKind::none
           : *part == wire::InfoPart::first ? relay::AnswerPartKind::first
                                            : relay::AnswerPartKind::later;
}

std::size_t write_answer(std::span<const std::byte> part, const relay::ClientQuestion& question,
                         std::span<std::byte> out) {
    return wire::write_info_part(part, to_info_request(question), out);
}

/// The longest time that this run, when it ends, waits for the end of the relay from which it took
/// over.
constexpr std::chrono::milliseconds kPreviousRelayTimeout{500};

} // namespace

relay::DatagramVerdict judge_relayed_datagram(relay::RememberedHandshakes& memory,
                                              relay::Direction direction,
                                              std::span<const std::byte> datagram) {
    wire::ClientTrustState state;
    std::memcpy(&state, memory.bytes.data(), sizeof state);
    const wire::DatagramJudgement judgement = wire::judge_datagram(
        state, direction == relay::Direction::c2s ? wire::Direction::c2s : wire::Direction::s2c,
        datagram);
    std::memcpy(memory.bytes.data(), &state, sizeof state);
    return {.standing = kStandings[static_cast<std::size_t>(judgement.trust)],
            .request = kRequests[static_cast<std::size_t>(judgement.request)],
            .is_answered = judgement.is_answered,
            .shows_player = judgement.shows_player};
}

relay::AnswerFunctions info_answer_functions() {
    return {read_question, classify_answer, write_answer};
}

std::optional<std::string> NewClientReport::next_log_line(const relay::Counters& counters,
                                                          bool at_end) {
    seconds_ = std::min(seconds_ + 1, kMinSecondsBetweenLines + 1);
    if (seconds_ < kMinSecondsBetweenLines && !at_end) {
        return std::nullopt;
    }
    std::string text;
    const auto add = [&](std::uint64_t number, std::string_view why) {
        if (number != 0) {
            text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", number, why);
        }
    };
    for (const relay::NewClientCounterInfo& row : relay::new_client_counter_table()) {
        if (row.unit == relay::NewClientCounterUnit::datagrams) {
            const bool is_limit =
                row.value == &relay::NewClientTotals<std::uint64_t>::rejected_by_address_limit;
            add(counters.new_clients.*row.value - reported_.new_clients.*row.value,
                is_limit ? fmt::format("{}: {}", row.sentence, address_limit_) : row.sentence);
        }
    }
    add(counters.datagrams_without_session - reported_.datagrams_without_session,
        "no session is free");
    if (!text.empty()) {
        text.insert(0, "datagrams rejected at the door: ");
    }
    const std::uint64_t repeated = counters.repeated_answers - reported_.repeated_answers;
    reported_ = counters;
    if (repeated != 0) {
        text += fmt::format("{}requests answered with the server's last answer: {}",
                            text.empty() ? "" : "; ", repeated);
    }
    if (text.empty()) {
        return std::nullopt;
    }
    if (seconds_ <= kMinSecondsBetweenLines) {
        text += fmt::format(", in {} s", seconds_);
    }
    seconds_ = 0;
    return text;
}

RelayRun::RelayRun(RelayRunOptions options)
    : options_{std::move(options)}, shared_{options_.relay.threads,
                                            options_.is_inspected ? options_.ring_bytes : 0},
      client_report_{options_.address_limit} {
    std::vector<relay::Ring*> rings;
    rings_.reserve(options_.relay.threads);
    for (unsigned i = 0; i < options_.relay.threads && options_.is_inspected; ++i) {
        rings.push_back(&rings_.emplace_back(shared_.ring_memory(i)));
    }
    if (options_.servers.empty()) {
        options_.servers.push_back({.options = options_.relay.server});
    }
    if (options_.limits_new_clients) {
        options_.relay.judge_datagram = judge_relayed_datagram;
        options_.relay.answer_functions =
            options_.repeats_info_answers ? info_answer_functions() : relay::AnswerFunctions{};
    }
    if (options_.requester != nullptr) {
        options_.requester->check_servers(options_.servers);
    }
    auto [first, listening] = prepare_server(options_.requester, options_.servers.front(), 0);
    options_.relay.server = first;
    relay_.emplace(options_.relay, rings, &shared_.data().observer_memory, std::move(listening));
    servers_.emplace(*relay_, shared_.data(), options_.requester, options_.servers);
    shared_.data().facts.impairment = relay_->impairment();
    Supervisor::Dependencies parts{.shared = &shared_, .rings = rings_, .run = this};
    if (options_.requester != nullptr) {
        parts.previous_observer = options_.requester->offer().observer_number;
    }
    supervisor_.emplace(options_.supervision, std::move(parts));
}

void RelayRun::begin_forwarding() {
    relay_->start();
    started_ = std::chrono::steady_clock::now();
}

void RelayRun::take_over() {
    TakeoverRequester& requester = *options_.requester;
    const TakeoverState state = requester.take_sessions(*relay_);
    begin_forwarding();
    const auto paused =
        base::Clock::now().time_since_epoch() - base::Clock::duration{state.paused_at};
    if (options_.on_forwarding) {
        // This is called before the old relay ends. Otherwise, a service manager would treat the
        // end of the old relay as the end of the service.
        options_.on_forwarding();
    }
    requester.confirm_forwarding();
    const relay::Counters counters = relay_->counters();
    failed_sessions_reported_ = counters.datagrams_without_socket;
    std::ignore = client_report_.next_log_line(counters); // the old relay has logged these counts
    shared_.data().facts.impairment = relay_->impairment();
    shared_.data().last_recorded_session = state.last_recorded_session;
    std::size_t sessions = 0;
    for (const relay::HandedOverServer& server : state.relay.servers) {
        sessions += server.sessions.size();
    }
    log::info("took over {}; forwarding paused for {:.2f} ms",
              record::count_with_noun(sessions, "session[s]"),
              std::chrono::duration<double, std::milli>{paused}.count());
    requester.log_takeover_changes(*relay_, options_.relay.threads);
}

LiveRunResult RelayRun::forward_until_stopped() {
    if (options_.requester == nullptr) {
        begin_forwarding();
        if (options_.on_forwarding) {
            options_.on_forwarding();
        }
    }
    open_takeover_socket();
    if (options_.requester != nullptr) {
        // This relay's observer starts to inspect only after the old relay has ended, because the
        // observers of both relays write to the same files.
        previous_relay_.emplace(supervisor_->io()).start(options_.requester->descriptor(), [this] {
            start_observing();
        });
        awaits_previous_relay_ = true;
    } else if (responder_) {
        responder_->start();
    }
    supervisor_->run_until_stopped(started_);
    return finish_run();
}

void RelayRun::open_takeover_socket() {
    if (options_.takeover_file.empty()) {
        return;
    }
    auto takeover_socket = options_.requester != nullptr
                               ? std::optional{options_.requester->take_takeover_socket()}
                               : TakeoverSocket::open(options_.takeover_file);
    if (!takeover_socket) {
        log::info("this run cannot be taken over: {}: {}", options_.takeover_file.string(),
                  std::system_category().message(errno));
        return;
    }
    TakeoverResponder::Dependencies parts{.io = &supervisor_->io(), .relay = &*relay_};
    parts.example_client = options_.example_client;
    parts.on_handed_over = [this] { supervisor_->stop("another twscope has taken over"); };
    parts.relay_status = [this]() -> TakeoverResponder::RelayStatus {
        return {.servers = servers_->servers_for_takeover(),
                .observer_number = supervisor_->observer_number(),
                .observer_pid = supervisor_->observer_pid(),
                .last_recorded_session = shared_.data().last_recorded_session};
    };
    responder_.emplace(std::move(parts), std::move(*takeover_socket));
}

void RelayRun::start_observing() {
    previous_relay_->stop();
    awaits_previous_relay_ = false;
    base::UniqueFd checkpoint;
    if (auto report = options_.requester->receive_end_report()) {
        auto& last = shared_.data().last_recorded_session;
        last = std::max(last.load(), report->last_recorded_session);
        checkpoint = std::move(report->checkpoint);
    }
    supervisor_->send(channel::ControlMessage::start_inspecting, {}, checkpoint.get());
    supervisor_->open_and_send_page_sockets();
    if (responder_) {
        responder_->start();
    }
}

void RelayRun::on_second() {
    resync_limiter_.refill();
    log_rejected_datagrams();
    servers_->on_second(!supervisor_->has_observer());
}

void RelayRun::log_rejected_datagrams(bool at_end) {
    const relay::Counters counters = relay_->counters();
    if (const auto turned_away = client_report_.next_log_line(counters, at_end)) {
        log::warn("{}", *turned_away);
    }
    const std::uint64_t failed = counters.datagrams_without_socket;
    if (failed != failed_sessions_reported_) {
        log::warn("dropped {} of new clients: cannot open a socket to the server: {}",
                  record::count_with_noun(failed - failed_sessions_reported_, "datagram[s]"),
                  relay_->last_session_error().message());
        failed_sessions_reported_ = failed;
    }
}

void RelayRun::set_impairment(const relay::Impairment& impairment) {
    relay_->set_impairment(impairment);
    shared_.data().facts.impairment = impairment;
}

void RelayRun::request_full_snapshot(const std::string& session) {
    if (const auto number = resync_limiter_.accept_request(session)) {
        relay_->request_full_snapshot(*number);
    }
}

LiveRunResult RelayRun::finish_run() {
    const bool handed_over = responder_ && responder_->has_handed_over();
    if (responder_) {
        responder_->stop();
    }
    if (handed_over) {
        relay_->stop_for_takeover(responder_->servers_not_continued());
    } else {
        relay_->stop();
    }
    relay_->join();
    log_rejected_datagrams(true);
    if (awaits_previous_relay_) {
        pollfd ended{.fd = options_.requester->descriptor(), .events = POLLIN, .revents = 0};
        std::ignore = ::poll(&ended, 1, static_cast<int>(kPreviousRelayTimeout.count()));
        start_observing();
    }
    base::UniqueFd checkpoint;
    if (handed_over && supervisor_->observer_pid() != 0) {
        checkpoint = pipeline::create_checkpoint_file();
        if (checkpoint.valid()) {
            supervisor_->send(channel::ControlMessage::save_checkpoint, {}, checkpoint.get());
        }
    }
    if (!supervisor_->has_observer()) {
        const relay::Counters counters = relay_->counters();
        log::info("{}, {} to the server, {} to clients",
                  record::count_with_noun(counters.sessions_opened, "session[s]"),
                  record::count_with_noun(counters.directions[0].datagrams, "datagram[s]"),
                  counters.directions[1].datagrams);
    }
    const LiveRunResult result = supervisor_->finish_run();
    if (handed_over) {
        responder_->report_end(shared_.data().last_recorded_session, checkpoint.get());
    }
    return result;
}

} // namespace tw::process
