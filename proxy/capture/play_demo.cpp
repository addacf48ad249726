#include "proxy/capture/play_demo.h"

#include "proxy/capture/demo_chunks.h"
#include "proxy/capture/demo_snapshot.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace tw::capture {

namespace {

using record::FindingId;
using snapshot::Tick;

constexpr std::int64_t kNanosecondsPerTick = 1'000'000'000 / sink::demo::kTicksPerSecond;

std::string_view describe(DemoSnapshotError::Kind kind) {
    switch (kind) {
    case DemoSnapshotError::Kind::counts:
        return "its counts do not match its size";
    case DemoSnapshotError::Kind::offsets:
        return "an item's offset is invalid";
    case DemoSnapshotError::Kind::type:
        return "an item's type is invalid";
    }
    return {};
}

/// Which items and messages a demo has: players go by what its header says it speaks, too.
snapshot::Dialect dialect_of(const sink::demo::Header& header) {
    return header.net_version.starts_with("0.7") ? snapshot::Dialect::seven
                                                 : snapshot::Dialect::six;
}

/// Plays chunk by chunk.
class Player {
  public:
    Player(const DemoHead& demo, const std::string& name, inspect::Inspector& inspector)
        : demo_{&demo}, inspector_{&inspector}, chunks_{demo.chunks, demo.header.version,
                                                        demo.chunks_at},
          start_{demo_time(demo.header.timestamp).value_or(0)}, now_{start_},
          playback_{
              inspector.play(start_, name, demo.header.type + " demo", dialect_of(demo.header))} {}

    DemoPlayed play() {
        show_map();
        playback_->on_time(now_);
        while (const auto chunk = chunks_.next()) {
            if (!take(*chunk)) {
                break;
            }
        }
        if (chunks_.failed()) {
            error_ = chunks_.error();
        }
        finish();
        inspector_->on_played(*playback_, now_, "end of demo");
        return {.first = start_, .last = now_, .error = error_};
    }

  private:
    void show_map() {
        const sink::demo::Header& header = demo_->header;
        playback_->on_map({.name = header.map_name,
                           .crc = header.map_crc,
                           .size = header.map_size,
                           .sha256 = header.sha256},
                          {demo_->map.begin(), demo_->map.end()});
    }

    /// False: no further.
    bool take(const DemoChunk& chunk) {
        switch (chunk.kind) {
        case DemoChunk::Kind::tick:
            repeat();
            look_at_order(chunk);
            go_to(chunk.tick);
            return true;
        case DemoChunk::Kind::snapshot:
            return take_snapshot(chunk);
        case DemoChunk::Kind::delta:
            return take_delta(chunk);
        case DemoChunk::Kind::message:
            return take_message(chunk);
        case DemoChunk::Kind::other:
            return take_other(chunk);
        }
        return true;
    }

    /// A tick that had no usable snapshot shows the one before it as soon as a chunk that is no
    /// snapshot follows: players do the same. So a last tick with nothing behind it shows nothing.
    void repeat() {
        if (waiting_) {
            playback_->on_unchanged(tick_);
            waiting_ = false;
        }
    }

    /// Players take any tick; one that is not ahead of the one before is due at once.
    void look_at_order(const DemoChunk& chunk) {
        if (first_ && chunk.tick <= tick_) {
            playback_->on_finding_once({.id = FindingId::demo_tick_order,
                                        .tick = chunk.tick,
                                        .offset = chunk.offset,
                                        .value = tick_});
        }
    }

    void go_to(Tick tick) {
        first_ = first_.value_or(tick);
        tick_ = tick;
        waiting_ = true;
        now_ = start_ + (std::int64_t{tick} - *first_) * kNanosecondsPerTick;
        playback_->on_time(now_);
    }

    bool stop(const DemoError& error) {
        error_ = error;
        return false;
    }

    bool take_snapshot(const DemoChunk& chunk) {
        const auto body = payload_.varints(chunk);
        if (!body) {
            return stop(body.error());
        }
        const std::size_t bytes = body->size();
        const auto ints = payload_.ints(chunk);
        if (!ints) {
            return stop(ints.error());
        }
        const DemoSnapshotRead read = decode_demo_snapshot(*ints, full_);
        if (!read.ok) {
            playback_->on_invalid(tick_, bytes,
                                  {.id = FindingId::demo_snapshot_invalid,
                                   .offset = chunk.offset,
                                   .value = static_cast<std::int64_t>(read.error.index),
                                   .detail = describe(read.error.kind)});
            return true;
        }
        if (read.duplicates != 0) {
            playback_->on_finding({.id = FindingId::demo_duplicate_item,
                                   .tick = tick_,
                                   .offset = chunk.offset,
                                   .value = static_cast<std::int64_t>(read.duplicates)});
        }
        playback_->on_full(tick_, bytes, full_.view());
        waiting_ = false;
        return true;
    }

    bool take_delta(const DemoChunk& chunk) {
        const auto body = payload_.varints(chunk);
        if (!body) {
            return stop(body.error());
        }
        if (playback_->on_delta(tick_, *body)) {
            waiting_ = false;
        }
        return true;
    }

    bool take_message(const DemoChunk& chunk) {
        const auto payload = payload_.message(chunk);
        if (!payload) {
            return stop(payload.error());
        }
        repeat();
        playback_->on_message(*payload, fields_);
        return true;
    }

    /// Players unpack what they do not use, too.
    bool take_other(const DemoChunk& chunk) {
        const auto ints = payload_.ints(chunk);
        if (!ints) {
            return stop(ints.error());
        }
        repeat();
        return true;
    }

    void finish() {
        if (error_.code != DemoErrc::none) {
            const DemoErrorInfo& info = demo_error_info(error_.code);
            playback_->on_finding(
                {.id = is_cut(error_.code) ? FindingId::demo_cut_short : FindingId::demo_damaged,
                 .tick = first_ ? std::optional{tick_} : std::nullopt,
                 .offset = error_.offset,
                 .name = info.name,
                 .detail = info.sentence});
        }
    }

    const DemoHead* demo_;
    inspect::Inspector* inspector_;
    DemoChunks chunks_;
    record::Timestamp start_;
    record::Timestamp now_;
    std::unique_ptr<inspect::Playback> playback_;
    DemoPayload payload_;
    snapshot::Snapshot full_;
    wire::DecodedFields fields_;
    std::optional<Tick> first_;
    Tick tick_ = 0;
    bool waiting_ = false; ///< a tick came, but no usable snapshot
    DemoError error_;
};

} // namespace

DemoPlayed play_demo(const DemoHead& demo, const std::string& name, inspect::Inspector& inspector) {
    return Player{demo, name, inspector}.play();
}

} // namespace tw::capture
