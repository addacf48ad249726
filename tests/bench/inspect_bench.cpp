// Measures the whole inspection on captures of real servers, on one core: from datagrams to verified
// snapshots, and to JSON lines. `per_snapshot` counts the verified snapshots.

#include "proxy/sink/json_lines.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/record_sink.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

using namespace tw;

const std::vector<test::TrafficDatagram>& captured_traffic(std::int64_t players) {
    static const auto four = test::read_traffic("bench-4.pcap.gz");
    static const auto many = test::read_traffic("bench-64.pcap.gz");
    return players == 4 ? four : many;
}

/// Counts the written bytes and discards them.
class ByteCounter final : public sink::Output {
  public:
    void write(std::string_view block) override { bytes_ += block.size(); }

    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  private:
    std::uint64_t bytes_ = 0;
};

/// Plays a capture repeatedly through the same sessions, as if the clients joined again. The measurement
/// starts after the sessions' memory has grown.
class CaptureReplayer {
  public:
    CaptureReplayer(benchmark::State& state, record::RecordSink& sink, bool messages)
        : state_{&state}, traffic_{&captured_traffic(state.range(0))},
          run_{{.emits_message_records = messages}, sink} {
        play();
        played_ = run_.inspector().totals();
    }

    void play() {
        const std::size_t size = traffic_->size();
        for (std::size_t i = 0; i < size; ++i) {
            run_.on_datagram((*traffic_)[i], i + 1 == size ? nullptr : &(*traffic_)[i + 1]);
        }
    }

    void report_counters() {
        const record::SessionStats totals = run_.inspector().totals();
        if (played_.verified == 0 ||
            totals.mismatched + totals.undecodable + totals.unknown_base != 0) {
            state_->SkipWithError("not every snapshot was verified");
        }
        const auto per_unit =
            benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert;
        state_->counters["per_snapshot"] =
            benchmark::Counter(static_cast<double>(played_.verified), per_unit);
        state_->counters["per_datagram"] =
            benchmark::Counter(static_cast<double>(traffic_->size()), per_unit);
    }

  private:
    benchmark::State* state_;
    const std::vector<test::TrafficDatagram>* traffic_;
    test::TrafficInspector run_;
    record::SessionStats played_;
};

/// Inspects without records of messages. Argument: number of players in the capture.
void datagrams_to_snapshots(benchmark::State& state) {
    test::NoSink sink;
    CaptureReplayer player{state, sink, false};
    for (auto _ : state) {
        player.play();
    }
    player.report_counters();
}

template <sink::ItemChoice kItems>
void datagrams_to_json(benchmark::State& state) {
    ByteCounter output;
    sink::JsonLines sink{{.items = kItems}, output};
    CaptureReplayer player{state, sink, true};
    const std::uint64_t before = output.bytes();
    for (auto _ : state) {
        player.play();
    }
    state.SetBytesProcessed(static_cast<std::int64_t>(output.bytes() - before));
    player.report_counters();
}

/// Keeps consecutive snapshots from the middle of a capture, with all data that their records use.
class SampleSnapshots final : public test::TypedRecordSink<SampleSnapshots> {
  public:
    void on(const record::SnapshotRecord& snapshot) {
        if (!snapshot.rebuilt || seen_++ < kFirst || samples_.size() == kKept) {
            return;
        }
        const snapshot::SnapshotView& items = snapshot.items;
        Sample& sample = samples_.emplace_back();
        sample.block.resize(items.block_ints());
        items.write_block(sample.block.data());
        sample.record = snapshot;
        sample.record.items =
            snapshot::SnapshotView::of_block(sample.block, items.size(), items.data().size());
        sample.record.previous.reset();
    }

    void write(sink::JsonLines& sink) const {
        for (const Sample& sample : samples_) {
            sink.on_record(&sample.record);
        }
    }

  private:
    struct Sample {
        std::vector<std::int32_t> block;
        record::SnapshotRecord record;
    };

    static constexpr std::size_t kFirst = 4096;
    static constexpr std::size_t kKept =
        128; // two ticks of 64 sessions, which fit into a second-level cache
    std::vector<Sample> samples_;
    std::size_t seen_ = 0;
};

/// Measures formatting alone: every item of prepared snapshots.
void format_every_item(benchmark::State& state) {
    SampleSnapshots samples;
    test::TrafficInspector run{{}, samples}; // owns the data that the records use
    for (const test::TrafficDatagram& datagram : captured_traffic(state.range(0))) {
        run.on_datagram(datagram);
    }
    ByteCounter output;
    sink::JsonLines sink{{.items = sink::ItemChoice::all}, output};
    for (auto _ : state) {
        samples.write(sink);
        sink.flush();
    }
    state.SetBytesProcessed(static_cast<std::int64_t>(output.bytes()));
}

BENCHMARK(datagrams_to_snapshots)->Arg(4)->Arg(64)->Unit(benchmark::kMillisecond);
BENCHMARK(datagrams_to_json<sink::ItemChoice::changed>)
    ->Name("datagrams_to_json<changed>")
    ->Arg(4)
    ->Arg(64)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(datagrams_to_json<sink::ItemChoice::all>)
    ->Name("datagrams_to_json<all>")
    ->Arg(4)
    ->Arg(64)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(format_every_item)->Arg(4)->Arg(64)->Unit(benchmark::kMillisecond);

} // namespace

BENCHMARK_MAIN();
