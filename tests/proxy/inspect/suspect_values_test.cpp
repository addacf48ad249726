// Tests flipped bits in values of real games' deltas. This command tries all 10,000:
// TW_ROUNDS=25 tw_why_test -tc="a flipped bit*"
// Covers: proxy/inspect/diagnosis/suspect_values.cpp
#include "proxy/inspect/diagnosis/suspect_values.h"
#include "snapshot/cursor.h"
#include "snapshot/names.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/damage.h"
#include "tests/support/record_sink.h"
#include "tests/support/session_script.h"

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace tw;
using namespace tw::test;
using snapshot::ItemKey;
using snapshot::kNoBase;

namespace {

constexpr std::size_t kBefore = 17;
constexpr std::size_t kAfter = 3;

struct PastSnapshot {
    snapshot::Tick tick = 0;
    snapshot::Tick base = kNoBase;
    snapshot::Snapshot items;
};

/// The verified snapshots of a session, in order.
struct SessionWithHistory {
    snapshot::Dialect dialect = snapshot::Dialect::six;
    std::vector<PastSnapshot> snapshots;

    [[nodiscard]] const PastSnapshot* find_snapshot(snapshot::Tick tick) const {
        const auto found = std::ranges::find(snapshots, tick, &PastSnapshot::tick);
        return found == snapshots.end() ? nullptr : &*found;
    }
};

class SessionsWithHistory final : public TypedRecordSink<SessionsWithHistory> {
  public:
    void on(const record::SnapshotRecord& seen) {
        if (!seen.rebuilt) {
            return;
        }
        if (seen.ordinal == 0) {
            sessions_.erase(seen.head.session); // another map, or another connection
        }
        SessionWithHistory& session = sessions_[seen.head.session];
        if (!session.snapshots.empty() && session.snapshots.back().tick >= seen.tick) {
            return; // the snapshot arrived out of order
        }
        session.dialect = seen.types->dialect();
        PastSnapshot& shown = session.snapshots.emplace_back();
        shown.tick = seen.tick;
        shown.base = seen.delta_tick;
        shown.items = to_snapshot(to_items(seen.items));
    }

    [[nodiscard]] std::vector<SessionWithHistory> take_sessions() {
        std::vector<SessionWithHistory> all;
        for (auto& [number, session] : sessions_) {
            if (session.snapshots.size() > kBefore + kAfter) {
                all.push_back(std::move(session));
            }
        }
        return all;
    }

  private:
    std::map<std::uint32_t, SessionWithHistory> sessions_;
};

std::vector<SessionWithHistory> read_sessions(const std::string& capture) {
    SessionsWithHistory sink;
    TrafficInspector run{{.emits_message_records = false}, sink};
    run.play(read_traffic(capture));
    return sink.take_sessions();
}

/// A delta's body with one flipped bit, and the value to which the bit belongs.
struct FlippedBit {
    ItemKey key;
    std::uint32_t index = 0;
    Bytes body;
};

/// Flips a bit of a random value's int, or a bit of its encoding that is not a length bit.
std::optional<FlippedBit> flip_random_bit(const Bytes& body, snapshot::Dialect dialect,
                                          std::mt19937& random) {
    snapshot::Delta delta;
    REQUIRE(snapshot::decode_delta(body, delta, snapshot::agreed_sizes(dialect)));
    std::size_t count = 0;
    for (const snapshot::DeltaUpdate& update : delta.updates) {
        count += update.size;
    }
    if (count == 0) {
        return std::nullopt;
    }
    std::size_t chosen = random_below(random, count);
    const auto update = std::ranges::find_if(delta.updates, [&](const snapshot::DeltaUpdate& each) {
        const bool here = chosen < each.size;
        chosen -= here ? 0 : each.size;
        return here;
    });
    const auto at = update->begin + static_cast<std::uint32_t>(chosen);
    FlippedBit flip{.key = update->key, .index = static_cast<std::uint32_t>(chosen), .body = body};
    const std::size_t begin = snapshot::IntOffsets{body}.byte_offset(at);
    const std::size_t size = snapshot::IntOffsets{body}.byte_offset(at + 1) - begin;
    if (random_below(random, 2) == 0) {
        const std::size_t byte = random_below(random, size);
        const std::size_t bits = byte + 1 == snapshot::kMaxVarintBytes ? 4 : 7;
        flip.body[begin + byte] ^= static_cast<std::byte>(1U << random_below(random, bits));
        return flip;
    }
    const auto bit = std::uint32_t{1} << random_below(random, 32);
    Bytes encoded;
    snapshot::encode_varint(
        static_cast<std::int32_t>(static_cast<std::uint32_t>(delta.ints[at]) ^ bit), encoded);
    const auto from = flip.body.begin() + static_cast<std::ptrdiff_t>(begin);
    flip.body.erase(from, from + static_cast<std::ptrdiff_t>(size));
    flip.body.insert(flip.body.begin() + static_cast<std::ptrdiff_t>(begin), encoded.begin(),
                     encoded.end());
    return flip;
}

/// The findings about one flipped bit.
struct FlipFindings {
    bool mismatched = false;
    bool named = false;
    bool named_right = false;
    bool exact = false;
    bool likely = false;
    bool explained_right = false;
    bool is_ambiguous = false;

    [[nodiscard]] bool is_wrong() const { return (exact || likely) && !explained_right; }
};

class FlipFindingCollector final : public TypedRecordSink<FlipFindingCollector> {
  public:
    explicit FlipFindingCollector(snapshot::Dialect dialect) { types_.start_connection(dialect); }

    /// Sets the flipped bit with which later findings are compared.
    void expect_flip(const FlippedBit& flip) { flip_ = &flip; }

    void on(const record::FindingRecord& finding) {
        if (flip_ == nullptr) {
            return;
        }
        if (finding.id == record::FindingId::snapshot_crc_mismatch) {
            verdict_.mismatched = true;
            verdict_.named = finding.item.has_value();
            verdict_.named_right = verdict_.named && is_right(*finding.item, finding.field);
            check_candidates(finding);
        } else if (finding.id == record::FindingId::snapshot_explained) {
            verdict_.exact = finding.name == "exact";
            verdict_.likely = finding.name == "likely";
            verdict_.is_ambiguous = finding.name == "ambiguous";
            CHECK((verdict_.exact || verdict_.likely) == finding.item.has_value());
            verdict_.explained_right = finding.item && is_right(*finding.item, finding.field);
            CHECK((!finding.item || *finding.offset < finding.bytes.size()));
            check_candidates(finding);
        }
    }

    [[nodiscard]] const FlipFindings& findings() const { return verdict_; }

  private:
    static void check_candidates(const record::FindingRecord& finding) {
        CHECK(finding.candidates.has_value() ==
              (finding.name == "ambiguous" || finding.name == "likely"));
        if (finding.candidates) {
            CHECK(finding.candidates->count >= finding.candidates->likeliest.size());
            CHECK(!finding.candidates->likeliest.empty());
        }
    }

    [[nodiscard]] bool is_right(const record::FindingItem& item, std::string_view field) const {
        // Types that a descriptor names have no fields here.
        const snapshot::ObjectSpec* object = types_.object(flip_->key.type);
        return item.type_id == flip_->key.type && item.id == flip_->key.id &&
               (object == nullptr || field == inspect::name_of_int(object, flip_->index));
    }

    record::ItemTypes types_;
    const FlippedBit* flip_ = nullptr;
    FlipFindings verdict_;
};

/// Inspects a part of a session up to a damaged delta, and the right snapshots after it.
class SessionReplay {
  public:
    SessionReplay(const SessionWithHistory& session, std::size_t at)
        : session_{&session}, at_{at}, verdicts_{session.dialect}, script_{{}, verdicts_} {
        if (session.dialect == snapshot::Dialect::seven) {
            script_.join_seven();
        } else {
            script_.join_ddnet();
        }
        script_.enter_game();
    }

    /// Flips a bit of the damaged delta. Returns nullopt if that delta cannot be sent.
    std::optional<FlipFindings> replay_with_flip(std::mt19937& random) {
        const PastSnapshot& shown = session_->snapshots[at_];
        const PastSnapshot* base = session_->find_snapshot(shown.base);
        if (base == nullptr && shown.base != kNoBase) {
            return std::nullopt;
        }
        const auto sizes = snapshot::agreed_sizes(session_->dialect);
        const snapshot::SnapshotView from =
            base == nullptr ? snapshot::SnapshotView{} : base->items.view();
        const auto flip = flip_random_bit(snapshot::encode_delta(from, shown.items.view(), sizes),
                                          session_->dialect, random);
        if (!flip || (flip->body.size() > snapshot::kMaxPartSize &&
                      session_->dialect == snapshot::Dialect::seven)) {
            return std::nullopt;
        }
        const std::size_t first = at_ - std::min(at_, kBefore);
        if (base != nullptr && base->tick < session_->snapshots[first].tick) {
            replay_snapshot(*base);
        }
        for (std::size_t i = first; i < at_; ++i) {
            replay_snapshot(session_->snapshots[i]);
        }
        verdicts_.expect_flip(*flip);
        wait_for_tick(shown.tick);
        send_body(shown, shown.base, flip->body);
        for (std::size_t i = at_ + 1; i <= at_ + kAfter; ++i) {
            replay_snapshot(session_->snapshots[i]);
        }
        return verdicts_.findings();
    }

  private:
    void wait_for_tick(snapshot::Tick tick) {
        constexpr record::Timestamp kTick = 20'000'000;
        if (last_ != kNoBase) {
            script_.pause((tick - last_) * kTick);
        }
        last_ = tick;
    }

    void replay_snapshot(const PastSnapshot& shown) {
        wait_for_tick(shown.tick);
        const snapshot::SnapshotView from =
            last_right_ == nullptr ? snapshot::SnapshotView{} : last_right_->items.view();
        send_body(shown, last_right_ == nullptr ? kNoBase : last_right_->tick,
                  snapshot::encode_delta(from, shown.items.view(),
                                         snapshot::agreed_sizes(session_->dialect)));
        last_right_ = &shown;
    }

    void send_body(const PastSnapshot& shown, snapshot::Tick base, const Bytes& body) {
        script_.snap_body(shown.tick, base, shown.items.view().checksum(), body);
    }

    const SessionWithHistory* session_;
    std::size_t at_;
    FlipFindingCollector verdicts_;
    SessionScript script_;
    snapshot::Tick last_ = kNoBase;
    const PastSnapshot* last_right_ = nullptr;
};

} // namespace

TEST_CASE("a flipped bit is found or called ambiguous; a wrong value is rarely named") {
    using Totals = std::map<std::string_view, std::size_t>;
    Totals all;
    const std::size_t wanted = 100 * rounds();
    for (const std::string capture : {"bench-4.pcap.gz", "ddnet-20.1.1-race.pcap.gz",
                                      "teeworlds-0.7.5.pcap.gz", "vanilla-0.6.5-ctf.pcap.gz"}) {
        CAPTURE(capture);
        std::mt19937 random{41};
        const std::vector<SessionWithHistory> sessions = read_sessions(capture);
        std::vector<std::size_t> ends;
        for (const SessionWithHistory& session : sessions) {
            ends.push_back((ends.empty() ? 0 : ends.back()) + session.snapshots.size());
        }
        Totals here;
        while (here["tried"] < wanted) {
            const std::size_t chosen = random_below(random, ends.back());
            const auto end = std::upper_bound(ends.begin(), ends.end(), chosen);
            const SessionWithHistory& session =
                sessions[static_cast<std::size_t>(end - ends.begin())];
            const std::size_t at = chosen - (*end - session.snapshots.size());
            if (at == 0 || at + kAfter >= session.snapshots.size()) {
                continue;
            }
            const auto verdict = SessionReplay{session, at}.replay_with_flip(random);
            if (!verdict) {
                continue;
            }
            CHECK(verdict->mismatched);
            for (const auto& [what, is_so] :
                 {std::pair{"tried", true}, std::pair{"named at once", verdict->named},
                  std::pair{"named wrong", verdict->named && !verdict->named_right},
                  std::pair{"exact", verdict->exact},
                  std::pair{"exact and wrong", verdict->exact && verdict->is_wrong()},
                  std::pair{"right", verdict->explained_right},
                  std::pair{"wrong", verdict->is_wrong()},
                  std::pair{"ambiguous", verdict->is_ambiguous}}) {
                here[what] += is_so ? 1U : 0U;
                all[what] += is_so ? 1U : 0U;
            }
        }
        std::string text;
        for (const auto& [what, count] : here) {
            text += fmt::format(", {} {}", what, count);
        }
        MESSAGE(capture, text);
    }
    const std::size_t tried = all["tried"];
    CHECK(1000 * all["named wrong"] <= tried);
    CHECK(all["exact and wrong"] == 0);
    CHECK(1000 * all["wrong"] <= tried);
    CHECK(100 * all["right"] >= 92 * tried);
    CHECK(all["right"] + all["wrong"] + all["ambiguous"] == tried);
}

using inspect::ValueHistory;
using inspect::ValueProbability;
using snapshot::FieldKind;
using snapshot::FieldSpec;
using Points = std::vector<ValueHistory::ValueAtTick>;

namespace {

const FieldSpec kTruth{.name = "local", .kind = FieldKind::boolean};
const FieldSpec kWeapon{
    .name = "weapon", .kind = FieldKind::named, .names = &snapshot::names::weapon};

const Points kStood{{98, 5}, {96, 5}, {94, 5}};
const Points kStands{{102, 5}, {104, 5}, {106, 5}};
const Points kCame{{98, 90}, {96, 80}, {94, 70}};
const Points kGoes{{102, 110}, {104, 120}, {106, 130}};

} // namespace

TEST_CASE("values that fit the neighbouring snapshots are likelier, by this factor") {
    struct Row {
        std::string_view name;
        Points before;
        Points after;
        const FieldSpec* field;
        std::int32_t likely;
        std::int32_t unlikely;
        double times; ///< minimum ratio of the probabilities
    };

    const Row rows[] = {
        {"what stood stays", kStood, kStands, nullptr, 5, 6, 200},
        {"what moves, moves on", kCame, kGoes, nullptr, 100, 101, 1.5},
        {"and far more so", kCame, kGoes, nullptr, 100, 164, 1000},
        {"what is new is as it will be", {}, kStands, nullptr, 5, 6, 20},
        {"what goes is as it was", kStood, {}, nullptr, 5, 6, 20},
        {"an event is no number of millions", {}, {}, nullptr, 1000, 1000 + (1 << 24), 1000},
        {"a truth value", {}, {}, &kTruth, 1, 2, 100},
        {"a name", {}, {}, &kWeapon, 5, 6, 100},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const ValueProbability plausibility{
            {.tick = 100, .before = row.before, .after = row.after, .field = row.field}};
        CHECK(plausibility.probability_of(row.likely) >
              row.times * plausibility.probability_of(row.unlikely));
    }
}

TEST_CASE("without evidence two values are about equally likely") {
    struct Row {
        std::string_view name;
        Points before;
        Points after;
        std::int32_t one;
        std::int32_t other;
    };

    const Row rows[] = {
        {"an event's low bits", {}, {}, 1000, 1016},
        {"before or after a step", kStood, {{102, 7}, {104, 7}}, 5, 7},
        {"what jumps about",
         {{98, 50}, {96, -80}, {94, 3}},
         {{102, -60}, {104, 90}, {106, 1}},
         10,
         14},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const ValueProbability plausibility{
            {.tick = 100, .before = row.before, .after = row.after}};
        CHECK(plausibility.probability_of(row.one) < 3 * plausibility.probability_of(row.other));
        CHECK(plausibility.probability_of(row.other) < 3 * plausibility.probability_of(row.one));
    }
}

TEST_CASE("frequent changes and values seen before are likelier") {
    const ValueHistory calm{.tick = 100, .before = kStood, .after = kStands, .change_rate = 0.001};
    ValueHistory lively = calm;
    lively.change_rate = 0.3;
    ValueHistory usual = calm;
    const Ints seen{5, 6};
    usual.usual_values = seen;
    CHECK(ValueProbability{lively}.probability_of(6) >
          10 * ValueProbability{calm}.probability_of(6));
    CHECK(ValueProbability{usual}.probability_of(6) >
          1.5 * ValueProbability{calm}.probability_of(6));
}

TEST_CASE("events are likelier near characters") {
    const Ints positions{3000};
    const ValueProbability plausibility{{.tick = 100, .character_coordinates = positions}};
    CHECK(plausibility.probability_of(3010) > 20 * plausibility.probability_of(2000));
}

TEST_CASE("every value has a probability, also the extreme ones") {
    const Points ends{{98, INT32_MIN}, {96, INT32_MAX}};
    const Points others{{102, INT32_MAX}, {104, INT32_MIN}};
    for (const ValueHistory& course :
         {ValueHistory{.tick = 100}, ValueHistory{.tick = 100, .before = ends},
          ValueHistory{.tick = 100, .before = ends, .after = others}}) {
        const ValueProbability plausibility{course};
        for (const std::int32_t value : {0, INT32_MIN, INT32_MAX}) {
            CHECK(plausibility.probability_of(value) > 0);
            CHECK(plausibility.probability_of(value) <= 1);
        }
    }
}

TEST_CASE("ints have the names of their object's fields") {
    const auto* const info =
        snapshot::find_object(snapshot::kClientInfoType, snapshot::Dialect::six);
    const auto* const character =
        snapshot::find_object(snapshot::kCharacterType, snapshot::Dialect::six);
    CHECK(inspect::name_of_int(character, 1) == "x");
    CHECK(inspect::name_of_int(character, 22) == "int_22");
    CHECK(inspect::name_of_int(info, 1) == "name[1]");
    CHECK(inspect::name_of_int(nullptr, 0) == "int_0");
}
