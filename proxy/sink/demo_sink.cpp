#include "proxy/sink/demo_sink.h"

#include "map/identity.h"
#include "proxy/record/snapshot_names.h"
#include "proxy/sink/demo_vanilla.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace tw::sink {

namespace {

/// In a demo's name: whose it is. Of worlds, servers behind the first have a number.
std::string owner_name(std::uint32_t session, bool of_server) {
    if (!of_server) {
        return fmt::format("s{}", session);
    }
    return session <= 1 ? "world" : fmt::format("world{}", session);
}

std::string time_text(record::Timestamp time, std::string_view form) {
    constexpr std::int64_t kSecond = 1'000'000'000;
    const auto seconds = static_cast<std::time_t>(time / kSecond);
    return fmt::format(fmt::runtime(form), fmt::gmtime(seconds));
}

/// Recorders leave out what is sent to their client's own program, and what may be lost.
bool is_recorded(const record::MessageRecord& record) {
    return record.head.direction == wire::Direction::s2c && !record.system &&
           record.layer == record::MessageLayer::chunk && !record.payload.empty() &&
           (record.vital || record.name == "sv_pre_input");
}

bool has_secret(const record::MessageRecord& record) {
    return record.secrecy == wire::Secrecy::secret ||
           std::any_of(record.values.begin(), record.values.end(),
                       [](const auto& value) { return value.secrecy == wire::Secrecy::secret; });
}

} // namespace

std::string safe_file_name(std::string_view text) {
    constexpr std::size_t kMaxLength = 64;
    std::string name;
    for (const char letter : text.substr(0, kMaxLength)) {
        const bool safe = (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
                          (letter >= 'A' && letter <= 'Z') || letter == '-' || letter == '_' ||
                          (letter == '.' && !name.empty());
        name += safe ? letter : '_';
    }
    return name.empty() ? "unknown" : name;
}

void DemoSink::on_record(const record::Record& record) {
    std::visit(
        [this](const auto* concrete) {
            if constexpr (requires { take(*concrete); }) {
                take(*concrete);
            }
        },
        record);
}

void DemoSink::take(const record::SessionRecord& record) {
    // A connection that begins knows nothing of the one before it.
    if (const auto found = tapes_.find(record.head.session); found != tapes_.end()) {
        end(found->second);
        tapes_.erase(found);
    }
    if (record.event == record::SessionEvent::established && record.protocol.starts_with("0.7")) {
        tapes_[record.head.session].seven = true;
    }
}

void DemoSink::take(const record::MapRecord& record) {
    Tape& tape = tapes_[record.head.session];
    tape.map_name = record.name;
    tape.map_crc = record.crc;
    tape.map_sha256 = record.sha256;
    tape.map = record.file;
}

void DemoSink::take(const record::MessageRecord& record) {
    if (record.name == "map_change" && record.system) {
        Tape& tape = tapes_[record.head.session];
        end(tape);
        tape.pending.clear();
        tape.pending_bytes = 0;
        tape.pending_tuning = false;
        tape.seven_items.clear();
        return;
    }
    if (const auto tape = tapes_.find(record.head.session);
        tape != tapes_.end() && tape->second.seven) {
        tape->second.seven_items.on_message(record);
    }
    if (!options_.messages || !is_recorded(record) ||
        (has_secret(record) && !options_.show_secrets) ||
        (options_.version < demo::kStepsVersion && !tapes_[record.head.session].seven &&
         !is_vanilla_message(record))) {
        return;
    }
    Tape& tape = tapes_[record.head.session];
    const bool tuning = record.name == "sv_tune_params";
    if (tuning) {
        tape.tuning.assign(record.payload.begin(), record.payload.end());
    }
    if (!on_) {
        return;
    }
    if (tape.recording) {
        add_message(tape, record.payload);
        return;
    }
    if (tape.pending_bytes + record.payload.size() > kMaxPendingBytes) {
        ++losses_.messages;
        return;
    }
    tape.pending.emplace_back(record.payload.begin(), record.payload.end());
    tape.pending_bytes += record.payload.size();
    tape.pending_tuning = tape.pending_tuning || tuning;
}

void DemoSink::add_message(Tape& tape, std::span<const std::byte> payload) {
    if (!tape.recording->encoder.message(payload, tape.recording->gathered)) {
        ++losses_.messages;
        ++losses_.large_messages;
    }
}

void DemoSink::take(const record::SnapshotRecord& record) {
    if (!record.rebuilt || !on_) {
        return;
    }
    Tape& tape = tapes_[record.head.session];
    if (record.ordinal == 0) {
        tape.seven = record::dialect_of(record) == snapshot::Dialect::seven;
        end(tape); // ticks and items begin again
        tape.paused.reset();
    }
    if (tape.map_name.empty()) {
        losses_.mapless += std::exchange(tape.mapless, true) ? 0U : 1U;
        return;
    }
    if (tape.paused && record.tick - *tape.paused < kPause) {
        ++losses_.snapshots;
        return;
    }
    tape.paused.reset();
    if (!tape.recording) {
        begin(tape, record);
    }
    Recording& recording = *tape.recording;
    DemoEncoder& encoder = recording.encoder;
    if (encoder.first() && record.tick <= encoder.last()) {
        ++losses_.late;
        return;
    }
    const bool first = !encoder.first();
    if (!encoder.snapshot(record.tick, items_for(tape, record), recording.gathered)) {
        ++losses_.snapshots;
        ++losses_.large_snapshots;
        return;
    }
    ++recording.waiting;
    if (first) {
        for (const Bytes& message : std::exchange(tape.pending, {})) {
            add_message(tape, message);
        }
        if (!std::exchange(tape.pending_tuning, false) && !tape.tuning.empty()) {
            add_message(tape, tape.tuning);
        }
        tape.pending_bytes = 0;
        return;
    }
    if (record.tick - recording.flushed >= kFlushTicks || !recording.file ||
        recording.gathered.size() >= kFlushBytes) {
        flush(recording);
        recording.flushed = record.tick;
        if (!recording.file) {
            tape.recording.reset();
            tape.paused = record.tick;
        }
    }
}

snapshot::SnapshotView DemoSink::items_for(const Tape& tape, const record::SnapshotRecord& record) {
    if (tape.seven) {
        using Theirs = SevenDemoItems::Theirs;
        tape.seven_items.add(record.items, record.roster, changed_,
                             record.of_demo ? Theirs::taken : Theirs::left_out);
        return changed_.view();
    }
    if (options_.version < demo::kStepsVersion) {
        keep_vanilla_items(record.items, changed_);
        return changed_.view();
    }
    return record.items;
}

void DemoSink::begin(Tape& tape, const record::SnapshotRecord& record) const {
    demo::Header header{
        .version = tape.seven ? demo::kSevenVersion : options_.version,
        .net_version = std::string{tape.seven ? demo::kSevenNetVersion : demo::kNetVersion},
        .map_name =
            map::is_valid_map_name(tape.map_name) ? tape.map_name : safe_file_name(tape.map_name),
        .map_crc = tape.map_crc,
        .type = options_.of_server ? "server" : "client",
        .timestamp = time_text(record.head.time, "{:%Y-%m-%d_%H-%M-%S}"),
        .sha256 = tape.map_sha256};
    if (header.version == demo::kSha256Version && !header.sha256) {
        header.version = demo::kStepsVersion; // there is no hash to tell
    }
    std::string name = fmt::format(
        "{}-{}-{}.demo", time_text(record.head.time, "{:%Y%m%dT%H%M%SZ}"),
        owner_name(record.head.session, options_.of_server), safe_file_name(tape.map_name));
    const auto dialect = tape.seven ? snapshot::Dialect::seven : snapshot::Dialect::six;
    tape.recording.emplace(Recording{.encoder = DemoEncoder{header.version, dialect},
                                     .header = std::move(header),
                                     .map = tape.map,
                                     .name = std::move(name),
                                     .flushed = record.tick});
}

/// Without a file afterwards: the queue is full, or the disk was, and this demo has ended.
void DemoSink::flush(Recording& recording) {
    if (recording.gathered.empty()) {
        return;
    }
    const std::uint64_t waiting = std::exchange(recording.waiting, 0);
    if (recording.file) {
        if (!files_->append(*recording.file, std::exchange(recording.gathered, {}))) {
            close(recording);
            losses_.snapshots += waiting;
        }
        return;
    }
    Bytes bytes = DemoEncoder::head(recording.header, recording.map ? std::span{*recording.map}
                                                                    : std::span<std::byte>{});
    bytes.insert(bytes.end(), recording.gathered.begin(), recording.gathered.end());
    recording.gathered.clear();
    recording.file = files_->create(options_.folder / recording.name, std::move(bytes));
    if (!recording.file) {
        losses_.snapshots += waiting;
    }
}

void DemoSink::close(Recording& recording) {
    for (DemoPatch& patch : recording.encoder.patches()) {
        files_->patch(*recording.file, patch.at, std::move(patch.bytes));
    }
    files_->close(*recording.file);
    recording.file.reset();
}

void DemoSink::end(Tape& tape) {
    if (tape.recording && tape.recording->file) {
        Recording& recording = *tape.recording;
        recording.encoder.finish(recording.gathered);
        flush(recording);
        if (recording.file) {
            close(recording);
        }
    } else if (tape.recording && tape.recording->encoder.first()) {
        ++losses_.single;
    }
    tape.recording.reset();
}

void DemoSink::take(const record::FindingRecord& record) {
    if (record::finding_info(record.id).severity == record::Severity::info) {
        return;
    }
    if (const auto found = tapes_.find(record.head.session);
        found != tapes_.end() && found->second.recording) {
        found->second.recording->encoder.mark();
    }
}

void DemoSink::set_on(bool on) {
    on_ = on;
    for (auto& [unused, tape] : tapes_) {
        end(tape);
        tape.paused.reset();
        tape.pending.clear();
        tape.pending_bytes = 0;
        tape.pending_tuning = false;
    }
}

void DemoSink::finish() {
    for (auto& [unused, tape] : tapes_) {
        end(tape);
    }
    tapes_.clear();
}

} // namespace tw::sink
