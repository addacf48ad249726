#pragma once

#include "proxy/admin/feed.h"
#include "proxy/game/input.h"
#include "proxy/record/records.h"
#include "proxy/run/page_items.h"
#include "snapshot/object_set.h"

#include <cstdint>
#include <string>

namespace tw::run {

/// Passes on what sessions are told, and their snapshots only while somebody looks at the world: until
/// then they cost one load each.
class WatchedInputs final : public game::InputSink {
  public:
    /// Both have to outlive it.
    WatchedInputs(const admin::Watch& watch, game::InputSink& to) : watch_{&watch}, to_{&to} {}

    void on_input(const game::Input& input) override {
        if (input.kind != game::Input::Kind::snapshot || watch_->world()) {
            to_->on_input(input);
        }
    }

  private:
    const admin::Watch* watch_;
    game::InputSink* to_;
};

/// Takes the worlds of a run and gathers what viewers of the page look at; nothing while nobody does.
/// Of several servers the one with the most sessions is shown, which the page is told the name of.
class PageWorld final : public record::RecordSink {
  public:
    /// Both have to outlive it.
    PageWorld(admin::Feed& feed, const snapshot::ObjectSet& objects)
        : feed_{&feed}, objects_{&objects}, items_{objects} {}

    void on_record(const record::Record& record) override;

    /// Gives the page what there is. Never waits: when the page is not ready, the next call does.
    void hand_over();

  private:
    [[nodiscard]] bool is_shown(const record::WorldRecord& world);
    void write_line(const record::WorldRecord& world);

    admin::Feed* feed_;
    const snapshot::ObjectSet* objects_;
    PageItems items_;
    admin::Batch batch_;
    std::string server_; ///< whose world is shown
    std::uint32_t views_ = 0;
    record::Timestamp shown_ = 0; ///< when its last one was
    snapshot::Tick tick_ = snapshot::kNoBase;
    record::Timestamp lined_ = 0; ///< when the last line was
};

} // namespace tw::run
