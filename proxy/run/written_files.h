#pragma once

#include "proxy/run/page_recordings.h"
#include "proxy/sink/demo_losses.h"
#include "proxy/sink/file_queue.h"
#include "proxy/sink/flight_recorder.h"

#include <atomic>
#include <cstdint>
#include <optional>

namespace tw::run {

/// The queues of what a run writes for other programs, and what has to be said about them.
class WrittenFiles {
  public:
    /// `progress` counts bytes written.
    explicit WrittenFiles(std::atomic<std::uint64_t>& progress) : progress_{&progress} {}

    void open_files(bool wanted) { open(files_, wanted); }

    /// Of its own: a burst of it must not cost demos.
    void open_flight(bool wanted) { open(flight_, wanted); }

    /// Of what is recorded from the page, by so many workers; nothing: it records nothing.
    void open_page(const std::optional<PageRecordingOptions>& options, unsigned workers) {
        if (options) {
            page_.emplace(*options, workers, PageRecordings::kMaxFolderBytes, progress_);
        }
    }

    [[nodiscard]] PageRecordings* page() { return page_ ? &*page_ : nullptr; }

    /// Of demos; null: there are none.
    [[nodiscard]] sink::FileQueue* files() { return files_ ? &*files_ : nullptr; }

    [[nodiscard]] sink::FileQueue* flight() { return flight_ ? &*flight_ : nullptr; }

    /// Once a second: says what could not be written, each file once, and ends what cannot go on.
    void complain();
    /// Writes what is left of demos; returns how much is missing in them.
    [[nodiscard]] std::uint64_t finish(const sink::DemoLosses& losses);
    void finish_flight(const sink::FlightTally& tally);

  private:
    void open(std::optional<sink::FileQueue>& queue, bool wanted) {
        if (wanted) {
            queue.emplace(sink::FileQueue::Full::refuse, sink::FileQueue::kMaxQueueBytes,
                          progress_);
        }
    }

    std::atomic<std::uint64_t>* progress_;
    std::optional<sink::FileQueue> files_;
    std::optional<sink::FileQueue> flight_;
    std::optional<PageRecordings> page_;
};

} // namespace tw::run
