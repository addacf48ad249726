#include "proxy/capture/capture_run.h"
#include "proxy/demo/demo_sink.h"
#include "tests/support/capture_writer.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/demo_bytes.h"
#include "tests/support/random_world.h"
#include "tests/support/test_data.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using test::Items;

namespace {

using Film = std::vector<std::pair<snapshot::Tick, Items>>;

/// Collects every snapshot of every session, split where a new demo begins.
class Films final : public record::RecordSink {
  public:
    explicit Films(bool vanilla) : vanilla_{vanilla} {}

    void on_record(const record::Record& record) override {
        const auto* const found = std::get_if<const record::SnapshotRecord*>(&record);
        if (found == nullptr || !(*found)->rebuilt) {
            return;
        }
        const record::SnapshotRecord& snapshot = **found;
        auto& films = films_[snapshot.head.session];
        if (snapshot.ordinal == 0) {
            films.emplace_back();
        }
        REQUIRE_FALSE(films.empty());
        if (vanilla_) {
            demo::keep_vanilla_items(snapshot.items, kept_);
        }
        films.back().emplace_back(snapshot.tick,
                                  test::to_items(vanilla_ ? kept_.view() : snapshot.items));
    }

    /// Returns the snapshots in any order, without those that no demo can have.
    [[nodiscard]] std::vector<Film> all() const {
        std::vector<Film> all;
        for (const auto& [unused, films] : films_) {
            for (const Film& film : films) {
                if (film.size() > 1) {
                    all.push_back(film);
                }
            }
        }
        std::ranges::sort(all);
        return all;
    }

  private:
    bool vanilla_;
    snapshot::Snapshot kept_;
    std::map<std::uint32_t, std::vector<Film>> films_;
};

void read(const std::string& path, record::RecordSink& sink) {
    test::NoMaps maps;
    std::atomic<std::uint32_t> numbers{0};
    inspect::Inspector inspector{{}, maps, sink, numbers};
    capture::CaptureRun run{{path}, {}};
    run.read(inspector);
    CHECK_FALSE(run.is_damaged());
}

} // namespace

TEST_CASE("every snapshot of a capture is unchanged in the demos made from it") {
    for (const std::string name :
         {"token-ddnet-layers-rejoin", "token-high-bandwidth", "token-map-change",
          "token-map-download", "tokenless-map-change"}) {
        for (const int version : {4, 6}) {
            CAPTURE(name);
            CAPTURE(version);
            const test::FilledFolder folder;
            Films shown{version == 4};
            store::FileQueue files{store::FileQueue::FullQueuePolicy::wait};
            demo::DemoSink demos{{.folder = folder.path(), .version = version}, files};
            test::BothSinks both{shown, demos};
            read(test::test_data("golden/" + name + ".pcap"), both);
            demos.end_demos();
            files.finish_writing();
            CHECK(files.num_lost_blocks() == 0);
            CHECK(demos.losses().num_unwritten() + demos.losses().late == 0);
            std::vector<Film> read_back;
            for (const auto& file : folder.files()) {
                Films film{false};
                read(file.string(), film);
                REQUIRE(film.all().size() == 1);
                read_back.push_back(film.all().front());
            }
            std::ranges::sort(read_back);
            CHECK_FALSE(read_back.empty());
            const bool same = read_back == shown.all();
            CHECK(same);
        }
    }
}

TEST_CASE("random snapshots are unchanged in a demo") {
    for (const std::uint32_t seed : {1U, 2U, 3U, 4U}) {
        for (const int version : {4, 6}) {
            CAPTURE(seed);
            CAPTURE(version);
            std::mt19937 random{seed};
            test::RandomWorld world{[&random](std::size_t limit) {
                return std::uniform_int_distribution<std::size_t>{0, limit - 1}(random);
            }};
            Film shown;
            snapshot::Tick tick = 0;
            for (int i = 0; i < 200; ++i) {
                tick += 1 + static_cast<snapshot::Tick>(random() % 80);
                if (i % 7 != 0) {
                    world.step();
                }
                shown.emplace_back(tick, world.items());
            }
            const test::TemporaryFile file{test::demo_of(version, shown)};
            Films again{false};
            read(file.path(), again);
            REQUIRE(again.all().size() == 1);
            const bool same = again.all().front() == shown;
            CHECK(same);
        }
    }
}
