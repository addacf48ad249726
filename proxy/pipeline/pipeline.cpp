#include "proxy/pipeline/pipeline.h"

#include "proxy/base/archive.h"
#include "proxy/base/files.h"
#include "proxy/base/log.h"
#include "proxy/record/terminal_text.h"

#include <algorithm>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tw::pipeline {

namespace {

/// The version of the checkpoint file's layout. Increase it with every change. The version of
/// inspect::SessionCheckpoint is separate.
constexpr std::uint32_t kCheckpointFileVersion = 4;

} // namespace

base::UniqueFd create_checkpoint_file() {
    return base::UniqueFd{::memfd_create("twscope-checkpoints", MFD_CLOEXEC)};
}

void save_checkpoints(const base::UniqueFd& file, const SessionCheckpoints& checkpoints) {
    if (!file.valid()) {
        return;
    }
    std::vector<std::byte> bytes;
    base::ArchiveWriter archive{bytes};
    archive.write(kCheckpointFileVersion);
    std::size_t num_written = 0;
    for (const auto& [number, checkpoint] : checkpoints) {
        const std::vector<std::byte> state = checkpoint.is_closed
                                                 ? std::vector<std::byte>{}
                                                 : inspect::encode_checkpoint(checkpoint);
        if (bytes.size() + state.size() > kMaxCheckpointBytes) {
            break;
        }
        archive.write(number);
        archive.write(state);
        ++num_written;
    }
    const std::size_t all = checkpoints.size();
    if (base::write_all(file.get(), bytes)) { // true if writing failed
        num_written = 0;
    }
    if (num_written != all) {
        log::warn("{} of {} {} joined midway: there is too much to hand over", all - num_written,
                  record::count_with_noun(all, "session[s]"),
                  record::choose_plural(all - num_written, "[is|are]"));
    }
}

SessionCheckpoints read_checkpoints(int file) {
    struct stat found {};

    std::vector<std::byte> bytes(
        ::fstat(file, &found) == 0
            ? std::min(static_cast<std::size_t>(found.st_size), kMaxCheckpointBytes)
            : 0);
    const ssize_t size = ::pread(file, bytes.data(), bytes.size(), 0);
    bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    SessionCheckpoints checkpoints;
    base::ArchiveReader archive{bytes};
    std::uint32_t version = 0;
    archive.read(version);
    std::uint32_t number = 0;
    std::vector<std::byte> state;
    while (version == kCheckpointFileVersion && !archive.failed()) {
        archive.read(number);
        archive.read(state);
        auto checkpoint =
            archive.failed() ? std::nullopt
            : state.empty()
                ? std::optional{inspect::SessionCheckpoint{.map = {}, .is_closed = true}}
                : inspect::decode_checkpoint(state);
        if (checkpoint) {
            checkpoints.insert_or_assign(number, *std::move(checkpoint));
        }
    }
    return checkpoints;
}

RecordWriter::RecordWriter(const Config& config, const WorkerOutputs& outputs)
    : expectations_{config.expectations} {
    if (!config.expectations.empty()) {
        sinks_.add_sink(expectations_);
    }
    if (outputs.findings != nullptr) {
        sinks_.add_sink(*outputs.findings, config.console_filter);
    }
    if (outputs.records == nullptr) {
        return;
    }
    record::RecordSink* lines = &json_.emplace(config.json, *outputs.records);
    if (config.max_message_bytes != 0) {
        lines = &message_limit_.emplace(*json_, config.max_message_bytes);
    }
    if (config.limits_findings) {
        lines = &finding_limit_.emplace(*lines);
    }
    sinks_.add_sink(*lines, config.filter);
}

void RecordWriter::end_session(const record::RecordHeader& head) {
    if (finding_limit_) {
        finding_limit_->end_session(head);
    }
}

void RecordWriter::flush() {
    if (json_) {
        json_->flush();
    }
}

void RecordWriter::write_omitted_counts() {
    if (finding_limit_) {
        finding_limit_->report_all_omissions();
    }
    if (message_limit_) {
        message_limit_->report_all_omissions();
    }
    flush();
}

void RecordWriter::write_summary(const record::SummaryRecord& summary) {
    if (json_) {
        json_->on_record(&summary);
        json_->flush();
    }
}

Pipeline::Pipeline(const Config& config, const WorkerOutputs& outputs,
                   world::WorldInputSink* worlds, inspect::MapSource& maps,
                   std::atomic<std::uint32_t>& session_numbers, std::size_t index)
    : writer_{config, outputs}, snapshot_remover_{writer_, outputs.findings},
      inspector_{config.make_inspect_options(observers_), maps, sinks_, session_numbers} {
    if (config.counts_traffic) {
        observers_.add_observer(attribution_);
    }
    if (config.views == ViewChoice::world) {
        sinks_.add_sink(snapshot_remover_);
    } else {
        sinks_.add_sink(writer_);
    }
    if (worlds != nullptr) {
        const bool messages = config.writes_worlds() && config.demos && config.demos->messages;
        sinks_.add_new_sink<world::WorldInputConverter>({}, *worlds, messages);
    }
    if (outputs.sessions != nullptr) {
        sinks_.add_sink(*outputs.sessions);
    }
    if (outputs.console != nullptr) {
        sinks_.add_new_sink<sink::ConsoleSink>(config.console_filter, *outputs.console);
    }
    if (outputs.feed != nullptr) {
        sinks_.add_sink(status_.emplace());
        sinks_.add_sink(contexts_.emplace(config.mod->objects));
        sinks_.add_sink(feed_.emplace(*outputs.feed, index, config.mod->objects));
        feed_->traffic_counter().add_to_observers(observers_);
    }
    if (config.demos && config.views != ViewChoice::world) {
        sinks_.add_sink(demos_.emplace(*config.demos, *outputs.files));
    }
    if (outputs.capture != nullptr) {
        using DatagramChoice = capture::CaptureSink::DatagramChoice;
        add_datagram_sink(capture_.emplace(*outputs.capture, config.capture_filter
                                                                 ? DatagramChoice::selected
                                                                 : DatagramChoice::all));
        if (config.capture_filter) {
            sinks_.add_new_sink<capture::DatagramSelector>(config.capture_filter, *capture_);
        }
    }
    if (config.flight) {
        add_datagram_sink(flight_.emplace(
            *config.flight, config.flight->bytes / outputs.num_workers, *outputs.flight));
    }
    if (outputs.page_recordings != nullptr) {
        add_datagram_sink(page_recorder_.emplace(*outputs.page_recordings));
    }
}

template <typename Sink>
void Pipeline::add_datagram_sink(Sink& sink) {
    sink.set_session_state_source([this] { return inspector_.encode_current_checkpoint(); });
    observers_.add_observer(sink);
    sinks_.add_sink(sink);
}

void Pipeline::fill_status_view(web::StatusView& view) {
    status_->fill_view(view, inspector_);
    contexts_->copy_contexts_to(view);
}

void Pipeline::flush(record::Timestamp now) {
    writer_.flush();
    if (capture_) {
        capture_->flush();
    }
    if (page_recorder_) {
        page_recorder_->update_recordings(now);
    }
}

void Pipeline::write_remaining_data(record::Timestamp now) {
    if (demos_) {
        demos_->end_demos();
    }
    if (capture_) {
        capture_->write_remaining_data(now);
    }
    if (flight_) {
        flight_->write_remaining_files(now);
    }
    if (page_recorder_) {
        page_recorder_->end_recordings(now);
    }
    writer_.write_omitted_counts();
}

WorkerResult Pipeline::take_result() {
    result_.totals = inspector_.totals();
    result_.sessions = inspector_.num_sessions_opened();
    result_.expectations = writer_.expectations().list();
    result_.demo_losses = demos_ ? demos_->losses() : demo::DemoLosses{};
    result_.capture_losses = capture_ ? capture_->num_lost_datagrams() : 0;
    result_.omitted_messages = writer_.num_omitted_messages();
    result_.flight = flight_ ? flight_->counts() : capture::FlightRecorderCounts{};
    return std::move(result_);
}

} // namespace tw::pipeline
