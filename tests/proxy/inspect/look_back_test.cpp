// Values of real snapshots damaged at random: the next right snapshot tells which one it was.

#include "proxy/inspect/look_back.h"
#include "snapshot/varint.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/damage.h"
#include "tests/support/rounds.h"
#include "tests/support/session_script.h"

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using namespace tw::test;
using snapshot::kNoBase;

namespace {

constexpr auto kS2c = wire::Direction::s2c;

/// Three snapshots of a real session, one behind the other.
struct Moment {
    std::array<Items, 3> items;
    std::array<snapshot::Tick, 3> ticks{};
};

/// Some moments of a capture, from all its sessions.
class Moments final : public record::RecordSink {
  public:
    void on_record(const record::Record& record) override {
        const auto* const* each = std::get_if<const record::SnapshotRecord*>(&record);
        if (each == nullptr || !(*each)->rebuilt) {
            return;
        }
        Moment& moment = last_[(*each)->head.session];
        std::rotate(moment.items.begin(), moment.items.begin() + 1, moment.items.end());
        std::rotate(moment.ticks.begin(), moment.ticks.begin() + 1, moment.ticks.end());
        Items& items = moment.items.back();
        items.clear();
        for (std::size_t i = 0; i < (*each)->items.size(); ++i) {
            const snapshot::ItemView item = (*each)->items[i];
            items[item.key] = {item.data.begin(), item.data.end()};
        }
        moment.ticks.back() = (*each)->tick;
        constexpr std::uint64_t kEvery = 31;
        const auto [first, second, third] = moment.ticks;
        if (++seen_ % kEvery == 0 && first > 0 && second > first && third > second) {
            all.push_back(moment);
        }
    }

    std::vector<Moment> all;

  private:
    std::map<std::uint32_t, Moment> last_;
    std::uint64_t seen_ = 0;
};

const std::vector<Moment>& real_moments() {
    static const std::vector<Moment> all = [] {
        Moments sink;
        for (const std::string name :
             {"bench-4.pcap.gz", "ddnet-20.1.1-race.pcap.gz", "vanilla-0.6.5-ctf.pcap.gz"}) {
            TrafficInspector run{{.messages = false}, sink};
            for (const TrafficDatagram& datagram : read_traffic(name)) {
                run.on_datagram(datagram);
            }
            run.finish();
        }
        return std::move(sink.all);
    }();
    return all;
}

struct Explained {
    snapshot::Tick tick = 0;
    snapshot::ItemKey key;
    std::string field;
    std::int64_t value = 0;
    std::int64_t expected = 0;
    bool exact = false;
    std::string detail;
};

class Explanations final : public record::RecordSink {
  public:
    void on_record(const record::Record& record) override {
        const auto* const* found = std::get_if<const record::FindingRecord*>(&record);
        if (found != nullptr && (*found)->id == record::FindingId::snapshot_explained) {
            const record::FindingRecord& each = **found;
            all.push_back({.tick = *each.tick,
                           .key = {each.item->type_id, each.item->id},
                           .field = std::string{each.field},
                           .value = *each.value,
                           .expected = *each.expected,
                           .exact = each.name == "exact",
                           .detail = std::string{each.detail}});
        }
    }

    std::vector<Explained> all;
};

/// A server's delta with one of its values changed.
struct Damaged {
    snapshot::ItemKey key;
    std::string field;
    std::int32_t change = 0; ///< what the value is off by
};

/// Changes one value of a delta: by a random amount of any size, or to any value at all.
std::optional<Damaged> damage_value(snapshot::Delta& delta, std::mt19937& random) {
    std::vector<std::size_t> values;
    for (const snapshot::DeltaUpdate& update : delta.updates) {
        for (std::size_t i = 0; i < update.size; ++i) {
            values.push_back(update.begin + i);
        }
    }
    if (values.empty()) {
        return std::nullopt;
    }
    const std::size_t at = values[below(random, values.size())];
    const auto old = static_cast<std::uint32_t>(delta.ints[at]);
    auto changed = static_cast<std::uint32_t>(random());
    if (below(random, 2) == 0) {
        const std::uint32_t amount = 1U << below(random, 31);
        changed = old + (below(random, 2) == 0 ? amount : 0U - amount);
    }
    if (changed == old) {
        ++changed;
    }
    delta.ints[at] = static_cast<std::int32_t>(changed);
    for (const snapshot::DeltaUpdate& update : delta.updates) {
        if (at >= update.begin && at < update.begin + update.size) {
            return Damaged{.key = update.key,
                           .field = inspect::field_name(
                               snapshot::find_object(update.key.type, snapshot::Dialect::six),
                               at - update.begin),
                           .change = static_cast<std::int32_t>(changed - old)};
        }
    }
    return std::nullopt;
}

} // namespace

TEST_CASE("a value damaged at random is named when the next right snapshot is here") {
    std::mt19937 random{31};
    const std::size_t wanted = 250 * rounds();
    std::size_t tried = 0;
    std::size_t item_right = 0;
    std::size_t field_right = 0;
    std::size_t exact = 0;
    std::size_t wrong = 0; ///< said to be exact, and was not
    std::size_t listed = 0;
    record::TypeNames types;
    while (tried < wanted) {
        const Moment& moment = real_moments()[below(random, real_moments().size())];
        snapshot::Delta delta;
        static_cast<void>(snapshot::decode_delta(delta_body(moment.items[0], moment.items[1]),
                                                 delta, snapshot::kAgreedSizes));
        const auto damaged = damage_value(delta, random);
        if (!damaged) {
            continue;
        }
        ++tried;
        const auto before = to_snapshot(moment.items[0]);
        const auto right = to_snapshot(moment.items[2]);
        snapshot::Snapshot result;
        snapshot::DeltaWarnings warnings;
        REQUIRE(snapshot::apply_delta(before.view(), delta, result, warnings));
        types.learn(right.view());
        Explanations sink;
        inspect::Reporter reporter{1, sink};
        inspect::LookBack look_back;
        look_back.on_refused({.tick = moment.ticks[1],
                              .delta = &delta,
                              .result = result.view(),
                              .before = before.view(),
                              .before_tick = moment.ticks[0],
                              .wanted = checksum_of(moment.items[1]),
                              .got = result.view().checksum()});
        look_back.on_right(moment.ticks[2], right.view(), types, reporter);
        CHECK_FALSE(look_back.waits());
        if (sink.all.empty()) {
            continue;
        }
        const Explained& told = sink.all.front();
        const std::string field =
            damaged->key.type < snapshot::kFirstUuidType ? damaged->field : told.field;
        const bool same_item = told.key == damaged->key;
        const bool same = same_item && told.field == field;
        item_right += same_item ? 1U : 0U;
        field_right += same ? 1U : 0U;
        exact += told.exact ? 1U : 0U;
        wrong += told.exact && !same ? 1U : 0U;
        listed += !told.exact ? 1U : 0U;
        CHECK(static_cast<std::uint32_t>(told.value) - static_cast<std::uint32_t>(told.expected) ==
              static_cast<std::uint32_t>(damaged->change));
    }
    MESSAGE("of ", tried, " damaged values: item right ", item_right, ", field right ", field_right,
            ", exact ", exact, " (wrong ", wrong, "), ambiguous ", listed, ", nothing said ",
            tried - exact - listed);
    CHECK(100 * item_right >= 95 * tried);
    CHECK(100 * field_right >= 90 * tried);
}

TEST_CASE("a session tells what was wrong when the next right snapshot comes") {
    std::vector<std::int32_t> tee(22, 5);
    const Items first{{{9, 3}, tee}, {{4, 1}, {10, 20, 0, 0}}};
    Items second = first;
    second[{9, 3}][1] = 9;
    second[{4, 1}][0] = 12;
    Items third = second;
    third[{9, 3}][1] = 12;
    SessionScript script;
    script.join_ddnet();
    script.enter();
    script.snap(10, kNoBase, first);
    Items damaged = second;
    damaged[{9, 3}][1] += 4000;
    script.tell(kS2c,
                {plain(snap_single(12, 10, checksum_of(second), delta_body(first, damaged)))});
    CHECK(script.log().count_of("snapshot.explained") == 0);
    script.tell(kS2c, {plain(snap_between(14, 10, first, third))});
    CHECK(script.log().findings().back() == "finding snapshot.explained tick 12 character 3 exact");
    script.tell(kS2c, {plain(snap_between(16, 14, third, first))});
    CHECK(script.log().count_of("snapshot.explained") == 1);
}

TEST_CASE(
    "where several values would explain it, all are listed; where none does, nothing is said") {
    struct Row {
        std::string_view name;
        std::vector<std::int32_t> delta;
        std::int32_t off; ///< the checksum that was announced is off by this
        std::size_t told;
        std::string_view name_told;
    };

    const Items base{{{4, 1}, {10, 20, 0, 0}}, {{4, 2}, {10, 20, 0, 0}}};
    const Row rows[] = {
        {"two that moved alike", {0, 2, 0, 4, 1, 5, 0, 0, 0, 4, 2, 5, 0, 0, 0}, 1, 1, "ambiguous"},
        {"nothing was updated", {0, 0, 0}, 5, 0, ""},
        {"a deleted item", {1, 0, 0, 262145}, 5, 0, ""},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        Explanations sink;
        inspect::Reporter reporter{1, sink};
        inspect::LookBack look_back;
        const auto before = to_snapshot(base);
        snapshot::Delta delta;
        REQUIRE(snapshot::decode_delta(body_of(row.delta), delta, snapshot::kAgreedSizes));
        snapshot::Snapshot result;
        snapshot::DeltaWarnings warnings;
        REQUIRE(snapshot::apply_delta(before.view(), delta, result, warnings));
        const std::int32_t got = result.view().checksum();
        look_back.on_refused({.tick = 12,
                              .delta = &delta,
                              .result = result.view(),
                              .before = before.view(),
                              .before_tick = 10,
                              .wanted = got - row.off,
                              .got = got});
        look_back.on_right(11, before.view(), record::TypeNames{}, reporter); // late, and older
        CHECK(sink.all.empty());
        look_back.on_right(14, before.view(), record::TypeNames{}, reporter);
        REQUIRE(sink.all.size() == row.told);
        if (row.told != 0) {
            CHECK((sink.all.front().exact ? "exact" : "ambiguous") == std::string{row.name_told});
            CHECK(sink.all.front().detail.find("pickup 1 x 15 instead of 14") != std::string::npos);
            CHECK(sink.all.front().detail.find("pickup 2 x 15 instead of 14") != std::string::npos);
        }
    }
}

TEST_CASE("ints are named as their object does") {
    const auto* const info =
        snapshot::find_object(snapshot::kClientInfoType, snapshot::Dialect::six);
    CHECK(inspect::field_name(
              snapshot::find_object(snapshot::kCharacterType, snapshot::Dialect::six), 1) == "x");
    CHECK(
        inspect::field_name(snapshot::find_object(snapshot::kCharacterType, snapshot::Dialect::six),
                            22) == "int_22");
    CHECK(inspect::field_name(info, 1) == "name[1]");
    CHECK(inspect::field_name(nullptr, 0) == "int_0");
}
