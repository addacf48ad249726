#pragma once

#include "proxy/game/input.h"
#include "proxy/record/records.h"
#include "snapshot/raw_vector.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace tw::run {

/// Copies of what happens to sessions, on the way from who decodes to who makes worlds. Bounded: what
/// finds no room is dropped and counted, and nobody waits. Allocates nothing once it has grown.
class WorldQueue final : public game::InputSink {
  public:
    /// Half a second of 64 players whose snapshots have 32 KiB each.
    static constexpr std::size_t kMaxBytes = std::size_t{32} << 20U;
    /// Inputs that wait; what they hold is bounded above. Beyond it a snapshot or a message is dropped,
    /// and beyond twice as many anything: without the end of a session its world would wait for it in vain.
    static constexpr std::size_t kMaxInputs = 65536;

    /// What was taken out, and is read one by one.
    class Batch {
      public:
        [[nodiscard]] bool empty() const { return next_ == entries_.size(); }

        /// When the next one happened. Precondition: there is one.
        [[nodiscard]] record::Timestamp time() const { return entries_[next_].input.time; }

        /// Precondition: there is one.
        void pass_on(game::InputSink& to);

      private:
        friend class WorldQueue;

        /// What an input points at.
        struct Named {
            std::string server;
            std::string name;
            record::MapRecord map;
        };

        struct Entry {
            game::Input input;
            std::size_t begin = 0; ///< of the items' block, or the message's bytes, in ints_
            std::size_t num_items = 0;
            std::size_t num_ints = 0;
            std::size_t num_bytes = 0;
            std::shared_ptr<const Named> named{};
            std::shared_ptr<const record::World> world{};
            std::shared_ptr<const record::Roster> roster{};
        };

        void clear();

        [[nodiscard]] std::size_t bytes() const { return ints_.size() * sizeof(std::int32_t); }

        std::vector<Entry> entries_;
        snapshot::RawVector<std::int32_t> ints_;
        std::size_t next_ = 0;
        /// Nothing comes that happened before.
        record::Timestamp until_ = 0;
    };

    void on_input(const game::Input& input) override;

    /// Whether who fills it has nothing to do: what happens now comes in a moment, and nothing of
    /// before.
    void rest(bool resting) { resting_.store(resting, std::memory_order_release); }

    [[nodiscard]] bool resting() const { return resting_.load(std::memory_order_acquire); }

    /// Takes all there is. Precondition: the batch is empty. Returns up to when that is all.
    record::Timestamp take(Batch& batch);

    /// Inputs that were dropped.
    [[nodiscard]] std::uint64_t dropped() const;

  private:
    /// What a session's snapshots point at, copied when it is another.
    struct Kept {
        const record::World* seen = nullptr;
        std::shared_ptr<const record::World> world{};
        std::shared_ptr<const record::Roster> roster{};
    };

    void keep(const game::Input& input, Batch::Entry& entry);

    mutable std::mutex mutex_;
    Batch filling_;
    std::uint64_t dropped_ = 0;
    std::atomic<bool> resting_{false};
    std::unordered_map<std::uint32_t, Kept> kept_; ///< of the side that fills
};

} // namespace tw::run
