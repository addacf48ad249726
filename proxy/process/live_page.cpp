#include "proxy/process/live_page.h"

#include "proxy/base/clock.h"

#include <algorithm>
#include <exception>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace tw::process {

namespace {

record::ImpairedDirection to_impairment_record(const relay::DirectionImpairment& line) {
    constexpr double kThousand = 1000;
    record::ImpairedDirection direction{.delay_us = line.delay_us,
                                        .jitter_us = line.jitter_us,
                                        .loss_ppm = line.loss,
                                        .dup_ppm = line.duplicate,
                                        .reorder_ppm = line.reorder};
    if (line.burst != 0) {
        direction.burst = static_cast<double>(line.burst) / kThousand;
    }
    if (line.rate != 0) {
        direction.rate_bps = line.rate;
    }
    return direction;
}

} // namespace

ImpairmentControl::ImpairmentControl(channel::RelayAccess& relay, sink::Output* records,
                                     const sink::JsonOptions& options)
    : relay_{&relay}, records_{records}, options_{options} {
    if (const relay::Impairment impairment = relay.impairment(); impairment.is_active()) {
        write(impairment);
    }
}

tl::expected<std::string, std::string> ImpairmentControl::set_impairment(std::string_view text) {
    const std::scoped_lock lock{mutex_};
    if (finished_) {
        return tl::unexpected{std::string{"the run is over"}};
    }
    if (relay_->is_tap()) {
        return tl::unexpected{std::string{"a tap only observes: it has no line to impair"}};
    }
    const auto impairment = relay::parse_impairment(text, relay_->impairment().seed);
    if (!impairment) {
        return tl::unexpected{impairment.error()};
    }
    if (!relay_->set_impairment(*impairment)) {
        return tl::unexpected{std::string{"the relay cannot be reached; try again"}};
    }
    write(*impairment);
    return relay::to_string(*impairment);
}

void ImpairmentControl::on_segment(std::uint32_t number) {
    if (number <= segment_) {
        return;
    }
    segment_ = number;
    const std::scoped_lock lock{mutex_};
    if (const relay::Impairment impairment = relay_->impairment(); impairment.is_active()) {
        write_record(impairment, true);
    }
}

void ImpairmentControl::finish() {
    const std::scoped_lock lock{mutex_};
    finished_ = true;
}

void ImpairmentControl::write(const relay::Impairment& impairment) {
    const std::string settings = relay::to_string(impairment);
    if (impairment.is_active()) {
        spdlog::info("the line is impaired: {} (seed {})", settings, impairment.seed);
    } else {
        spdlog::info("the line is no longer impaired");
    }
    write_record(impairment, false);
}

void ImpairmentControl::write_record(const relay::Impairment& impairment, bool again) {
    const std::string settings = relay::to_string(impairment);
    if (records_ == nullptr) {
        return;
    }
    const record::ImpairmentRecord record{
        .head = {.time = base::now_utc()},
        .settings = settings,
        .seed = impairment.seed,
        .directions = {to_impairment_record(impairment.directions[0]),
                       to_impairment_record(impairment.directions[1])},
        .again = again};
    sink::JsonLines line{options_, *records_};
    line.on_record(&record);
    line.flush();
}

std::optional<std::array<record::ImpairmentStats, 2>>
impaired_totals(const relay::Counters& counters) {
    std::array<record::ImpairmentStats, 2> totals;
    std::uint64_t datagrams = 0;
    for (std::size_t i = 0; i < totals.size(); ++i) {
        const auto& fates = counters.impairment[i];
        totals[i] = {.datagrams = fates.datagrams,
                     .lost = fates.lost,
                     .rate_dropped = fates.rate_dropped,
                     .queue_full = fates.queue_full,
                     .duplicated = fates.duplicated,
                     .reordered = fates.reordered};
        datagrams += fates.datagrams;
    }
    return datagrams != 0 ? std::optional{totals} : std::nullopt;
}

void RelayHangDetector::update(Time now, const relay::ObserverSharedMemory& observation,
                               unsigned threads) {
    for (unsigned i = 0; i < threads; ++i) {
        const std::uint64_t iterations = observation.counters[i].loop_iterations.value();
        if (i >= num_threads_ || iterations != threads_[i].loop_iterations) {
            threads_[i] = {.loop_iterations = iterations, .last_progress = now};
        }
    }
    num_threads_ = threads;
}

bool RelayHangDetector::is_alive(Time now) const noexcept {
    return num_threads_ != 0 && std::all_of(threads_.begin(), threads_.begin() + num_threads_,
                                            [now](const Thread& thread) {
                                                return now - thread.last_progress <= kHangTime;
                                            });
}

namespace {

/// The longest time for which /readyz waits for a server's answer.
constexpr std::chrono::milliseconds kProbeTimeout{1000};
/// How long the result of a probe is reused, so that many HTTP requests do not cause many probes.
constexpr std::chrono::milliseconds kProbeReuseTime{250};

std::int64_t in_ms(base::Timestamp time) {
    constexpr std::int64_t kNanoseconds = 1'000'000;
    return time / kNanoseconds;
}

web::RelayState relay_state(const relay::Counters& counters) {
    return {counters, channel::num_open_sessions(counters)};
}

} // namespace

LivePage::LivePage(PageOptions options, Dependencies parts)
    : RecordPageData{*parts.mod}, parts_{std::move(parts)}, options_{std::move(options)},
      folders_{options_.recording_folders}, admin_{options_.admin, options_.listening, *this} {
    admin_.set_token(options_.token.value);
}

// NOLINTNEXTLINE(bugprone-exception-escape): a failing lock or join ends the process
LivePage::~LivePage() {
    admin_.stop();
}

void LivePage::start() {
    check_relay();
    admin_.start();
    for (const web::HttpAddress& where : admin_.server().addresses()) {
        log_address(where);
    }
}

void LivePage::log_address(const web::HttpAddress& where) const {
    if (!where.path.empty()) {
        spdlog::info("live page on unix:{}: only its user and root can open it, and may also "
                     "simulate a bad connection",
                     where.path);
        return;
    }
    const PageAddress page = options_.address(where);
    spdlog::info("live page on port {}: {}#token={} ({})", where.port, page.url,
                 options_.token.shell_text_for_log(options_.log_is_private),
                 page.reads_freely ? "without the token it is read-only"
                                   : "without the token it shows nothing");
    if (page.is_open) {
        spdlog::warn("anyone who can reach the live page sees the players' names and addresses");
    }
}

void LivePage::check_relay() {
    const std::scoped_lock lock{mutex_};
    liveness_.update(std::chrono::steady_clock::now(), parts_.relay->observation(),
                     parts_.relay->threads());
}

void LivePage::set_token(const PageToken& token) {
    options_.token = token;
    admin_.set_token(token.value);
}

void LivePage::set_silence(relay::ServerIndex server,
                           const std::optional<web::SilenceState>& silence) {
    const std::scoped_lock lock{mutex_};
    if (silence) {
        silence_[server] = *silence;
    } else {
        silence_.erase(server);
    }
}

inspect::FoundMap LivePage::map_of_session(std::uint32_t session) const {
    const auto maps = parts_.board->read_merged_view().maps;
    const auto found = maps.find(session);
    return found == maps.end() || !found->second ? inspect::FoundMap{}
                                                 : parts_.maps->loaded_map(*found->second);
}

bool LivePage::write_flight_data(std::uint32_t session) {
    if (session != 0 && !parts_.board->read_merged_view().maps.contains(session)) {
        return false;
    }
    parts_.write_flight_data(session);
    return true;
}

std::optional<std::string> LivePage::explain_finding(std::uint32_t session,
                                                     std::int64_t tick) const {
    const std::vector<web::FindingContext> contexts =
        parts_.board->read_merged_view().finding_contexts;
    const auto found =
        std::find_if(contexts.rbegin(), contexts.rend(), [&](const web::FindingContext& context) {
            return context.session == session && context.tick == tick;
        });
    return found == contexts.rend() || !options_.explain_finding
               ? std::nullopt
               : std::optional{options_.explain_finding(*found->lines, session, tick)};
}

web::RunState LivePage::state() const {
    web::RunState state{.version = TWSCOPE_VERSION,
                        .now_ms = in_ms(base::now_utc()),
                        .started_ms = in_ms(parts_.relay->start_time()),
                        .listen = {},
                        .server = parts_.relay->server_address(),
                        .impairment = parts_.impairment->settings_text(),
                        .observer = parts_.observer,
                        .inspecting = parts_.inspecting,
                        .relay = relay_state(parts_.relay->counters()),
                        .recording = {},
                        .view = parts_.board->read_merged_view()};
    add_servers(state);
    web::subtract_closed_sessions(state);
    state.recording.has_flight = static_cast<bool>(parts_.write_flight_data);
    if (parts_.recordings != nullptr) {
        parts_.recordings->stop_after_write_error();
        state.recording.page = parts_.recordings->state();
    }
    state.recording.bus = parts_.outputs->bus_totals();
    state.http_connections_rejected = admin_.server().rejected_connections();
    if (parts_.file != nullptr) {
        state.recording.output = parts_.file->path();
        state.recording.failed = parts_.file->failed();
        state.recording.lost = parts_.file->num_lost() + parts_.queue->num_dropped();
    }
    return state;
}

void LivePage::add_servers(web::RunState& state) const {
    const channel::RelayAccess& relay = *parts_.relay;
    const std::scoped_lock lock{mutex_};
    for (relay::ServerIndex i = 0; i < relay.num_servers(); ++i) {
        if (relay.is_removed(i)) {
            continue;
        }
        if (state.listen.empty()) { // server i is the first that is not removed
            state.server = relay.server_address(i);
        }
        std::vector<std::string> listen;
        for (const auto& endpoint : relay.listen_endpoints(i)) {
            listen.push_back(base::to_string(endpoint));
        }
        state.listen.insert(state.listen.end(), listen.begin(), listen.end());
        const auto silence = silence_.find(i);
        if (silence != silence_.end() && !state.server_silent) {
            state.server_silent = silence->second;
        }
        if (const std::string_view name = relay.server_name(i); !name.empty()) {
            state.servers.push_back({.name = std::string{name},
                                     .address = relay.server_address(i),
                                     .listen = std::move(listen),
                                     .silent = silence != silence_.end(),
                                     .relay = relay_state(relay.counters(i))});
        }
    }
}

web::Health LivePage::check_liveness() const {
    const std::scoped_lock lock{mutex_};
    return liveness_.is_alive(std::chrono::steady_clock::now())
               ? web::Health{.ok = true, .text = "ok"}
               : web::Health{.ok = false, .text = "the relay is not responding"};
}

void LivePage::check_readiness(std::function<void(web::Health)> done) {
    if (parts_.relay->is_tap()) { // a tap sends nothing
        done(check_liveness());
        return;
    }
    if (std::chrono::steady_clock::now() - probed_at_ < kProbeReuseTime) {
        return done(probe_result_);
    }
    waiting_.push_back(std::move(done));
    probe_servers();
}

/// Sends each server an info request through the relay. One answer proves that the relay forwards.
void LivePage::probe_servers() {
    const channel::RelayAccess& relay = *parts_.relay;
    const std::uint64_t before = relay.counters().directions[0].datagrams;
    std::vector<ServerProbe*> asked;
    for (relay::ServerIndex i = 0; i < relay.num_servers(); ++i) {
        if (!relay.is_removed(i)) {
            const auto where = reachable_address(base::to_asio(relay.listen_endpoints(i).front()));
            asked.push_back(
                &probes_.try_emplace(i, admin_.server().io(), where, kProbeTimeout).first->second);
        }
    }
    if (asked.empty()) {
        return finish_probe(false, before);
    }
    const auto silent = std::make_shared<std::size_t>(0);
    for (ServerProbe* const probe : asked) {
        probe->request([this, before, silent, all = asked.size()](bool answered) {
            *silent += answered ? 0 : 1;
            if (answered || *silent == all) {
                finish_probe(answered, before);
            }
        });
    }
}

void LivePage::finish_probe(bool answered, std::uint64_t datagrams_before) {
    const bool passed = parts_.relay->counters().directions[0].datagrams != datagrams_before;
    probe_result_ = check_liveness();
    if (probe_result_.ok && !answered) {
        probe_result_ = {.ok = false,
                         .text =
                             passed ? "the relay forwards datagrams, but the server does not answer"
                                    : "the relay forwards no datagrams"};
    }
    probed_at_ = std::chrono::steady_clock::now();
    for (const auto& done : std::exchange(waiting_, {})) {
        done(probe_result_);
    }
}

} // namespace tw::process
