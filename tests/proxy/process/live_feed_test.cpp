// The data that a worker collects for the live page: snapshots (also of 0.7 servers), log lines,
// traffic totals and the records around findings. Also the page's filters.
// Covers: proxy/pipeline/page_recordings.cpp, proxy/pipeline/live_feed.cpp
#include "proxy/pipeline/live_feed.h"
#include "proxy/pipeline/page_recordings.h"
#include "proxy/record/roster.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/program.h"
#include "tests/support/record_sink.h"
#include "tests/support/session_script.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>

#include <boost/json.hpp>
#include <doctest/doctest.h>

using namespace tw;
using namespace tw::test;
using snapshot::kNoBase;

namespace {

constexpr std::array<std::uint32_t, 1> kFirstSession{1};

/// The data of a page without traffic and maps.
struct EmptyPageData final : pipeline::RecordPageData {
    EmptyPageData() : RecordPageData{wire::ModDescription::standard()} {}

    web::PageFeed* page_feed() override { return nullptr; }

    web::RunState state() const override { return {}; }

    void check_readiness(std::function<void(web::Health)> /*done*/) override {}

    tl::expected<void, std::string> set_impairment(const std::string& /*text*/) override {
        return {};
    }
};

Items make_items_at(std::int32_t x) {
    return {{{4, 1}, {x, 20, 0, 0}}, {{4, 2}, {7, 7, 0, 0}}};
}

/// A session in the game. The member `sink` of the base class receives its records.
template <typename Sink>
struct InGameSession : Sink {
    InGameSession() {
        script.join_ddnet();
        script.enter_game();
    }

    void send_valid_snapshot(snapshot::Tick tick, snapshot::Tick base) {
        script.snap(tick, base, make_items_at(tick));
    }

    /// Sends a snapshot with a wrong checksum.
    void send_invalid_snapshot(snapshot::Tick tick, snapshot::Tick base) {
        script.send(kS2c,
                    {non_vital(snap_single(tick, base, 1,
                                           delta_body(make_items_at(base), make_items_at(tick))))});
    }

    SessionScript script{{.observers = &this->observers}, this->sink};
};

struct LiveFeedFixture {
    web::ViewerBatch fetch_batch() {
        now += std::chrono::seconds{2};
        sink.flush_to_page(now);
        web::ViewerBatch batch;
        std::ignore = feed.mailboxes[0].take_batch(batch);
        return batch;
    }

    pipeline::WorkerPageFeed::Clock::time_point now = pipeline::WorkerPageFeed::Clock::now();
    web::PageFeed feed{1};
    pipeline::WorkerPageFeed sink{feed, 0, snapshot::ObjectSet::standard()};
    inspect::Observers observers = [this] {
        inspect::Observers all;
        sink.traffic_counter().add_to_observers(all);
        return all;
    }();
};

using ViewedSession = InGameSession<LiveFeedFixture>;

} // namespace

TEST_CASE_FIXTURE(ViewedSession, "nothing is collected while the page has no viewers") {
    send_valid_snapshot(10, kNoBase);
    CHECK(fetch_batch().empty());
}

TEST_CASE_FIXTURE(ViewedSession,
                  "all snapshots, valid or not, of a viewed session are passed to the page") {
    feed.interest.set_interest(kFirstSession, tw::web::ViewerTopic::none);
    send_valid_snapshot(10, kNoBase);
    send_valid_snapshot(12, 10);
    send_invalid_snapshot(14, 12);
    const web::ViewerBatch batch = fetch_batch();
    REQUIRE(batch.snapshots.size() == 3);
    CHECK(batch.snapshots[1].tick == 12);
    CHECK(batch.snapshots[1].delta_tick == 10);
    CHECK(batch.items_of(batch.snapshots[1]).checksum() == checksum_of(make_items_at(12)));
    CHECK_FALSE(batch.snapshots[2].rebuilt);
    CHECK(batch.lines.empty());
    const std::array<std::uint32_t, 1> another{2};
    feed.interest.set_interest(another, tw::web::ViewerTopic::none);
    send_valid_snapshot(16, 12);
    CHECK(fetch_batch().empty());
}

TEST_CASE_FIXTURE(ViewedSession, "the log has a line for each record, and filters apply to lines") {
    feed.interest.set_interest({}, tw::web::ViewerTopic::log);
    send_valid_snapshot(10, kNoBase);
    send_valid_snapshot(12, 10);
    const web::ViewerBatch batch = fetch_batch();
    CHECK(batch.snapshots.empty());
    const auto filter = EmptyPageData{}.make_filter("snapshot and tick == 12");
    REQUIRE(filter.has_value());
    std::size_t lines = 0;
    std::size_t fitting = 0;
    for (std::string_view rest = batch.lines; !rest.empty();) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(line.size() + 1);
        CHECK(boost::json::parse({line.data(), line.size()}).is_object());
        ++lines;
        fitting += (*filter)(line) ? 1U : 0U;
    }
    CHECK(lines > 2);
    CHECK(fitting == 1);
}

TEST_CASE_FIXTURE(
    ViewedSession,
    "data that the page does not fetch takes bounded memory, and lost data is counted") {
    feed.interest.set_interest(kFirstSession, tw::web::ViewerTopic::log);
    send_valid_snapshot(10, kNoBase);
    sink.flush_to_page(now);
    for (snapshot::Tick tick = 12; tick < 40'000; tick += 2) {
        script.snap(tick, kNoBase, make_items_at(tick));
        sink.flush_to_page(now);
    }
    std::ignore = fetch_batch();
    const web::ViewerBatch batch = fetch_batch();
    CHECK(batch.lost_lines > 0);
    CHECK(batch.lines.size() <= web::ViewerBatch::kMaxLineBytes);
    CHECK(batch.ints.size() <= web::ViewerBatch::kMaxInts);
}

TEST_CASE_FIXTURE(ViewedSession,
                  "traffic is counted only while a viewer looks at the traffic totals") {
    send_valid_snapshot(10, kNoBase);
    feed.interest.set_interest({}, tw::web::ViewerTopic::traffic_totals);
    send_valid_snapshot(12, 10);
    const web::ViewerBatch batch = fetch_batch();
    const bool has_pickup = std::ranges::any_of(batch.ledger, [](const record::ByteLedgerRow& row) {
        return row.name == "pickup" && row.group == record::ByteGroup::item;
    });
    CHECK(has_pickup);
}

TEST_CASE("a filter with a key that the log does not have is rejected with its position") {
    const EmptyPageData page;
    CHECK(page.make_filter("finding").has_value());
    const auto wrong = page.make_filter("session == 1 and nmae == x");
    REQUIRE_FALSE(wrong.has_value());
    CHECK(wrong.error().offset == 17);
    CHECK(wrong.error().message.find("name") != std::string::npos);
    CHECK_FALSE(page.make_filter("(((").has_value());
    CHECK_FALSE(page.make_filter(std::string(100'000, 'x')).has_value());
}

TEST_CASE("the completion data contains the keys and their possible values") {
    const auto keys = boost::json::parse(EmptyPageData{}.filter_keys_json()).as_object();
    CHECK(keys.at("keys").as_array().size() > 100);
    CHECK(keys.at("item_types").as_array().size() > 20);
    const auto& types = keys.at("words").at("type").as_array();
    CHECK(std::ranges::find(types, boost::json::value("finding")) != types.end());
}

TEST_CASE("a snapshot for scripts is a record line with all its items") {
    const snapshot::Snapshot items = to_snapshot(make_items_at(5));
    const std::string line = EmptyPageData{}.snapshot_line(
        {.session = 3, .time = 1'000'000'000, .tick = 12, .bytes = 9, .parts = 1, .rebuilt = true},
        items.view());
    const auto record = boost::json::parse(line).as_object();
    CHECK(record.at("type") == "snapshot");
    CHECK(record.at("session") == 3);
    REQUIRE(record.at("items").as_array().size() == 2);
    CHECK(record.at("items").at(0).at("fields").at("x") == 5);
}

namespace {

struct FindingContextFixture {
    [[nodiscard]] std::vector<web::FindingContext> finding_contexts() const {
        web::StatusView view;
        sink.copy_contexts_to(view);
        return view.finding_contexts;
    }

    inspect::Observers observers;
    pipeline::FindingContextCollector sink{snapshot::ObjectSet::standard()};
};

using SessionWithFindings = InGameSession<FindingContextFixture>;

} // namespace

TEST_CASE_FIXTURE(SessionWithFindings, "valid snapshots leave no context") {
    send_valid_snapshot(10, kNoBase);
    send_valid_snapshot(12, 10);
    CHECK(finding_contexts().empty());
}

TEST_CASE_FIXTURE(SessionWithFindings,
                  "a context has the records from the last valid snapshot to the next one") {
    send_valid_snapshot(10, kNoBase);
    send_valid_snapshot(12, 10);
    send_invalid_snapshot(14, 12);
    REQUIRE(finding_contexts().size() == 1);
    CHECK(finding_contexts().front().lines->find(R"("id":"snapshot.crc_mismatch")") !=
          std::string::npos);
    send_valid_snapshot(16, 12);
    send_valid_snapshot(18, 16);
    REQUIRE(finding_contexts().size() == 1);
    const web::FindingContext account = finding_contexts().front();
    CHECK(account.session == 1);
    CHECK(account.tick == 14);
    const std::string& lines = *account.lines;
    CAPTURE(lines);
    CHECK(lines.find(R"("type":"session")") < lines.find(R"("type":"map")"));
    const std::size_t before = lines.find(R"("type":"snapshot","session":1,"dir":"s2c","tick":12)");
    const std::size_t finding = lines.find(R"("id":"snapshot.crc_mismatch")");
    const std::size_t after = lines.find(R"("type":"snapshot","session":1,"dir":"s2c","tick":16)");
    CHECK(lines.find(R"("type":"map")") < before);
    CHECK(before < finding);
    CHECK(finding < after);
    CHECK(after != std::string::npos);
    CHECK(lines.find(R"("tick":18)") == std::string::npos);
    CHECK(count_of(lines, R"("type":"snapshot")") == 3);
}

TEST_CASE_FIXTURE(SessionWithFindings,
                  "continuous findings keep a limited number of contexts, the latest ones") {
    send_valid_snapshot(10, kNoBase);
    constexpr snapshot::Tick kTicks = 100;
    for (snapshot::Tick tick = 12; tick < 12 + 2 * kTicks; tick += 2) {
        send_invalid_snapshot(tick, 10);
    }
    CHECK(finding_contexts().size() == 2); // at most one context every half second
    for (snapshot::Tick tick = 12 + 2 * kTicks; tick < 12 + 4 * kTicks; tick += 2) {
        script.pause(pipeline::FindingContextCollector::kMinInterval);
        send_invalid_snapshot(tick, 10);
    }
    const auto kept = finding_contexts();
    REQUIRE(kept.size() == pipeline::FindingContextCollector::kMaxContexts + 1);
    CHECK(kept.back().tick == 10 + 4 * kTicks);
    for (const web::FindingContext& each : kept) {
        CHECK(each.lines->size() < pipeline::FindingContextCollector::kMaxBytes + 4096);
    }
}

TEST_CASE_FIXTURE(SessionWithFindings, "a context remains after its session has ended") {
    send_valid_snapshot(10, kNoBase);
    send_invalid_snapshot(12, 10);
    script.close("idle");
    REQUIRE(finding_contexts().size() == 1);
    CHECK(finding_contexts().front().tick == 12);
}

namespace tw::test {

namespace {

using snapshot::Dialect;

std::size_t count_items(const snapshot::SnapshotView& items, std::uint16_t type) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
        count += items[i].key.type == type ? 1U : 0U;
    }
    return count;
}

/// Checks that each snapshot is converted correctly for the page, and counts its contents.
class ConversionChecker final : public test::TypedRecordSink<ConversionChecker> {
  public:
    void on(const record::SnapshotRecord& seen) {
        if (!seen.rebuilt) {
            return;
        }
        const snapshot::SnapshotView shown = items_.convert_items(seen);
        ++snapshots;
        if (record::dialect_of(seen) == Dialect::six) {
            ++unconverted;
            CHECK(shown.keys().data() == seen.items.keys().data());
            return;
        }
        const std::uint16_t from = snapshot::character_type(Dialect::seven);
        CHECK(count_items(shown, snapshot::kCharacterType) == count_items(seen.items, from));
        for (std::size_t i = 0; i < seen.items.size(); ++i) {
            const auto tee = seen.items[i];
            if (tee.key.type == from) {
                const auto told = shown.find({snapshot::kCharacterType, tee.key.id});
                REQUIRE(told);
                CHECK(shown[*told].data[1] == tee.data[1]); // x and y follow the tick
                CHECK(shown[*told].data[2] == tee.data[2]);
                ++tees;
            }
        }
        for (std::size_t i = 0; i < shown.size(); ++i) {
            const auto item = shown[i];
            if (item.key.type == snapshot::kPlayerInfoType && item.data[0] != 0) {
                CHECK(seen.roster->own_id() == item.key.id);
                ++own_players;
            }
        }
        names += count_items(shown, snapshot::kClientInfoType);
    }

    std::size_t snapshots = 0;
    std::size_t unconverted = 0; ///< number of snapshots of 0.6
    std::size_t tees = 0;
    std::size_t own_players = 0;
    std::size_t names = 0;

  private:
    pipeline::PageItemConverter items_{snapshot::ObjectSet::standard()};
};

void check_conversion(const std::string& capture, ConversionChecker& page) {
    TrafficInspector inspector{{}, page};
    inspector.play(read_traffic(capture));
}

} // namespace

TEST_CASE("the page shows each tee of 0.7 with its position and name, and marks the viewer") {
    ConversionChecker page;
    check_conversion("teeworlds-0.7.5.pcap.gz", page);
    CHECK(page.snapshots > 1000);
    CHECK(page.unconverted == 0);
    CHECK(page.tees > page.snapshots / 2);
    CHECK(page.names >= page.tees);
    CHECK(page.own_players > page.snapshots / 2);
}

} // namespace tw::test
