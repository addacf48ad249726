#include "proxy/run/story_keeper.h"

#include <utility>

namespace tw::run {

/// What JSON lines are written to.
class StoryKeeper::Lines final : public sink::Output {
  public:
    void write(std::string_view block) override { text += block; }

    std::string text;
};

StoryKeeper::~StoryKeeper() = default;

StoryKeeper::StoryKeeper(const snapshot::ObjectSet& objects)
    : lines_{std::make_unique<Lines>()}, json_{
                                             {.items = sink::ItemChoice::all, .objects = &objects},
                                             *lines_} {}

std::string StoryKeeper::line_of(const record::Record& record) {
    json_.on_record(record);
    json_.flush();
    return std::exchange(lines_->text, {});
}

void StoryKeeper::on_record(const record::Record& record) {
    if (const auto* const* snapshot = std::get_if<const record::SnapshotRecord*>(&record)) {
        see(**snapshot);
    } else if (const auto* const* finding = std::get_if<const record::FindingRecord*>(&record)) {
        see(**finding);
    } else if (const auto* const* session = std::get_if<const record::SessionRecord*>(&record)) {
        see(**session);
    } else if (const auto* const* map = std::get_if<const record::MapRecord*>(&record)) {
        see(**map);
    }
}

void StoryKeeper::see(const record::SessionRecord& record) {
    Known& known = sessions_[record.head.session];
    end(record.head.session, known);
    known.right.reset();
    if (record.event == record::SessionEvent::close) {
        sessions_.erase(record.head.session); // one that begins anew says so
        return;
    }
    known.session = line_of(&record);
}

void StoryKeeper::see(const record::MapRecord& record) {
    if (const auto found = sessions_.find(record.head.session); found != sessions_.end()) {
        found->second.map = line_of(&record);
    }
}

void StoryKeeper::see(const record::SnapshotRecord& record) {
    const auto found = sessions_.find(record.head.session);
    if (found == sessions_.end()) {
        return;
    }
    Known& known = found->second;
    if (known.telling) [[unlikely]] {
        if (record.rebuilt) {
            tell_around(record, known);
            end(record.head.session, known);
        } else {
            append(*known.telling, known.telling->since, line_of(&record));
        }
    }
    if (record.rebuilt) {
        known.right =
            Right{.head = record.head, .tick = record.tick, .delta_tick = record.delta_tick};
    }
}

void StoryKeeper::tell_around(const record::SnapshotRecord& record, Known& known) {
    Telling& telling = *known.telling;
    if (known.right && record.previous) {
        const record::SnapshotRecord before{.head = known.right->head,
                                            .tick = known.right->tick,
                                            .delta_tick = known.right->delta_tick,
                                            .rebuilt = true,
                                            .items = *record.previous,
                                            .types = record.types,
                                            .world = record.world,
                                            .roster = record.roster};
        append(telling, telling.before, line_of(&before));
    }
    append(telling, telling.since, line_of(&record));
}

void StoryKeeper::append(Telling& telling, std::string& to, const std::string& line) {
    if (telling.before.size() + telling.since.size() + line.size() <= kMaxBytes) {
        to += line;
    }
}

void StoryKeeper::see(const record::FindingRecord& record) {
    constexpr std::string_view kFamily = "snapshot.";
    const auto found = sessions_.find(record.head.session);
    const record::FindingInfo& info = record::finding_info(record.id);
    if (found == sessions_.end() || !record.tick || !info.name.starts_with(kFamily)) {
        return;
    }
    Known& known = found->second;
    const bool same = known.telling && known.telling->tick == *record.tick;
    if (!same) {
        const record::Timestamp time = record.head.time;
        const bool early = begun_ && time >= *begun_ && time - *begun_ < kPause;
        if (info.severity == record::Severity::info || early) {
            return;
        }
        end(record.head.session, known);
        begun_ = time;
        known.telling = std::make_unique<Telling>(Telling{.tick = *record.tick});
    }
    append(*known.telling, known.telling->since, line_of(&record));
}

admin::Account StoryKeeper::account(std::uint32_t session, const Known& known) {
    const Telling& telling = *known.telling;
    return {.session = session,
            .tick = telling.tick,
            .lines = std::make_shared<const std::string>(known.session + known.map +
                                                         telling.before + telling.since)};
}

void StoryKeeper::end(std::uint32_t session, Known& known) {
    if (!known.telling) {
        return;
    }
    if (accounts_.size() == kKept) {
        accounts_.pop_front();
    }
    accounts_.push_back(account(session, known));
    known.telling.reset();
}

void StoryKeeper::fill(admin::View& view) const {
    view.accounts.assign(accounts_.begin(), accounts_.end());
    for (const auto& [number, known] : sessions_) {
        if (known.telling) {
            view.accounts.push_back(account(number, known));
        }
    }
}

} // namespace tw::run
