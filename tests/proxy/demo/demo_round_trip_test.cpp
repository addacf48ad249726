#include "proxy/demo/demo_sink.h"
#include "tests/support/capture_writer.h"
#include "tests/support/demo_bytes.h"
#include "tests/support/inspect_file.h"
#include "tests/support/program.h"
#include "tests/support/random_world.h"
#include "tests/support/record_sink.h"
#include "tests/support/test_data.h"

#include <algorithm>
#include <random>

using namespace tw;
using test::Items;

namespace {

using Film = std::vector<std::pair<snapshot::Tick, Items>>;

/// Collects every snapshot of every session, split where a new demo begins.
class SnapshotsByDemo final : public test::TypedRecordSink<SnapshotsByDemo> {
  public:
    explicit SnapshotsByDemo(bool vanilla) : vanilla_{vanilla} {}

    void on(const record::SnapshotRecord& snapshot) {
        if (!snapshot.rebuilt) {
            return;
        }
        auto& films = films_[snapshot.head.session];
        if (snapshot.ordinal == 0) {
            films.emplace_back();
        }
        REQUIRE_FALSE(films.empty());
        if (vanilla_) {
            demo::copy_vanilla_items(snapshot.items, kept_);
        }
        films.back().emplace_back(snapshot.tick,
                                  test::to_items(vanilla_ ? kept_.view() : snapshot.items));
    }

    /// Returns the snapshots in any order, without those that no demo can have.
    [[nodiscard]] std::vector<Film> demo_snapshots() const {
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

} // namespace

TEST_CASE("every snapshot of a capture is unchanged in the demos made from it") {
    for (const std::string name :
         {"token-ddnet-layers-rejoin", "token-high-bandwidth", "token-map-change",
          "token-map-download", "tokenless-map-change"}) {
        for (const int version : {4, 6}) {
            CAPTURE(name);
            CAPTURE(version);
            const test::TemporaryFolder folder;
            SnapshotsByDemo shown{version == 4};
            store::FileQueue files{store::FileQueue::FullQueuePolicy::wait};
            demo::DemoSink demos{{.folder = folder.path(), .version = version}, files};
            test::BothSinks both{shown, demos};
            test::inspect_file(test::test_data("golden/" + name + ".pcap"), both);
            demos.end_demos();
            files.finish_writing();
            CHECK(files.num_lost_blocks() == 0);
            CHECK(demos.losses().num_unwritten_chunks() + demos.losses().late_snapshots == 0);
            std::vector<Film> read_back;
            for (const auto& file : folder.files()) {
                SnapshotsByDemo film{false};
                test::inspect_file(file.string(), film);
                REQUIRE(film.demo_snapshots().size() == 1);
                read_back.push_back(film.demo_snapshots().front());
            }
            std::ranges::sort(read_back);
            CHECK_FALSE(read_back.empty());
            const bool same = read_back == shown.demo_snapshots();
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
            SnapshotsByDemo again{false};
            test::inspect_file(file.path(), again);
            REQUIRE(again.demo_snapshots().size() == 1);
            const bool same = again.demo_snapshots().front() == shown;
            CHECK(same);
        }
    }
}
