#include "tests/support/snapshot_oracle.h"

#include "proxy/wire/huffman.h"
#include "snapshot/delta.h"
#include "tests/bench/plain_decoder.h"
#include "tests/support/record_sink.h"
#include "tests/support/session_script.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace tw::test {

namespace {

using snapshot::kNoBase;
using snapshot::Tick;

bool have_same_items(const Items& wanted, const snapshot::SnapshotView& got) {
    return to_snapshot(wanted).view() == got;
}

/// Compares the decoded snapshots with the expected ones.
class ComparingSink final : public TypedRecordSink<ComparingSink> {
  public:
    explicit ComparingSink(const std::map<Tick, Items>& sent) : sent_{&sent} {}

    void on(const record::SnapshotRecord& seen) {
        const auto wanted = sent_->find(seen.tick);
        if (seen.rebuilt && (!rebuilt.insert(seen.tick).second || wanted == sent_->end() ||
                             !have_same_items(wanted->second, seen.items))) {
            difference = "snapshot " + std::to_string(seen.tick) + " is not what was sent";
        }
    }

    std::set<Tick> rebuilt;
    std::optional<std::string> difference;

  private:
    const std::map<Tick, Items>* sent_;
};

/// One part of a snapshot, or a whole snapshot in one message.
struct Slice {
    Tick tick = 0;
    Tick base = kNoBase;
    std::size_t part = 0;
    std::size_t num_parts = 1;
    bool empty = false;
};

/// The result that a receiver must have, by the rules of the protocol.
class ExpectedResult {
  public:
    void take_slice(const Slice& slice) {
        parts += slice.empty ? 0 : 1;
        const bool in_one = slice.num_parts == 1;
        const bool has_base = slice.base == kNoBase || rebuilt.contains(slice.base);
        auto& had = had_[slice.tick];
        const bool again = !had.insert(slice.part).second;
        // A repeated whole snapshot is tried again if its base has arrived meanwhile.
        if (rebuilt.contains(slice.tick) || (again && !(in_one && has_base))) {
            ++repeated;
            return;
        }
        num_parts_[slice.tick] = slice.num_parts;
        if (had.size() < slice.num_parts) {
            return;
        }
        if (has_base) {
            rebuilt.insert(slice.tick);
        } else {
            ++baseless;
        }
    }

    [[nodiscard]] std::size_t incomplete_count() const {
        return static_cast<std::size_t>(std::ranges::count_if(had_, [this](const auto& each) {
            return each.second.size() < num_parts_.at(each.first);
        }));
    }

    std::set<Tick> rebuilt;
    std::size_t parts = 0;
    std::size_t baseless = 0;
    std::size_t repeated = 0;

  private:
    std::map<Tick, std::set<std::size_t>> had_;
    std::map<Tick, std::size_t> num_parts_;
};

/// A server, its network, and the session that inspects the traffic.
class LossySession {
  public:
    explicit LossySession(const Choose& choose)
        : choose_{&choose}, world_{choose}, seen_{sent_}, script_{{}, seen_} {
        script_.join_ddnet();
        script_.enter_game();
    }

    void step() {
        world_.step();
        tick_ += 1 + static_cast<Tick>((*choose_)(3));
        const Tick base = choose_base();
        const Items from = base == kNoBase ? Items{} : sent_.at(base);
        script_.compression = static_cast<wire::Compression>((*choose_)(3));
        if (from == world_.items() && base != kNoBase) {
            sent_[tick_] = world_.items();
            transmit({.tick = tick_, .base = base, .empty = true}, snap_empty(tick_, base));
            return;
        }
        const Bytes body = delta_body(from, world_.items());
        const auto crc = checksum_of(world_.items());
        if (body.size() > snapshot::kMaxParts * snapshot::kMaxPartSize) {
            return; // a server would send nothing
        }
        sent_[tick_] = world_.items();
        const auto parts = snap_messages(tick_, base, crc, body);
        for (std::size_t i = 0; i < parts.size(); ++i) {
            transmit({.tick = tick_, .base = base, .part = i, .num_parts = parts.size()}, parts[i]);
        }
    }

    [[nodiscard]] OracleRun end() {
        while (!line_.empty()) {
            deliver_first();
        }
        script_.close("end of capture");
        const record::SessionStats stats = script_.session().totals();
        OracleRun play{.difference = seen_.difference,
                       .sent = sent_.size(),
                       .rebuilt = expected_.rebuilt.size(),
                       .baseless = expected_.baseless,
                       .incomplete = expected_.incomplete_count(),
                       .repeated = expected_.repeated};
        const auto agree = [&](const char* what, std::size_t wanted, std::uint64_t got) {
            if (wanted != got && !play.difference) {
                play.difference = std::string{what} + ": " + std::to_string(wanted) +
                                  " expected, " + std::to_string(got) + " counted";
            }
        };
        if (seen_.rebuilt != expected_.rebuilt && !play.difference) {
            play.difference = "others were rebuilt than those that came";
        }
        agree("verified", play.rebuilt, stats.verified);
        agree("unknown_base", play.baseless, stats.unknown_base);
        agree("total", play.rebuilt + play.baseless, stats.snapshots);
        agree("incomplete", play.incomplete, stats.incomplete);
        agree("repeated", play.repeated, stats.repeated);
        agree("parts", expected_.parts, stats.parts);
        agree("mismatched and undecodable", 0, stats.mismatched + stats.undecodable);
        return play;
    }

  private:
    struct Datagram {
        Slice slice;
        Bytes bytes;
    };

    /// Returns a base: usually a snapshot that arrived, as acknowledgements tell a server;
    /// sometimes any recent one.
    [[nodiscard]] Tick choose_base() {
        constexpr Tick kOldest = 60;
        const auto first = sent_.lower_bound(tick_ - kOldest);
        std::vector<Tick> choices;
        const bool any = (*choose_)(8) == 0;
        for (auto each = first; each != sent_.end(); ++each) {
            if (any || expected_.rebuilt.contains(each->first)) {
                choices.push_back(each->first);
            }
        }
        return choices.empty() || (*choose_)(10) == 0 ? kNoBase
                                                      : choices[(*choose_)(choices.size())];
    }

    void transmit(const Slice& slice, const Bytes& message) {
        Datagram datagram{slice, script_.pack(wire::Direction::s2c, {non_vital(message)})};
        const std::size_t fate = (*choose_)(20);
        if (fate != 0) { // 0: the datagram is lost
            const bool late = fate == 1 && !line_.empty();
            line_.insert(late ? line_.end() - 1 : line_.end(), datagram);
        }
        if (fate == 2) {
            line_.push_back(std::move(datagram));
        }
        constexpr std::size_t kOnTheWay = 3;
        while (line_.size() > kOnTheWay) {
            deliver_first();
        }
    }

    void deliver_first() {
        script_.send_datagram(wire::Direction::s2c, line_.front().bytes);
        expected_.take_slice(line_.front().slice);
        line_.pop_front();
    }

    const Choose* choose_;
    RandomWorld world_;
    std::map<Tick, Items> sent_;
    ComparingSink seen_;
    SessionScript script_;
    ExpectedResult expected_;
    std::deque<Datagram> line_;
    Tick tick_ = 100;
};

/// Damages bytes at random; in one of four cases not at all.
void damage_randomly(const Choose& choose, Bytes& bytes) {
    for (std::size_t left = choose(4); left > 0 && !bytes.empty(); --left) {
        const std::size_t at = choose(bytes.size());
        const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
        switch (choose(5)) {
        case 0:
            bytes[at] ^= static_cast<std::byte>(1U << choose(8));
            break;
        case 1:
            bytes.resize(at);
            break;
        case 2:
            bytes.insert(place, static_cast<std::byte>(choose(256)));
            break;
        case 3:
            bytes[at] = static_cast<std::byte>(choose(256));
            break;
        default:
            bytes.erase(place);
            break;
        }
    }
}

Bytes choose_bytes(const Choose& choose, std::size_t most) {
    Bytes bytes(choose(most));
    for (std::byte& byte : bytes) {
        byte = static_cast<std::byte>(choose(4) == 0 ? choose(256) : 0);
    }
    return bytes;
}

/// Returns the plain decoder's items in the order of their keys.
Items sorted_items(const bench::plain::Items& plain) {
    Items items;
    for (const auto& item : plain.items) {
        const auto begin = plain.ints.begin() + item.begin;
        items[snapshot::ItemKey::from_packed(static_cast<std::uint32_t>(item.key))] = {
            begin, begin + item.size};
    }
    return items;
}

} // namespace

OracleRun play_worlds(const Choose& choose, std::size_t snapshots) {
    LossySession play{choose};
    for (std::size_t i = 0; i < snapshots; ++i) {
        play.step();
    }
    return play.end();
}

OracleComparison compare_huffman(const Choose& choose, std::size_t rounds) {
    static const bench::plain::Huffman plain;
    constexpr std::size_t kMost = 300;
    OracleComparison comparison;
    for (std::size_t i = 0; i < rounds && !comparison.difference; ++i) {
        const Bytes text = choose_bytes(choose, kMost);
        Bytes packed =
            wire::huffman_compress(text, choose(2) == 0 ? wire::HuffmanEnding::with_zero_byte
                                                        : wire::HuffmanEnding::without_zero_byte);
        damage_randomly(choose, packed);
        Bytes ours(choose(kMost));
        Bytes theirs(ours.size());
        const auto size = wire::huffman_decompress(packed, ours);
        const auto plain_size = plain.decompress(packed, theirs);
        ++(size ? comparison.accepted : comparison.rejected);
        if (size.has_value() != plain_size.has_value()) {
            comparison.difference = "only one takes the Huffman data of round " + std::to_string(i);
        } else if (size &&
                   (*size != *plain_size ||
                    !std::equal(ours.begin(), ours.begin() + static_cast<std::ptrdiff_t>(*size),
                                theirs.begin()))) {
            comparison.difference = "the Huffman data of round " + std::to_string(i) + " differ";
        }
    }
    return comparison;
}

OracleComparison compare_deltas(const Choose& choose, std::size_t rounds) {
    constexpr Tick kBase = 10;
    constexpr Tick kNext = 12;
    OracleComparison comparison;
    RandomWorld world{choose};
    snapshot::Delta delta;
    for (std::size_t i = 0; i < rounds && !comparison.difference; ++i) {
        const Items from = world.items();
        world.step();
        Bytes body = delta_body(from, world.items());
        damage_randomly(choose, body);
        bench::plain::Session plain;
        if (!plain.decode(kBase, kNoBase, delta_body({}, from))) {
            comparison.difference = "the plain decoder does not take what is right";
            break;
        }
        const bool theirs = plain.decode(kNext, kBase, body).has_value();
        const snapshot::Snapshot base = to_snapshot(from);
        snapshot::Snapshot next;
        snapshot::DeltaWarnings warnings;
        const auto read = snapshot::decode_delta(body, delta, snapshot::kAgreedSizes);
        const auto ours = read ? snapshot::apply_delta(base.view(), delta, next, warnings) : read;
        ++(ours ? comparison.accepted : comparison.rejected);
        const std::string round = " in round " + std::to_string(i);
        if (ours.has_value() != theirs) {
            comparison.difference =
                (theirs ? "we alone reject: " +
                              std::string{snapshot::error_info(ours.error().code).name}
                        : "the plain decoder alone rejects") +
                round;
        } else if (ours && !have_same_items(sorted_items(*plain.find(kNext)), next.view())) {
            comparison.difference = "both take it, and differ" + round;
        }
    }
    return comparison;
}

} // namespace tw::test
