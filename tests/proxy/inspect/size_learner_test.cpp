// Tests that exactly the changed sizes are reported for servers with longer or shorter objects,
// which are simulated with snapshots of real servers.
// Covers: proxy/inspect/diagnosis/diagnosis.cpp, proxy/inspect/diagnosis/size_learner.cpp
#include "proxy/inspect/diagnosis/size_learner.h"
#include "snapshot/delta.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/damage.h"
#include "tests/support/doctest_lines.h"
#include "tests/support/record_sink.h"
#include "tests/support/resized_traffic.h"
#include "tests/support/session_script.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using namespace tw::test;
using snapshot::AgreedSizes;
using snapshot::kAgreedSizes;
using snapshot::kNoBase;

namespace {

constexpr std::uint16_t kLastAgreed = 20;

/// Collects every n-th snapshot of a capture, and counts findings with one id.
class SampledSnapshots final : public TypedRecordSink<SampledSnapshots> {
  public:
    void on(const record::SnapshotRecord& each) {
        constexpr std::uint64_t kEvery = 97;
        if (each.rebuilt && seen_++ % kEvery == 0) {
            snapshots.push_back(to_items(each.items));
        }
    }

    void on(const record::FindingRecord& found) {
        size_finding_count += found.id == record::FindingId::snapshot_size_differs ? 1U : 0U;
    }

    std::vector<Items> snapshots;
    std::uint64_t size_finding_count = 0;

  private:
    std::uint64_t seen_ = 0;
};

const Lines kCaptures{"bench-4.pcap.gz", "ddnet-20.1.1-race.pcap.gz", "vanilla-0.6.5-ctf.pcap.gz"};

const std::vector<Items>& real_snapshots() {
    static const std::vector<Items> all = [] {
        SampledSnapshots sink;
        for (const std::string& name : kCaptures) {
            TrafficInspector run{{.emits_message_records = false}, sink};
            run.play(read_traffic(name));
        }
        return std::move(sink.snapshots);
    }();
    return all;
}

std::int32_t random_value(std::mt19937& random) {
    switch (random_below(random, 3)) {
    case 0:
        return static_cast<std::int32_t>(random_below(random, 4));
    case 1:
        return static_cast<std::int32_t>(random_below(random, 6000));
    default:
        return static_cast<std::int32_t>(random());
    }
}

/// Simulates a server whose mod changed the sizes of some types.
class ModServer {
  public:
    ModServer(std::mt19937& random, const std::vector<std::uint16_t>& types) : random_{&random} {
        for (const std::uint16_t type : types) {
            const int agreed = kAgreedSizes[type];
            int size = agreed;
            while (size == agreed || size < 1) {
                size = agreed - 3 + static_cast<int>(random_below(random, 7));
            }
            sizes[type] = static_cast<std::uint8_t>(size);
        }
    }

    /// Returns a real snapshot with this server's sizes, which contains each changed type.
    [[nodiscard]] Items next_snapshot() {
        Items items = real_snapshots()[random_below(*random_, real_snapshots().size())];
        for (std::uint16_t type = 1; type <= kLastAgreed; ++type) {
            if (sizes[type] != kAgreedSizes[type] &&
                std::ranges::none_of(items,
                                     [&](const auto& item) { return item.first.type == type; })) {
                Ints data(kAgreedSizes[type]);
                for (std::size_t i = 0; i < 1 + random_below(*random_, 3); ++i) {
                    std::ranges::generate(data, [&] { return random_value(*random_); });
                    items[{type, static_cast<std::uint16_t>(random_below(*random_, 64))}] = data;
                }
            }
        }
        for (auto& [key, data] : items) {
            const std::size_t size = snapshot::agreed_size(key.type, sizes);
            while (size != 0 && data.size() < size) {
                data.push_back(random_value(*random_));
            }
            data.resize(size == 0 ? data.size() : size);
        }
        return items;
    }

    void send_delta(SessionScript& script, snapshot::Tick tick, snapshot::Tick base,
                    const Items& from, const Items& to) const {
        script.snap_body(
            tick, base, checksum_of(to),
            snapshot::encode_delta(to_snapshot(from).view(), to_snapshot(to).view(), sizes));
    }

    AgreedSizes sizes = kAgreedSizes;

  private:
    std::mt19937* random_;
};

/// Collects the types and sizes that were reported.
struct ReportedSizes final : TypedRecordSink<ReportedSizes> {
    void on(const record::FindingRecord& found) {
        if (found.id == record::FindingId::snapshot_size_differs) {
            sizes[found.item->type_id] = static_cast<std::uint8_t>(*found.value);
            agreed = agreed && found.limit == kAgreedSizes[found.item->type_id];
            since = found.since_tick;
        }
    }

    AgreedSizes sizes = kAgreedSizes;
    bool agreed = true;
    std::optional<snapshot::Tick> since; ///< since_tick of the last finding
};

const record::ItemTypes kTypes;

/// Passes a full snapshot with the server's sizes to SizeLearner::on_misfit_delta().
bool learn_from_snapshot(inspect::SizeLearner& learner, const ModServer& server, const Items& items,
                         snapshot::Tick tick, inspect::Reporter& reporter,
                         inspect::SearchBudget& budget) {
    snapshot::Delta decoded;
    const Bytes body = snapshot::encode_delta({}, to_snapshot(items).view(), server.sizes);
    static_cast<void>(snapshot::decode_delta(body, decoded, snapshot::kAgreedSizes));
    reporter.set_head(std::int64_t{tick} * 20'000'000, kS2c);
    return learner.on_misfit_delta(
        {.delta = {.ints = decoded.ints, .base = {}, .crc = checksum_of(items)},
         .tick = tick,
         .newest_verified = {}},
        reporter, budget);
}

/// A session that learns sizes, and a server that sends snapshots with other sizes.
class LearningSession {
  public:
    LearningSession(const AgreedSizes& sizes, std::vector<snapshot::ItemKey> order)
        : sizes_{sizes}, order_{std::move(order)} {
        script_.join_ddnet();
        script_.enter_game();
    }

    /// Sends the next snapshot as a delta from the previous one.
    void send_snapshot(const Items& items) {
        const Bytes body = ordered_delta(last_, items, order_, sizes_);
        script_.snap_body(tick_ + 2, tick_ == 0 ? kNoBase : tick_, checksum_of(items), body);
        tick_ += 2;
        last_ = items;
    }

    /// Sends an empty snapshot, which repeats the previous one.
    void send_empty_snapshot() {
        script_.send(kS2c, {non_vital(snap_empty(tick_ + 2, tick_))});
        tick_ += 2;
    }

    [[nodiscard]] SessionScript& script() { return script_; }

  private:
    AgreedSizes sizes_;
    std::vector<snapshot::ItemKey> order_;
    SessionScript script_{{.learn_sizes = true}};
    snapshot::Tick tick_ = 0;
    Items last_;
};

AgreedSizes with_size(std::uint16_t type, std::uint8_t size, AgreedSizes sizes = kAgreedSizes) {
    sizes[type] = size;
    return sizes;
}

/// Returns whether exactly the changed sizes are reported after three full snapshots.
bool reports_all_sizes(ModServer& server) {
    inspect::SearchBudget budget;
    inspect::SizeLearner learner{kTypes};
    ReportedSizes named;
    inspect::Reporter reporter{1, named};
    for (snapshot::Tick tick = 10; tick <= 30; tick += 10) {
        static_cast<void>(
            learn_from_snapshot(learner, server, server.next_snapshot(), tick, reporter, budget));
    }
    return named.sizes == server.sizes && named.agreed;
}

} // namespace

TEST_CASE("a changed size of any agreed type is reported within three full snapshots") {
    std::mt19937 random{20};
    std::size_t runs = 0;
    std::size_t named = 0;
    for (std::size_t round = 0; round < 3 * rounds(); ++round) {
        for (std::uint16_t type = 1; type <= kLastAgreed; ++type) {
            ModServer server{random, {type}};
            ++runs;
            const bool all = reports_all_sizes(server);
            named += all ? 1U : 0U;
            CAPTURE(type);
            CAPTURE(int{server.sizes[type]});
            WARN(all);
        }
    }
    MESSAGE(named, " of ", runs, " servers with one type changed were named");
    CHECK(100 * named >= 99 * runs);
}

TEST_CASE("several changed sizes are reported within three full snapshots") {
    std::mt19937 random{21};
    std::size_t runs = 0;
    std::size_t named = 0;
    for (std::size_t round = 0; round < 40 * rounds(); ++round) {
        std::vector<std::uint16_t> types;
        for (std::size_t i = 0; i < 2 + round % 4; ++i) {
            types.push_back(static_cast<std::uint16_t>(1 + random_below(random, kLastAgreed)));
        }
        ModServer server{random, types};
        ++runs;
        const bool all = reports_all_sizes(server);
        named += all ? 1U : 0U;
        WARN(all);
    }
    MESSAGE(named, " of ", runs, " servers with several types changed were named");
    CHECK(100 * named >= 99 * runs);
}

TEST_CASE("without learn_sizes, a changed size is only reported") {
    std::mt19937 random{23};
    ModServer server{random, {9}};
    SessionScript script = playing_session();
    for (snapshot::Tick tick = 10; tick <= 50; tick += 10) {
        server.send_delta(script, tick, kNoBase, {}, server.next_snapshot());
    }
    CHECK(script.stats().verified == 0);
    CHECK(script.log().count_of("snapshot.size_differs") == 1);
}

TEST_CASE("a reported size has the tick of the first snapshot with it, unless the map changed") {
    std::mt19937 random{29};
    const ModServer server{random, {9}};
    const Items items{{{9, 0}, Ints(server.sizes[9], 7)}};
    for (const snapshot::Tick last_of_map : {0, 10, 20}) {
        CAPTURE(last_of_map);
        inspect::SizeLearner learner{kTypes};
        ReportedSizes named;
        inspect::Reporter reporter{1, named};
        inspect::SearchBudget budget;
        for (snapshot::Tick tick = 10; tick <= 30; tick += 10) {
            static_cast<void>(learn_from_snapshot(learner, server, items, tick, reporter, budget));
            if (tick == last_of_map) {
                learner.forget_snapshots();
            }
        }
        CHECK(named.sizes == server.sizes);
        CHECK(named.since == (last_of_map == 0 ? std::optional{10} : std::nullopt));
    }
}

TEST_CASE("a later session uses sizes that an earlier session learned, without a search") {
    std::mt19937 random{26};
    const ModServer server{random, {9, 10}};
    const Items items{{{9, 0}, Ints(server.sizes[9], 7)}, {{10, 0}, Ints(server.sizes[10], 8)}};
    const auto learned = std::make_unique<inspect::LearnedSizeTable>();
    inspect::SizeLearner first{kTypes, learned->find_or_add_server("a")};
    inspect::SizeLearner second{kTypes, learned->find_or_add_server("a")};
    inspect::SizeLearner elsewhere{kTypes, learned->find_or_add_server("b")};
    ReportedSizes named;
    inspect::Reporter reporter{1, named};
    inspect::SearchBudget budget;
    for (snapshot::Tick tick = 10; tick <= 30; tick += 10) {
        static_cast<void>(learn_from_snapshot(first, server, items, tick, reporter, budget));
    }
    REQUIRE(named.sizes == server.sizes);
    inspect::SearchBudget spent;
    for (std::int64_t left = 2 * inspect::SearchBudget::kItemsPerSecond; left > 0;
         left -= inspect::SearchBudget::kItemsPerSearch) {
        spent.begin_search(800'000'000);
        while (spent.spend_items()) {
        }
        spent.end_search();
    }
    CHECK(learn_from_snapshot(second, server, items, 40, reporter, spent));
    CHECK(second.decoding_sizes() == server.sizes);
    CHECK_FALSE(learn_from_snapshot(elsewhere, server, items, 40, reporter, spent));
}

TEST_CASE("a learned size survives a takeover without any snapshot of its type") {
    std::mt19937 random{27};
    const ModServer server{random, {9, 10}};
    const Items items{{{9, 0}, Ints(server.sizes[9], 7)}, {{10, 0}, Ints(server.sizes[10], 8)}};
    ReportedSizes named;
    inspect::Reporter reporter{1, named};
    inspect::SearchBudget budget;
    for (const snapshot::Tick shown : {1, 2, 3}) { // full snapshots; after three, both are named
        CAPTURE(shown);
        const auto before = std::make_unique<inspect::LearnedSizeTable>();
        const auto after = std::make_unique<inspect::LearnedSizeTable>();
        inspect::SizeLearner first{kTypes, before->find_or_add_server("a")};
        for (snapshot::Tick tick = 1; tick <= shown; ++tick) {
            static_cast<void>(
                learn_from_snapshot(first, server, items, 10 * tick, reporter, budget));
        }
        const auto learned = first.learned_sizes();
        REQUIRE(learned.size() == 2);
        CHECK(learned.front() ==
              inspect::LearnedSize{.type = 9,
                                   .size = server.sizes[9],
                                   .is_confirmed = shown == 3,
                                   .num_items = static_cast<std::uint32_t>(shown),
                                   .num_snapshots = static_cast<std::uint32_t>(shown)});
        inspect::SizeLearner second{kTypes, after->find_or_add_server("b")};
        second.restore_learned_sizes(learned);
        CHECK(second.decoding_sizes() == server.sizes);
        CHECK(second.learned_sizes() == learned);
        CHECK(after->find_or_add_server("b")->find_size(snapshot::Dialect::six, 9).has_value() ==
              (shown == 3));
        // A session without a misfit returns the sizes that other sessions learned.
        const inspect::SizeLearner other{kTypes, before->find_or_add_server("a")};
        CHECK(other.learned_sizes().size() == (shown == 3 ? 2 : 0));
        ReportedSizes again;
        inspect::Reporter next{1, again};
        for (snapshot::Tick tick = shown + 1; tick <= std::max(shown + 1, 3); ++tick) {
            CHECK(again.sizes == kAgreedSizes);
            static_cast<void>(learn_from_snapshot(second, server, items, 10 * tick, next, budget));
        }
        CHECK(again.sizes == server.sizes);
        CHECK_FALSE(again.since); // the previous observer saw the first snapshot with the size
    }
}

TEST_CASE("wrong sizes from a checkpoint are replaced by sizes that fit") {
    std::mt19937 random{28};
    for (const std::uint16_t changed : {std::uint16_t{0}, std::uint16_t{10}}) {
        CAPTURE(changed);
        ModServer server{random, {}};
        server.sizes[10] = changed == 10 ? 6 : kAgreedSizes[10];
        ReportedSizes named;
        inspect::Reporter reporter{1, named};
        inspect::SearchBudget budget;
        inspect::SizeLearner learner{kTypes};
        learner.restore_learned_sizes(std::vector<inspect::LearnedSize>{
            {.type = 9, .size = 200, .is_confirmed = true, .num_items = 9, .num_snapshots = 9},
            {.type = 10, .size = 6, .is_confirmed = true, .num_items = 9, .num_snapshots = 9}});
        const Items items{{{9, 0}, Ints(22, 7)}, {{10, 0}, Ints(server.sizes[10], 8)}};
        bool read = false;
        for (snapshot::Tick tick = 10; tick <= 50; tick += 10) {
            read = learn_from_snapshot(learner, server, items, tick, reporter, budget);
        }
        CHECK(read);
        CHECK(learner.decoding_sizes() == server.sizes);
        CHECK(named.sizes[9] == kAgreedSizes[9]);
    }
}

TEST_CASE("ints that look like an item leave the size undecided until the next delta") {
    // These ints can be read as a tee and a shorter game_info, or as a laser of 9 ints.
    Ints tee(24, 7);
    tee[22] = 3;
    tee[23] = 3;
    Items items{{{9, 3}, tee}, {{6, 0}, {1, 0, 0, 5, 20, 30, 1}}};
    LearningSession told{with_size(6, 7, with_size(9, 24)), {{9, 3}, {6, 0}}};
    told.send_snapshot(items);
    CHECK(told.script().stats().verified == 0);
    for (std::uint32_t held = 1; held <= inspect::SizeLearner::kConfirmingSnapshots + 1; ++held) {
        items[{9, 3}][1] += 1;
        told.send_snapshot(items);
        CHECK(told.script().stats().verified == held);
    }
    CHECK(told.script().log().count_of("snapshot.size_differs") ==
          2); // the undecided snapshot counts, too
}

TEST_CASE("empty snapshots may repeat an undecided snapshot") {
    Ints tee(24, 7);
    tee[22] = 3;
    tee[23] = 3;
    Items items{{{9, 3}, tee}, {{6, 0}, {1, 0, 0, 5, 20, 30, 1}}};
    for (const std::uint32_t pause : {1U, 25U, 200U}) {
        CAPTURE(pause);
        LearningSession told{with_size(6, 7, with_size(9, 24)), {{9, 3}, {6, 0}}};
        told.send_snapshot(items);
        for (std::uint32_t i = 0; i < pause; ++i) {
            told.send_empty_snapshot();
        }
        CHECK(told.script().stats().verified == 0);
        items[{9, 3}][1] += 1;
        told.send_snapshot(items);
        told.send_empty_snapshot();
        CHECK(told.script().stats().verified == 2);
    }
    LearningSession endless{with_size(6, 7, with_size(9, 24)), {{9, 3}, {6, 0}}};
    endless.send_snapshot(items);
    for (std::size_t i = 0; i <= inspect::SizeLearner::kMaxRepeatedSnapshots; ++i) {
        endless.send_empty_snapshot();
    }
    endless.send_snapshot(items);
    CHECK(endless.script().stats().verified == 0);
}

TEST_CASE("the size of an item read once is reported after a second of snapshots with it") {
    Items items{{{4, 1}, {10, 20, 0, 0}}, {{6, 0}, {1, 0, 0, 5, 20, 30, 1, 0, 77}}};
    LearningSession told{with_size(6, 9), {}};
    for (std::uint32_t held = 1; held <= inspect::SizeLearner::kConfirmingSnapshots; ++held) {
        CHECK(told.script().log().count_of("snapshot.size_differs") == 0);
        items[{4, 1}][0] += 1;
        told.send_snapshot(items);
    }
    CHECK(told.script().log().count_of("snapshot.size_differs") == 1);
    CHECK(told.script().stats().verified == inspect::SizeLearner::kConfirmingSnapshots);
}

TEST_CASE("an item with a possibly damaged key never confirms a size") {
    // A client_info (type 11) has the type number of a laser (3), because one bit is flipped.
    Items items{{{4, 1}, {10, 20, 0, 0}}, {{3, 1}, Ints(17, 5)}};
    LearningSession told{with_size(3, 17), {}};
    for (std::uint32_t held = 1; held <= 4 * inspect::SizeLearner::kConfirmingSnapshots; ++held) {
        items[{4, 1}][0] += 1;
        told.send_snapshot(items);
    }
    CHECK(told.script().log().count_of("snapshot.size_differs") == 0);
    for (std::uint16_t id = 2; id <= 4; ++id) {
        items[{3, id}] = Ints(17, id);
        told.send_snapshot(items);
    }
    CHECK(told.script().log().count_of("snapshot.size_differs") == 1);
}

TEST_CASE("duplicate items lead to no reported sizes") {
    std::mt19937 random{25};
    ReportedSizes named;
    inspect::Reporter reporter{1, named};
    for (std::size_t round = 0; round < 10 * rounds(); ++round) {
        inspect::SearchBudget budget;
        inspect::SizeLearner learner{kTypes};
        ModServer server{random, {}};
        for (snapshot::Tick tick = 10; tick <= 100; tick += 10) {
            reporter.set_head(std::int64_t{tick} * 20'000'000, kS2c);
            const Items items = server.next_snapshot();
            snapshot::Delta decoded;
            static_cast<void>(
                snapshot::decode_delta(delta_body({}, items), decoded, snapshot::kAgreedSizes));
            Ints ints{decoded.ints.begin(), decoded.ints.end()};
            auto crc = static_cast<std::uint32_t>(checksum_of(items));
            const snapshot::DeltaUpdate& twice =
                decoded.updates[random_below(random, decoded.updates.size())];
            ints.insert(ints.end(), {twice.key.type, twice.key.id});
            if (snapshot::agreed_size(twice.key.type, snapshot::kAgreedSizes) == 0) {
                ints.push_back(static_cast<std::int32_t>(twice.size));
            }
            for (std::size_t i = 0; i < twice.size; ++i) {
                ints.push_back(random_value(random));
                crc += static_cast<std::uint32_t>(ints.back());
            }
            ++ints[1];
            static_cast<void>(learner.on_misfit_delta(
                {.delta = {.ints = ints, .base = {}, .crc = static_cast<std::int32_t>(crc)},
                 .tick = tick,
                 .newest_verified = {}},
                reporter, budget));
        }
    }
    CHECK(named.sizes == kAgreedSizes);
}

TEST_CASE("normal and damaged traffic lead to no reported sizes") {
    std::mt19937 random{24};
    for (const std::string& name : kCaptures) {
        const auto traffic = read_traffic(name);
        for (const bool damaged : {false, true}) {
            SampledSnapshots sink;
            TrafficInspector run{{.emits_message_records = false, .learn_sizes = true}, sink};
            for (TrafficDatagram datagram : traffic) {
                if (damaged && datagram.bytes.size() > 20 && random_below(random, 20) == 0) {
                    datagram.bytes[10 + random_below(random, datagram.bytes.size() - 10)] ^=
                        std::byte{8};
                }
                run.on_datagram(datagram);
            }
            run.finish();
            CAPTURE(name);
            CAPTURE(damaged);
            CHECK(sink.size_finding_count == 0);
        }
    }
}
