#pragma once

#include "proxy/admin/feed.h"
#include "proxy/admin/frame.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tw::admin {

/// Frames a second that a viewer can ask for; kEveryTick and more: a frame for each snapshot.
inline constexpr int kUsualPace = 20;
inline constexpr int kEveryTick = 50;

/// A frame, as what changed since the one before of its pace and, made when somebody needs it, as all
/// there is.
struct Frame {
    int pace = kUsualPace;
    std::shared_ptr<const std::string> delta{};
    std::function<std::shared_ptr<const std::string>()> full{}; ///< for as long as the call lasts
    bool bars_only = false; ///< nothing new to show: `delta` has the bars of what was not rebuilt
};

/// A snapshot as one block of ints.
struct KeptSnapshot {
    std::vector<std::int32_t> ints{};
    std::size_t num_items = 0;
    std::size_t num_ints = 0;
};

/// The latest snapshot of one session, and frames of it for each pace that somebody asked for.
class Scene {
  public:
    Scene(std::uint32_t session, const snapshot::ObjectSet& objects)
        : session_{session}, places_{objects} {}

    /// From now on frames are made at these paces, and at no others.
    void set_paces(const std::vector<int>& paces);

    /// Takes the next snapshot, and shows each frame that is due.
    void take(const SeenSnapshot& seen, const snapshot::SnapshotView& items,
              const std::function<void(const Frame&)>& show);

    /// The latest one that was rebuilt; nothing until there is one.
    [[nodiscard]] const std::optional<SeenSnapshot>& latest() const { return latest_; }

    [[nodiscard]] snapshot::SnapshotView items() const { return view_of(now_); }

    /// Counts those that were rebuilt.
    [[nodiscard]] std::uint64_t taken() const { return taken_; }

  private:
    /// Snapshots between two frames: half a minute's, if none can be rebuilt.
    static constexpr std::size_t kMaxBars = 1500;

    struct Channel {
        /// Whether a frame is to be made of what came at this time; then the next one is due later.
        [[nodiscard]] bool take_turn(std::int64_t time);

        int pace = kUsualPace;
        std::uint64_t number = 0;
        std::int64_t due = 0; ///< when its next frame is
        std::optional<KeptSnapshot> sent{};
        std::vector<Bar> bars{};
    };

    [[nodiscard]] static snapshot::SnapshotView view_of(const KeptSnapshot& kept) {
        return snapshot::SnapshotView::of_block(kept.ints, kept.num_items, kept.num_ints);
    }

    void show_bars(Channel& channel, const std::function<void(const Frame&)>& show) const;
    void show_frame(Channel& channel, const std::function<void(const Frame&)>& show);

    std::uint32_t session_;
    ObjectPlaces places_;
    std::optional<SeenSnapshot> latest_;
    KeptSnapshot now_;
    std::uint64_t taken_ = 0;
    std::vector<Channel> channels_;
};

} // namespace tw::admin
