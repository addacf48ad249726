// Tests that the next verified snapshot shows which value of a damaged snapshot is wrong.
// Covers: proxy/inspect/diagnosis/diagnosis.cpp
#include "proxy/inspect/diagnosis/diagnosis.h"
#include "snapshot/cursor.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/damage.h"
#include "tests/support/doctest_lines.h"
#include "tests/support/record_sink.h"
#include "tests/support/session_script.h"

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace tw;
using namespace tw::test;
using snapshot::kNoBase;

namespace {

/// Three consecutive snapshots of a real session.
struct ConsecutiveSnapshots {
    std::array<Items, 3> items;
    std::array<snapshot::Tick, 3> ticks{};
};

/// Collects every 31st triple of consecutive snapshots from all sessions of a capture.
class ConsecutiveSnapshotsCollector final : public TypedRecordSink<ConsecutiveSnapshotsCollector> {
  public:
    void on(const record::SnapshotRecord& each) {
        if (!each.rebuilt) {
            return;
        }
        ConsecutiveSnapshots& moment = last_[each.head.session];
        std::rotate(moment.items.begin(), moment.items.begin() + 1, moment.items.end());
        std::rotate(moment.ticks.begin(), moment.ticks.begin() + 1, moment.ticks.end());
        moment.items.back() = to_items(each.items);
        moment.ticks.back() = each.tick;
        constexpr std::uint64_t kEvery = 31;
        const auto [first, second, third] = moment.ticks;
        if (++seen_ % kEvery == 0 && first > 0 && second > first && third > second) {
            all.push_back(moment);
        }
    }

    std::vector<ConsecutiveSnapshots> all;

  private:
    std::map<std::uint32_t, ConsecutiveSnapshots> last_;
    std::uint64_t seen_ = 0;
};

const std::vector<ConsecutiveSnapshots>& real_snapshot_triples() {
    static const std::vector<ConsecutiveSnapshots> all = [] {
        ConsecutiveSnapshotsCollector sink;
        for (const std::string name :
             {"bench-4.pcap.gz", "ddnet-20.1.1-race.pcap.gz", "vanilla-0.6.5-ctf.pcap.gz"}) {
            TrafficInspector run{{.emits_message_records = false}, sink};
            run.play(read_traffic(name));
        }
        return std::move(sink.all);
    }();
    return all;
}

struct ExplainedMismatch {
    bool exact = false;
    bool named = false;    ///< exact or likely
    snapshot::ItemKey key; ///< set only if named, like the next members
    std::string field;
    std::int64_t value = 0;
    std::int64_t expected = 0;
    Lines candidates;
};

struct ExplanationCollector final : TypedRecordSink<ExplanationCollector> {
    void on(const record::FindingRecord& each) {
        if (each.id != record::FindingId::snapshot_explained) {
            return;
        }
        ExplainedMismatch& told = all.emplace_back();
        told.exact = each.name == "exact";
        told.named = told.exact || each.name == "likely";
        CHECK(told.named == each.item.has_value());
        CHECK(told.exact != each.candidates.has_value());
        if (told.named) {
            told.key = {each.item->type_id, each.item->id};
            told.field = each.field;
            told.value = *each.value;
            told.expected = *each.expected;
        }
        if (!told.exact) {
            for (const record::CauseCandidate& candidate : each.candidates->likeliest) {
                told.candidates.push_back(
                    fmt::format("{} {} {} {} instead of {}", candidate.item.type, candidate.item.id,
                                candidate.field, *candidate.value, *candidate.expected));
            }
        }
    }

    std::vector<ExplainedMismatch> all;
};

/// A mismatch, with the objects to which a session's mismatch refers.
struct MismatchedDelta {
    MismatchedDelta(const Items& before, snapshot::Tick before_tick, snapshot::Tick tick,
                    Bytes received, std::optional<std::int32_t> crc, std::int32_t excess = 0)
        : body{std::move(received)}, base{to_snapshot(before)}, delta{.tick = tick,
                                                                      .delta_tick = before_tick,
                                                                      .crc = 0,
                                                                      .num_parts = 1,
                                                                      .body = body,
                                                                      .marked = {}} {
        if (before_tick != kNoBase) {
            history.store(before_tick, base.view());
        }
        inspect::rebuild_snapshot(delta, snapshot::kAgreedSizes, history, rebuilt);
        delta.crc = crc.value_or(rebuilt.crc - excess);
        types.learn_types(rebuilt.result);
    }

    MismatchedDelta(const MismatchedDelta&) = delete;
    MismatchedDelta& operator=(const MismatchedDelta&) = delete;
    ~MismatchedDelta() = default;

    [[nodiscard]] inspect::SuspectValues suspect_values() const {
        inspect::SearchBudget budget;
        budget.begin_search(0);
        return {mismatch, budget};
    }

    Bytes body;
    snapshot::Snapshot base;
    snapshot::AssembledDelta delta;
    snapshot::History history;
    inspect::RebuiltSnapshot rebuilt;
    record::ItemTypes types;
    inspect::CrcMismatch mismatch{delta, rebuilt, history, types};
};

/// A server's delta with one changed value.
struct DamagedDelta {
    snapshot::ItemKey key;
    std::string field;
    std::int32_t change = 0; ///< changed value minus original value
};

/// Changes one value of a delta by a random amount, or to a random value.
std::optional<DamagedDelta> damage_value(snapshot::Delta& delta, std::mt19937& random) {
    std::vector<std::size_t> values;
    for (const snapshot::DeltaUpdate& update : delta.updates) {
        for (std::size_t i = 0; i < update.size; ++i) {
            values.push_back(update.begin + i);
        }
    }
    if (values.empty()) {
        return std::nullopt;
    }
    const std::size_t at = values[random_below(random, values.size())];
    const auto old = static_cast<std::uint32_t>(delta.ints[at]);
    auto changed = static_cast<std::uint32_t>(random());
    if (random_below(random, 2) == 0) {
        const std::uint32_t amount = 1U << random_below(random, 31);
        changed = old + (random_below(random, 2) == 0 ? amount : 0U - amount);
    }
    if (changed == old) {
        ++changed;
    }
    delta.ints[at] = static_cast<std::int32_t>(changed);
    for (const snapshot::DeltaUpdate& update : delta.updates) {
        if (at >= update.begin && at < update.begin + update.size) {
            return DamagedDelta{.key = update.key,
                                .field = inspect::name_of_int(
                                    snapshot::find_object(update.key.type, snapshot::Dialect::six),
                                    at - update.begin),
                                .change = static_cast<std::int32_t>(changed - old)};
        }
    }
    return std::nullopt;
}

} // namespace

TEST_CASE("a damaged value is named after the next verified snapshot, or stays ambiguous") {
    std::mt19937 random{31};
    const std::size_t wanted = 250 * rounds();
    std::size_t tried = 0;
    std::size_t right = 0;
    std::size_t wrong = 0;       ///< another value was named
    std::size_t exact_wrong = 0; ///< another value was named and reported as exact
    while (tried < wanted) {
        const ConsecutiveSnapshots& moment =
            real_snapshot_triples()[random_below(random, real_snapshot_triples().size())];
        snapshot::Delta delta;
        REQUIRE(snapshot::decode_delta(delta_body(moment.items[0], moment.items[1]), delta,
                                       snapshot::kAgreedSizes));
        const auto damaged = damage_value(delta, random);
        if (!damaged) {
            continue;
        }
        ++tried;
        MismatchedDelta refused{moment.items[0], moment.ticks[0], moment.ticks[1],
                                body_of({delta.ints.begin(), delta.ints.end()}),
                                checksum_of(moment.items[1])};
        const auto next = to_snapshot(moment.items[2]);
        refused.types.learn_types(next.view());
        ExplanationCollector sink;
        inspect::Reporter reporter{1, sink};
        inspect::SuspectValues look_back = refused.suspect_values();
        look_back.on_verified_snapshot(moment.ticks[2], next.view(), refused.base.view(), reporter);
        look_back.report_result(reporter);
        CHECK(look_back.empty());
        REQUIRE(sink.all.size() == 1);
        const ExplainedMismatch& told = sink.all.front();
        if (told.named) {
            const bool numbered = damaged->key.type < snapshot::kFirstUuidType;
            const bool same =
                told.key == damaged->key && (!numbered || told.field == damaged->field);
            (same ? right : wrong) += 1;
            exact_wrong += told.exact && !same ? 1U : 0U;
            CHECK(static_cast<std::uint32_t>(told.value) -
                      static_cast<std::uint32_t>(told.expected) ==
                  static_cast<std::uint32_t>(damaged->change));
        }
    }
    MESSAGE("of ", tried, " damaged values: right ", right, ", wrong ", wrong, ", ambiguous ",
            tried - right - wrong);
    CHECK(1000 * wrong <= tried);
    CHECK(exact_wrong == 0);
    CHECK(100 * right >= 85 * tried);
}

TEST_CASE("a closed session reports a suspected value only if a verified snapshot followed") {
    const Items first{{{4, 1}, {10, 20, 0, 0}}, {{4, 2}, {10, 20, 0, 0}}};
    Items second = first;
    second[{4, 1}][0] = 12;
    second[{4, 2}][0] = 12;
    Items damaged = second;
    damaged[{4, 1}][0] = 13;
    for (const bool right_one : {false, true}) {
        SessionScript script = playing_session();
        script.snap(10, kNoBase, first);
        script.snap_body(12, 10, checksum_of(second), delta_body(first, damaged));
        if (right_one) {
            script.snap(14, 10, second);
        }
        script.close("bye");
        CHECK(script.log().count_of("snapshot.explained") == (right_one ? 1 : 0));
    }
}

TEST_CASE("all values that would explain a mismatch are listed") {
    struct Row {
        std::string_view name;
        Ints delta;
        std::int32_t off; ///< checksum of the items minus announced checksum
        bool told;
    };

    const Items base{{{4, 1}, {10, 20, 0, 0}}, {{4, 2}, {10, 20, 0, 0}}};
    const Row rows[] = {
        {"two that moved alike", {0, 2, 0, 4, 1, 5, 0, 0, 0, 4, 2, 5, 0, 0, 0}, 1, true},
        {"nothing was updated", {0, 0, 0}, 5, false},
        {"a deleted item", {1, 0, 0, 262145}, 5, false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        ExplanationCollector sink;
        inspect::Reporter reporter{1, sink};
        MismatchedDelta refused{base, 10, 12, body_of(row.delta), std::nullopt, row.off};
        inspect::SuspectValues look_back = refused.suspect_values();
        CHECK(look_back.empty() != row.told);
        // A snapshot that arrives late and is older changes nothing.
        look_back.on_verified_snapshot(11, refused.base.view(), {}, reporter);
        CHECK(sink.all.empty());
        look_back.on_verified_snapshot(14, refused.base.view(), refused.base.view(), reporter);
        look_back.report_result(reporter);
        REQUIRE(sink.all.size() == (row.told ? 1 : 0));
        if (row.told) {
            CHECK_FALSE(sink.all.front().exact);
            const auto& listed = sink.all.front().candidates;
            for (const std::string_view each :
                 {"pickup 1 x 15 instead of 14", "pickup 2 x 15 instead of 14"}) {
                CHECK(std::ranges::find(listed, each) != listed.end());
            }
        }
    }
}

namespace {

constexpr snapshot::ItemKey kFlag{5, 3}; // three ints, agreed

/// Returns the explanation for a full snapshot with this body and the server's checksum `crc`.
inspect::MismatchCause explain_snapshot(Bytes received, std::int32_t crc) {
    const MismatchedDelta refused{{}, kNoBase, 12, std::move(received), crc};
    return inspect::explain_mismatch(refused.mismatch, refused.suspect_values().rank_suspects());
}

} // namespace

TEST_CASE("a duplicate item is named if its sum equals the checksum's error") {
    // The server's snapshot has the flag twice. Its checksum counts both; the client keeps the
    // later.
    const auto cause =
        explain_snapshot(body_of({0, 2, 0, 5, 3, 100, 200, 1, 5, 3, 7, 8, 9}), 301 + 24);
    CHECK(cause.name == "duplicate_update");
    CHECK(cause.item_key == kFlag);
    REQUIRE(cause.index_in_delta);
    CHECK(*cause.index_in_delta == 5);
}

TEST_CASE("items with warnings are listed, but none is named, if no sum fits") {
    const auto cause =
        explain_snapshot(body_of({0, 2, 0, 5, 3, 100, 200, 1, 5, 3, 7, 8, 9}), 12345);
    CHECK(cause.name == "odd_delta");
    CHECK_FALSE(cause.item_key);
    REQUIRE(cause.candidates.listed.size() == 1);
    CHECK(cause.candidates.listed[0].item.type_id == kFlag.type);
    CHECK(cause.candidates.listed[0].item.id == kFlag.id);
}

TEST_CASE("no item is named if the sums of several duplicate items fit") {
    const auto cause = explain_snapshot(
        body_of({0, 4, 0, 5, 3, 1, 0, 0, 5, 3, 7, 8, 9, 5, 4, 1, 0, 0, 5, 4, 7, 8, 9}), 48 + 1);
    CHECK(cause.name == "duplicate_update");
    CHECK_FALSE(cause.item_key);
    CHECK(cause.candidates.count == 2);
}

TEST_CASE("a value is named if only a flipped bit in it explains the mismatch") {
    // The sign bit is flipped. No other value would be right with one bit flipped back.
    const auto cause = explain_snapshot(body_of({0, 1, 0, 5, 3, ~1000, 40, 1}), 1041);
    CHECK(cause.name == "damaged_value");
    CHECK(cause.item_key == kFlag);
    CHECK(cause.index_in_delta == 5);
    CHECK(cause.field_name == "x");
}

TEST_CASE("no value is named if a flipped bit in any of several values explains the mismatch") {
    const auto cause =
        explain_snapshot(body_of({0, 1, 0, 5, 3, 1024 + 256, 40, 1 + 256}), 1065 + 256);
    CHECK(cause.name == "ambiguous");
    CHECK_FALSE(cause.item_key);
    CHECK((cause.index_in_delta == 5 || cause.index_in_delta == 7));
    const auto& listed = cause.candidates.listed;
    REQUIRE(listed.size() == 2);
    CHECK(std::set<std::string_view>{listed[0].field, listed[1].field} ==
          std::set<std::string_view>{"team", "x"});
}

TEST_CASE("a value in an overlong encoding is named as the damaged one") {
    // The value 64 takes two bytes. Without the highest bit of the value, these bytes encode 0.
    Bytes body = body_of({0, 1, 0, 5, 3, 64, 64, 1});
    const std::size_t at = snapshot::IntOffsets{body}.byte_offset(5) + 1;
    REQUIRE(body[at] == std::byte{1});
    body[at] = std::byte{0};
    const auto cause = explain_snapshot(body, 129);
    CHECK(cause.name == "damaged_value");
    CHECK(cause.index_in_delta == 5);
}

TEST_CASE("a mismatch that no single value explains has an unknown cause") {
    const auto cause =
        explain_snapshot(body_of({0, 1, 0, 5, 3, 1000, 40, 1}), 1041 + 3 * 5 * 7 * 11);
    CHECK(cause.name == "unknown");
    CHECK_FALSE(cause.item_key);
    CHECK(cause.candidates.count == 0);
}

TEST_CASE("without suspects, the cause is the checksum or the number of values") {
    struct Row {
        std::string_view name;
        Bytes body;
        std::int32_t crc;
        std::string_view cause;
        std::string_view part;
    };

    Ints many{0, 1, 0, 40, 7, 5000};
    many.resize(many.size() + 5000);
    const Row rows[] = {
        {"one bit", body_of({0, 0, 0}), 64, "damaged_checksum", "one flipped bit"},
        {"two bits", body_of({0, 0, 0}), 96, "unknown", "the base or the announced checksum"},
        {"too many", body_of(many), 64, "unknown", "5000 values, too many"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const auto cause = explain_snapshot(row.body, row.crc);
        CHECK(cause.name == row.cause);
        CHECK(cause.sentence.find(row.part) != std::string::npos);
    }
}

TEST_CASE("causes other than a flipped bit are mentioned if they fit") {
    const auto ambiguous =
        explain_snapshot(body_of({0, 1, 0, 5, 3, 1024 + 256, 40, 1 + 256}), 1065 + 256);
    CHECK(ambiguous.sentence.ends_with("any value of the updated item fits"));
    const auto unknown = explain_snapshot(body_of({0, 1, 0, 5, 3, 1000, 40, 1}), 1041 + 3);
    CHECK(unknown.sentence.find("any value of the updated item fits") != std::string::npos);
}

TEST_CASE("two values differ by one bit of the int or of its encoding") {
    struct Row {
        std::int32_t one;
        std::int32_t other;
        bool apart;
    };

    for (const Row& row : {Row{0, 1, true}, Row{1000, 1000 + 4096, true}, Row{-5, ~-5, true},
                           Row{5, 6, false}, Row{7, 7, false}, Row{0, INT32_MIN, true}}) {
        CAPTURE(row.one);
        CAPTURE(row.other);
        CHECK(inspect::differ_by_one_bit(row.one, row.other) == row.apart);
        CHECK(inspect::differ_by_one_bit(row.other, row.one) == row.apart);
    }
}
