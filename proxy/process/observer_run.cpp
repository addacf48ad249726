#include "proxy/process/observer_run.h"

#include "proxy/base/log.h"
#include "proxy/process/observer_process.h"
#include "proxy/record/terminal_text.h"

#include <new>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace tw::process {

namespace {

/// Returns the item sizes that the observers of this run have learned. They are in shared memory,
/// so that a restarted observer can use them.
inspect::LearnedSizeTable& learned_sizes(channel::SharedProcessData& process_data) {
    using inspect::LearnedSizeTable;
    static_assert(sizeof(LearnedSizeTable) <= sizeof(process_data.learned_sizes) &&
                  alignof(LearnedSizeTable) <= 64 &&
                  std::is_trivially_destructible_v<LearnedSizeTable>);
    // Zeroed memory is a valid empty table. All observers run the same program, so the layout is
    // the same.
    return *std::launder(reinterpret_cast<LearnedSizeTable*>(process_data.learned_sizes.data()));
}

/// Prints lines to `out`, wrapped at `columns` columns.
void print_lines(std::FILE* out, const std::vector<std::string>& lines,
                 std::size_t columns = std::string::npos) {
    for (const std::string& line : lines) {
        fmt::print(out, "{}\n", sink::wrap_words(line, columns));
    }
}

} // namespace

ObserverRun::ObserverRun(ObserverOptions options, ObserverChannel observer_channel)
    : options_{std::move(options)}, number_{observer_channel.number},
      waits_for_previous_{observer_channel.waits_for_previous},
      link_{std::move(observer_channel.link)}, shared_{std::move(observer_channel.memory)},
      memory_{options_.config.memory_bytes -
              (options_.config.flight ? options_.config.flight->bytes : 0)},
      maps_{options_.map_folders,
            {.cache = options_.map_cache,
             .memory = &memory_,
             .includes_file_bytes =
                 options_.config.demos || options_.config.page_recordings || options_.page}},
      written_{shared_.data().record_bytes} {
    options_.config.inspect.learned_sizes = &learned_sizes(shared_.data());
    options_.config.inspect.memory_budget = &memory_;
    pipeline::WorkerOutputs outputs = open_outputs();
    if (options_.writes_worlds() || (feed_ && options_.inspect)) {
        outputs.worlds = &worlds_.emplace(options_.config, outputs);
    }
    for (unsigned i = 0; i < outputs.num_workers && options_.inspect; ++i) {
        const pipeline::RingInput own{shared_.ring_memory(i), number_, &shared_.data().facts};
        workers_.push_back(std::make_unique<pipeline::Worker>(
            options_.config, outputs, maps_, own, shared_.data().last_recorded_session, i));
    }
    messages_.start(link_.descriptor(), [this] { on_messages(); });
}

pipeline::WorkerOutputs ObserverRun::open_outputs() {
    pipeline::WorkerOutputs outputs{.num_workers = shared_.num_threads()};
    const unsigned workers = options_.inspect ? outputs.num_workers : 0;
    if (options_.records_file != nullptr) {
        const unsigned merging = options_.writes_worlds() ? 1 : 0;
        records_.emplace(*options_.records_file, workers + merging, &shared_.data().record_bytes);
    }
    lines_.set_outputs(options_.bus, records_ ? &*records_ : nullptr, shared_.data().record_bytes);
    outputs.records = lines_.line_output();
    if (options_.capture != nullptr) {
        capture_.emplace(*options_.capture, workers, &shared_.data().record_bytes);
        outputs.capture = &capture_->queue();
    }
    written_.create_queues(options_.config, outputs);
    if (options_.console != nullptr && options_.inspect) {
        outputs.console = &console_.emplace(options_.console->console_style());
    }
    if (options_.page) {
        outputs.feed = &feed_.emplace(outputs.num_workers);
    }
    if (options_.requests_full_snapshots) {
        outputs.request_full_snapshot = [this](std::uint32_t session) {
            return link_.send(channel::ControlMessage::request_full_snapshot,
                              std::to_string(session));
        };
    }
    return outputs;
}

void ObserverRun::open_page() {
    LivePage::Dependencies parts{.shared = &shared_.data(),
                                 .impairment = &*impairment_,
                                 .feed = &*feed_,
                                 .maps = &maps_,
                                 .mod = options_.config.mod,
                                 .observer = number_,
                                 .file = options_.records_file,
                                 .capture = options_.capture,
                                 .queue = records_ ? &records_->queue() : nullptr,
                                 .outputs = &lines_,
                                 .recordings = written_.page_recordings(),
                                 .is_inspecting = options_.inspect};
    if (written_.flight_recorder_queue() != nullptr) {
        parts.write_flight_recording = [this](std::uint32_t session) {
            write_flight_recording(session);
        };
    }
    options_.page->token = token_.value_or(std::move(options_.page->token));
    page_.emplace(*std::move(options_.page), std::move(parts));
    page_->start();
}

void ObserverRun::begin_inspecting() {
    const auto send = [this](const std::string& settings) {
        return link_.send(channel::ControlMessage::impairment, settings);
    };
    impairment_.emplace(shared_.data().facts, send, lines_.line_output(), options_.config.json);
    for (const auto& worker : workers_) {
        worker->start();
    }
}

void ObserverRun::follow_previous_observer(const base::UniqueFd& checkpoint) {
    if (!std::exchange(waits_for_previous_, false)) {
        return;
    }
    if (checkpoint.valid()) {
        checkpoints_ = pipeline::read_checkpoints(checkpoint.get());
        log::info("resuming {} from the previous observer",
                  record::count_with_noun(checkpoints_.size(), "session[s]"));
    }
    for (store::OutputFile* const file : {options_.records_file, options_.capture}) {
        if (file != nullptr) {
            file->request_repair();
        }
    }
    for (const auto& worker : workers_) {
        worker->set_previous_checkpoints(checkpoints_);
    }
    begin_inspecting();
}

ObserverResult ObserverRun::inspect_until_stopped() {
    if (!link_.send(channel::ControlMessage::ready)) {
        throw std::runtime_error{"cannot tell the relay that everything is open"};
    }
    if (!waits_for_previous_) {
        begin_inspecting();
    }
    run_time_ = shown_ = base::Stopwatch{};
    second_timer_.expires_at(std::chrono::steady_clock::now());
    await_next_second();
    io_.run();
    return finish_outputs();
}

void ObserverRun::on_messages() {
    while (auto message = link_.receive()) {
        handle_message(*message);
    }
    if (link_.is_closed()) {
        // If this observer still waits, the takeover was rejected, and there is no recording.
        if (!waits_for_previous_) {
            log::warn("forwarding has stopped; finishing the recording");
        }
        stop();
    }
}

void ObserverRun::handle_message(channel::ProcessLink::Message& message) {
    switch (message.kind) {
    case channel::ControlMessage::reopen_outputs:
        for (store::OutputFile* const file :
             {options_.records_file, options_.capture, options_.summary}) {
            if (file != nullptr) {
                file->request_reopening();
            }
        }
        // Only this thread writes the summary, so it can reopen the file here.
        if (options_.summary != nullptr) {
            options_.summary->do_due_work(store::OutputFile::Clock::now());
            pipeline::log_reopening_error(*options_.summary);
        }
        break;
    case channel::ControlMessage::impairment:
        if (!impairment_) {
            log::warn("simulation not changed; try again in a second");
        } else if (const auto done = impairment_->set_impairment(message.text); !done) {
            log::warn("simulation not changed: {}", done.error());
        }
        break;
    case channel::ControlMessage::log_level:
        log::set_level(message.text);
        break;
    case channel::ControlMessage::page_token:
        token_ = token_from_message(message.text);
        if (page_) {
            page_->set_token(*token_);
        }
        break;
    case channel::ControlMessage::page_socket: {
        auto& listening = options_.page->listening;
        listening.emplace_back(options_.page_addresses[listening.size()],
                               std::move(message.descriptor));
        if (listening.size() == options_.page_addresses.size()) {
            open_page();
        }
        break;
    }
    case channel::ControlMessage::write_summaries:
        for (const auto& worker : workers_) {
            worker->request_summaries();
        }
        log::info("writing a summary of every open session to the records");
        break;
    case channel::ControlMessage::write_flight_recording:
        write_flight_recording(0);
        break;
    case channel::ControlMessage::finish:
        stop();
        break;
    case channel::ControlMessage::save_checkpoint:
        checkpoint_file_ = std::move(message.descriptor);
        break;
    case channel::ControlMessage::start_inspecting:
        follow_previous_observer(message.descriptor);
        break;
    default:
        break; // only the observer sends the other messages
    }
}

void ObserverRun::await_next_second() {
    second_timer_.expires_at(second_timer_.expiry() + std::chrono::seconds{1});
    second_timer_.async_wait([this](const auto& error) {
        if (!error && !stopping_) {
            on_second();
            await_next_second();
        }
    });
}

void ObserverRun::on_second() {
    shared_.data().heartbeats.fetch_add(1, std::memory_order_relaxed);
    show_status();
    for (auto* const output : {&records_, &capture_}) {
        if (*output) {
            (*output)->log_output_changes();
        }
    }
    lines_.log_bus_connection_changes();
    if (impairment_ && records_) {
        impairment_->on_segment(records_->queue().current_segment());
    }
    written_.log_recordings_and_errors();
    if (page_) {
        page_->check_relay_threads();
    }
    silence_reporters_.report_changes(io_, shared_.data(), page_ ? &*page_ : nullptr);
}

/// Returns which servers are silent, whether recording failed, and the name and size of the output
/// file. This is the file of records, or the capture file if the run writes no records.
sink::StatusNotes ObserverRun::status_notes() const {
    sink::StatusNotes notes{.problem = silence_reporters_.describe_silent_servers(
                                options_.console->log_lines_need_dates())};
    const store::OutputFile* const file =
        options_.records_file != nullptr ? options_.records_file : options_.capture;
    if (file == nullptr) {
        return notes;
    }
    if (file->failed()) {
        notes.problem += (notes.problem.empty() ? "" : ", ");
        notes.problem += "NOT RECORDING: " + file->error_text();
        return notes;
    }
    if (file->path() == "-") {
        notes.recording = "recording to standard output";
        return notes;
    }
    constexpr std::size_t kLongPath = 24;
    std::string_view path = file->path();
    if (path.size() > kLongPath) { // show only the name; the full path was logged at the start
        path.remove_prefix(path.find_last_of('/', path.size() - 2) + 1);
    }
    const std::uint64_t bytes = file->state.written_bytes;
    notes.recording = fmt::format("recording {}to {}",
                                  bytes != 0 ? record::size_text(bytes) + ' ' : std::string{},
                                  record::escape_for_terminal(path));
    return notes;
}

/// Prints new findings and the status. On a terminal, the status is updated every second. In other
/// outputs, a status line is written after ten seconds and then every minute.
void ObserverRun::show_status() {
    if (!console_) {
        return;
    }
    constexpr double kFirstStatus = 9.5; // less than 10, because the timer may be early
    constexpr double kStatusPause = 59.5;
    std::FILE* const out = options_.console->file();
    const bool can_redraw = options_.console->can_redraw();
    const auto now = base::now_utc();
    const std::size_t columns = sink::columns_for_wrapping(options_.console->descriptor());
    fmt::print(out, "{}", can_redraw ? sink::kEraseLine : "");
    print_lines(out, console_->take_finding_lines(now), columns);
    if (can_redraw || shown_.seconds() > (status_shown_ ? kStatusPause : kFirstStatus)) {
        status_shown_ = true;
        fmt::print(out, "{}{}",
                   console_->take_status_line(now, shown_.lap(), status_notes(), columns),
                   can_redraw ? "" : "\n");
    }
    std::fflush(out);
}

void ObserverRun::print_findings_at_end() {
    if (!console_) {
        return;
    }
    std::FILE* const out = options_.console->file();
    fmt::print(out, "{}", options_.console->can_redraw() ? sink::kEraseLine : "");
    print_lines(out, console_->take_finding_lines(base::now_utc(), true),
                sink::columns_for_wrapping(options_.console->descriptor()));
    print_lines(out, console_->finding_table(options_.explain_command));
    std::fflush(out);
}

void ObserverRun::write_flight_recording(std::uint32_t session) {
    if (written_.flight_recorder_queue() == nullptr) {
        log::warn("there is no flight recorder; {} makes one", options_.flight_flag);
    }
    for (const auto& worker : workers_) {
        worker->request_flight_recording(session);
    }
}

void ObserverRun::stop() {
    stopping_ = true;
    messages_.stop();
    second_timer_.cancel();
    silence_reporters_.stop();
}

void ObserverRun::write_summary(const ObserverResult& result) {
    const record::SummaryRecord summary{
        .head = {.time = base::now_utc()},
        .stats = &result.worker_result.totals,
        .sessions = result.worker_result.sessions,
        .impaired = make_impairment_stats(relay::totals(shared_.data().observer_memory)),
        .worlds =
            options_.writes_worlds() ? std::optional{worlds_->totals().worlds} : std::nullopt};
    lines_.line_output()->write(sink::json_line(&summary, options_.config.json));
}

ObserverResult ObserverRun::finish_outputs() {
    page_.reset(); // must be destroyed before the objects that it shows
    if (impairment_) {
        impairment_->reject_further_changes();
    }
    ObserverResult result{.worker_result = {.expectations = options_.config.expectations}};
    for (const auto& worker : workers_) {
        worker->finish_and_join();
        result.worker_result.merge(worker->take_result());
    }
    if (worlds_) {
        worlds_->finish_and_join();
        result.worker_result.merge(worlds_->take_result());
    }
    pipeline::save_checkpoints(checkpoint_file_, result.worker_result.checkpoints);
    print_findings_at_end();
    if (options_.console != nullptr && options_.console->dropped_bytes() != 0) {
        log::warn("dropped {} bytes of console output: it was not read in time",
                  options_.console->dropped_bytes());
    }
    if (lines_.line_output() != nullptr) {
        if (!waits_for_previous_) {
            write_summary(result);
        }
        result.num_records_missing_in_file = records_ ? records_->write_queued_data() : 0;
        result.num_lost_records =
            result.num_records_missing_in_file + lines_.publish_queued_records();
        if (result.worker_result.omitted_messages != 0) {
            log::warn("{} not recorded: a session sent more than the limit",
                      record::count_with_noun(result.worker_result.omitted_messages,
                                              "message[s] [was|were]"));
        }
        if (result.num_lost_records != 0) {
            log::error("{} could not be written",
                       record::count_with_noun(result.num_lost_records, "record[s]"));
        }
    }
    if (capture_) {
        const std::uint64_t lost =
            capture_->write_queued_data() + result.worker_result.capture_losses;
        if (lost != 0) {
            log::error("{} of the capture could not be written",
                       record::count_with_noun(lost, "packet[s]"));
        }
        result.num_lost_records += lost;
    }
    result.num_lost_records += written_.write_queued_demos(result.worker_result.demo_losses);
    written_.write_flight_recordings(result.worker_result.flight);
    result.has_inspected = !waits_for_previous_;
    if (!result.has_inspected) {
        return result;
    }
    const relay::Counters counters = relay::totals(shared_.data().observer_memory);
    // `sessions_opened` includes sessions that a peer closed before the takeover.
    const auto closed = static_cast<std::uint64_t>(std::ranges::count_if(
        checkpoints_, [](const auto& each) { return each.second.is_closed; }));
    log::info("{}, {} to the server, {} to clients, {}, {} verified",
              record::count_with_noun(counters.sessions_opened -
                                          std::min(closed, counters.sessions_opened),
                                      "session[s]"),
              record::count_with_noun(counters.directions[0].datagrams, "datagram[s]"),
              counters.directions[1].datagrams,
              record::count_with_noun(result.worker_result.totals.snapshots, "snapshot[s]"),
              result.worker_result.totals.verified);
    result.duration = run_time_.elapsed();
    return result;
}

void SilenceReporters::report_changes(boost::asio::io_context& io,
                                      const channel::SharedProcessData& shared, LivePage* page) {
    constexpr std::chrono::seconds kDeadline{1};
    const auto now = std::chrono::steady_clock::now();
    const auto servers = shared.facts.added_servers();
    for (relay::ServerIndex i = 0; i < servers.size(); ++i) {
        const auto show = [page, i](const std::optional<web::ServerSilence>& silence) {
            if (page != nullptr) {
                page->set_silence(i, silence);
            }
        };
        if (servers[i].removed) {
            if (reports_.erase(i) != 0) {
                show(std::nullopt);
            }
            continue;
        }
        // The request goes through the relay, so that the relay's counters include the answer.
        SilenceReporter::SendRequest send_request;
        if (!shared.facts.is_tap()) {
            send_request = [&, i] {
                const auto where = reachable_address(
                    base::to_asio_endpoint(servers[i].listen_endpoints().front()));
                probes_.try_emplace(i, io, where, kDeadline).first->second.request_info([](bool) {
                });
            };
        }
        reports_[i].report_changes(now, relay::totals_of(shared.observer_memory, i),
                                   shared.facts.server_name_and_address(i), show, send_request);
    }
}

std::string SilenceReporters::describe_silent_servers(bool has_date) const {
    std::vector<record::Timestamp> since;
    for (const auto& [unused, report] : reports_) {
        if (report.silent_since()) {
            since.push_back(*report.silent_since());
        }
    }
    return since.empty()
               ? std::string{}
               : record::count_with_noun(since.size(), "server[s] silent[|, the first] since ") +
                     sink::clock_text(*std::ranges::min_element(since), has_date);
}

void SilenceReporters::stop() {
    for (auto& [unused, probe] : probes_) {
        probe.stop();
    }
}

} // namespace tw::process
