#include "proxy/process/live_page.h"

#include "proxy/base/clock.h"
#include "proxy/base/log.h"

#include <algorithm>
#include <utility>

#include <boost/asio/ip/address.hpp>
#include <fmt/format.h>

namespace tw::process {

namespace {

record::ImpairedDirection to_impairment_record(const relay::DirectionImpairment& settings) {
    constexpr double kThousand = 1000;
    record::ImpairedDirection direction{.delay_us = settings.delay_us,
                                        .jitter_us = settings.jitter_us,
                                        .loss_ppm = settings.loss_ppm,
                                        .dup_ppm = settings.duplicate_ppm,
                                        .reorder_ppm = settings.reorder_ppm};
    if (settings.burst_thousandths != 0) {
        direction.burst = static_cast<double>(settings.burst_thousandths) / kThousand;
    }
    if (settings.bits_per_second != 0) {
        direction.rate_bps = settings.bits_per_second;
    }
    return direction;
}

/// The longest time for which /readyz waits for a server's answer.
constexpr std::chrono::milliseconds kProbeTimeout{1000};
/// How long the result of a probe is reused, so that many HTTP requests do not cause many probes.
constexpr std::chrono::milliseconds kProbeReuseTime{250};

void log_page_address(const web::HttpAddress& where, const PageOptions& options,
                      std::string_view page, bool allows_changes) {
    if (!where.path.empty()) {
        log::info("{} on unix:{}{}", page, where.path,
                  allows_changes ? ": only its user and root can open it, and may also simulate a "
                                   "bad connection"
                                 : "");
        return;
    }
    const auto address = boost::asio::ip::make_address(where.address);
    const bool is_open = !address.is_loopback() && options.access.network_may_read;
    const bool reads_freely = address.is_loopback() || is_open;
    const auto& hosts = options.access.hosts;
    const std::string host = !hosts.empty() && !address.is_loopback() ? hosts.front()
                             : address.is_unspecified()               ? "localhost"
                             : address.is_v6() ? fmt::format("[{}]", where.address)
                                               : where.address;
    const std::string token = options.token.shell_text_for_log(options.is_log_on_terminal);
    log::info("{0} on port {1}: http://{2}:{1}/{3}", page, where.port, host,
              !allows_changes && reads_freely
                  ? ""
                  : fmt::format("{} (without the token{} it {})",
                                token.empty() ? "" : "#token=" + token,
                                token.empty() ? ", which needs a writable state folder," : "",
                                reads_freely ? "is read-only" : "shows nothing"));
    if (is_open) {
        log::warn("anyone who can reach the {} sees the players' names and addresses", page);
    }
}

web::RelayState relay_state(const relay::Counters& counters) {
    return {counters, channel::num_open_sessions(counters)};
}

} // namespace

ImpairmentControl::ImpairmentControl(const channel::RelayFacts& facts, SendRequest send_request,
                                     sink::Output* records, const sink::JsonOptions& options)
    : is_tap_{facts.is_tap()}, send_request_{std::move(send_request)}, records_{records},
      options_{options}, impairment_{facts.impairment} {
    if (impairment_.is_active()) {
        log_and_record_settings();
    }
}

std::string ImpairmentControl::settings_text() const {
    const std::scoped_lock lock{mutex_};
    return relay::to_string(impairment_);
}

tl::expected<std::string, std::string> ImpairmentControl::set_impairment(std::string_view text) {
    const std::scoped_lock lock{mutex_};
    if (rejects_changes_) {
        return tl::unexpected{std::string{"the run is over"}};
    }
    if (is_tap_) {
        return tl::unexpected{std::string{"a tap only observes: it cannot impair the network"}};
    }
    const auto impairment = relay::parse_impairment(text, impairment_.seed);
    if (!impairment) {
        return tl::unexpected{impairment.error()};
    }
    std::string settings = relay::to_string(*impairment);
    if (!send_request_(settings)) {
        return tl::unexpected{std::string{"the relay cannot be reached; try again"}};
    }
    impairment_ = *impairment;
    log_and_record_settings();
    return settings;
}

void ImpairmentControl::on_segment(std::uint32_t number) {
    if (number <= segment_) {
        return;
    }
    segment_ = number;
    const std::scoped_lock lock{mutex_};
    if (impairment_.is_active()) {
        write_settings_record(true);
    }
}

void ImpairmentControl::reject_further_changes() {
    const std::scoped_lock lock{mutex_};
    rejects_changes_ = true;
}

void ImpairmentControl::log_and_record_settings() {
    if (impairment_.is_active()) {
        log::info("the network is impaired: {} (seed {})", relay::to_string(impairment_),
                  impairment_.seed);
    } else {
        log::info("the network is no longer impaired");
    }
    write_settings_record(false);
}

void ImpairmentControl::write_settings_record(bool is_repetition) {
    if (records_ == nullptr) {
        return;
    }
    const std::string settings = relay::to_string(impairment_);
    const record::ImpairmentRecord record{
        .head = {.time = base::now_utc()},
        .settings = settings,
        .seed = impairment_.seed,
        .directions = {to_impairment_record(impairment_.directions[0]),
                       to_impairment_record(impairment_.directions[1])},
        .again = is_repetition};
    records_->write(sink::json_line(&record, options_));
}

std::optional<std::array<record::ImpairmentStats, 2>>
make_impairment_stats(const relay::Counters& counters) {
    std::array<record::ImpairmentStats, 2> totals;
    std::uint64_t datagrams = 0;
    for (std::size_t i = 0; i < totals.size(); ++i) {
        const auto& counted = counters.impairment[i];
        totals[i] = {.datagrams = counted.datagrams,
                     .lost = counted.dropped_by_chance,
                     .rate_dropped = counted.dropped_by_rate,
                     .queue_full = counted.dropped_by_full_queue,
                     .duplicated = counted.duplicated,
                     .reordered = counted.reordered};
        datagrams += counted.datagrams;
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
                                            [now](const ThreadProgress& thread) {
                                                return now - thread.last_progress <= kHangTime;
                                            });
}

void start_page(web::AdminServer& server, const PageOptions& options, std::string_view page,
                bool allows_changes) {
    server.start();
    for (const web::HttpAddress& where : server.server().addresses()) {
        log_page_address(where, options, page, allows_changes);
    }
}

LivePage::LivePage(PageOptions options, Dependencies parts)
    : RecordPageData{*parts.mod}, parts_{std::move(parts)}, options_{std::move(options)},
      folders_{options_.recording_folders}, admin_{options_.access, options_.listening, *this} {
    admin_.set_token(options_.token.value);
}

void LivePage::start() {
    check_relay_threads();
    start_page(admin_, options_, "live page", true);
}

void LivePage::check_relay_threads() {
    const std::scoped_lock lock{mutex_};
    hang_detector_.update(std::chrono::steady_clock::now(), parts_.shared->observer_memory,
                          parts_.shared->facts.threads);
}

void LivePage::set_token(const PageToken& token) {
    options_.token = token;
    admin_.set_token(token.value);
}

void LivePage::set_silence(relay::ServerIndex server,
                           const std::optional<web::ServerSilence>& silence) {
    const std::scoped_lock lock{mutex_};
    if (silence) {
        silence_[server] = *silence;
    } else {
        silence_.erase(server);
    }
}

inspect::MapSearchResult LivePage::map_of_session(std::uint32_t session) const {
    const auto maps = parts_.feed->read_merged_view().maps;
    const auto found = maps.find(session);
    return found == maps.end() || !found->second ? inspect::MapSearchResult{}
                                                 : parts_.maps->find_loaded_map(*found->second);
}

bool LivePage::write_flight_recording(std::uint32_t session) {
    if (session != 0 && !parts_.feed->read_merged_view().maps.contains(session)) {
        return false;
    }
    parts_.write_flight_recording(session);
    return true;
}

std::optional<std::string> LivePage::explain_finding(std::uint32_t session,
                                                     std::int64_t tick) const {
    const std::vector<web::FindingContext> contexts =
        parts_.feed->read_merged_view().finding_contexts;
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
                        .now_ms = base::to_unix_ms(base::now_utc()),
                        .started_ms = base::to_unix_ms(parts_.shared->facts.started),
                        .listen = {},
                        .server = parts_.shared->facts.server_address(),
                        .impairment = parts_.impairment->settings_text(),
                        .observer_number = parts_.observer,
                        .is_inspecting = parts_.is_inspecting,
                        .relay = relay_state(relay::totals(parts_.shared->observer_memory)),
                        .recording = {},
                        .view = parts_.feed->read_merged_view()};
    add_servers(state);
    web::subtract_counts_of_closed_sessions(state);
    state.recording.has_flight_recorder = static_cast<bool>(parts_.write_flight_recording);
    if (parts_.recordings != nullptr) {
        parts_.recordings->stop_after_write_error();
        state.recording.page = parts_.recordings->state();
    }
    state.recording.bus = parts_.outputs->bus_totals();
    state.rejected_http_connections = admin_.server().num_rejected_connections();
    state.recording.written_bytes = written_bytes();
    if (parts_.file != nullptr) {
        state.recording.output = parts_.file->path();
        state.recording.error = parts_.file->failed() ? parts_.file->error_text() : "";
        state.recording.lost =
            parts_.file->num_lost_entries() + parts_.queue->num_dropped_entries();
    }
    return state;
}

std::uint64_t LivePage::written_bytes() const {
    std::uint64_t bytes = 0;
    for (const store::OutputFile* const file : {parts_.file, parts_.capture}) {
        bytes += file == nullptr ? 0 : file->state.written_bytes.load();
    }
    const std::scoped_lock lock{mutex_};
    return written_bytes_ = std::max(written_bytes_, bytes);
}

void LivePage::add_servers(web::RunState& state) const {
    const channel::RelayFacts& facts = parts_.shared->facts;
    const auto servers = facts.added_servers();
    const std::scoped_lock lock{mutex_};
    for (relay::ServerIndex i = 0; i < servers.size(); ++i) {
        if (servers[i].removed) {
            continue;
        }
        if (state.listen.empty()) { // server i is the first that is not removed
            state.server = facts.server_address(i);
        }
        std::vector<std::string> listen;
        for (const auto& endpoint : servers[i].listen_endpoints()) {
            listen.push_back(base::to_string(endpoint));
        }
        state.listen.insert(state.listen.end(), listen.begin(), listen.end());
        const auto silence = silence_.find(i);
        if (silence != silence_.end() && !state.server_silence) {
            state.server_silence = silence->second;
        }
        if (const std::string_view name = servers[i].name_view(); !name.empty()) {
            state.servers.push_back(
                {.name = std::string{name},
                 .address = facts.server_address(i),
                 .listen = std::move(listen),
                 .is_silent = silence != silence_.end(),
                 .relay = relay_state(relay::totals_of(parts_.shared->observer_memory, i))});
        }
    }
}

web::Health LivePage::check_liveness() const {
    const std::scoped_lock lock{mutex_};
    return hang_detector_.is_alive(std::chrono::steady_clock::now())
               ? web::Health{.ok = true, .text = "ok"}
               : web::Health{.ok = false, .text = "the relay is not responding"};
}

void LivePage::check_readiness(std::function<void(web::Health)> done) {
    if (parts_.shared->facts.is_tap()) { // a tap sends nothing
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
    const auto servers = parts_.shared->facts.added_servers();
    const std::uint64_t before =
        relay::totals(parts_.shared->observer_memory).directions[0].datagrams;
    std::vector<ServerProbe*> asked;
    for (relay::ServerIndex i = 0; i < servers.size(); ++i) {
        if (!servers[i].removed) {
            const auto where =
                reachable_address(base::to_asio_endpoint(servers[i].listen_endpoints().front()));
            asked.push_back(
                &probes_.try_emplace(i, admin_.io(), where, kProbeTimeout).first->second);
        }
    }
    if (asked.empty()) {
        return finish_probe(false, before);
    }
    const auto silent = std::make_shared<std::size_t>(0);
    for (ServerProbe* const probe : asked) {
        probe->request_info([this, before, silent, all = asked.size()](bool answered) {
            *silent += answered ? 0 : 1;
            if (answered || *silent == all) {
                finish_probe(answered, before);
            }
        });
    }
}

void LivePage::finish_probe(bool answered, std::uint64_t datagrams_before) {
    const bool passed =
        relay::totals(parts_.shared->observer_memory).directions[0].datagrams != datagrams_before;
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
