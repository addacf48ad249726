#pragma once

#include "proxy/record/records.h"
#include "proxy/sink/capture_sink.h"
#include "proxy/sink/file_queue.h"
#include "proxy/sink/pcapng.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tw::sink {

/// The latest blocks of a capture, in memory that is allocated once. A new block replaces the oldest
/// ones. The place of a block is a number that no later block gets, so a reader notices if its block was
/// replaced.
class FlightRing {
  public:
    using Place = std::uint64_t;

    struct Block {
        std::uint32_t session = 0;
        record::Timestamp time = 0;
        std::span<const std::byte> bytes{}; ///< valid until the next push()
        Place next = 0;
    };

    /// Reserves `bytes` bytes. They take physical memory only when they are filled.
    explicit FlightRing(std::size_t bytes);

    /// Adds a block. Returns false if the block is larger than the ring.
    bool push(std::uint32_t session, record::Timestamp time, std::span<const std::byte> block);
    /// Drops blocks older than `time`.
    void forget_before(record::Timestamp time);

    /// The place of the oldest block.
    [[nodiscard]] Place begin() const { return begin_; }

    [[nodiscard]] Place end() const { return end_; }

    /// Returns the block at a place, or the oldest block after that place; nullopt at the end.
    [[nodiscard]] std::optional<Block> at(Place place) const;

    [[nodiscard]] bool holds(std::uint32_t session) const;

    /// True if the oldest blocks will be replaced soon.
    [[nodiscard]] bool nearly_full() const { return end_ - begin_ >= capacity_ / 8 * 7; }

    /// The number of blocks in the ring.
    [[nodiscard]] std::uint64_t size() const { return pushed_ - dropped_; }

    /// The number of blocks that were dropped since the start.
    [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

  private:
    struct Head {
        std::uint32_t size = 0; ///< size of the block in bytes
        std::uint32_t session = 0;
        record::Timestamp time = 0;
    };

    static_assert(sizeof(Head) == 16);

    /// Takes the place of a block's size if the next block is at the beginning of the memory.
    static constexpr std::uint32_t kFiller = 0xffffffff;

    [[nodiscard]] Head head_at(Place place) const;
    void put(Place place, const Head& head);
    [[nodiscard]] std::uint64_t length(Place place, const Head& head) const;
    void drop_oldest();
    void make_room(Place until);

    std::size_t capacity_;
    std::unique_ptr<std::byte[]> bytes_; // NOLINT(modernize-avoid-c-arrays): not initialised
    Place begin_ = 0;
    Place end_ = 0;
    std::uint64_t pushed_ = 0;
    std::uint64_t dropped_ = 0;
};

struct FlightOptions {
    std::filesystem::path folder{};
    std::int64_t time = 0; ///< time in nanoseconds for which datagrams are kept
    /// The memory for kept datagrams of all recorders of a run together, in bytes.
    std::size_t bytes = 0;
    /// The findings that cause a file to be written.
    std::array<bool, record::kFindingCount> triggers{};
    bool whole = false; ///< after a finding, write all sessions and not only the finding's session
};

/// Counts of what recorders wrote and lost.
struct FlightTally {
    std::uint64_t files = 0;
    /// Findings without a file of their own, because they came too soon after another file.
    std::uint64_t held_back = 0;
    std::uint64_t lost = 0; ///< datagrams that were dropped before they were written

    void merge(const FlightTally& other) {
        files += other.files;
        held_back += other.held_back;
        lost += other.lost;
    }
};

/// Keeps the latest datagrams in memory, and writes them as a capture after a finding or on request.
/// Writes in pieces between datagrams, so that no caller waits.
class FlightRecorder final : public record::RecordSink, public DatagramSink {
  public:
    /// The shortest time in nanoseconds between two files caused by findings. Usually the time between
    /// them is FlightOptions::time, so that the files together hold all datagrams. It is shorter if the
    /// datagrams around a finding would otherwise be dropped, but never shorter than this.
    static constexpr std::int64_t kLeastPause = 5'000'000'000;

    /// `bytes`: this recorder's share of the run's memory. `files` must outlive the recorder.
    FlightRecorder(FlightOptions options, std::size_t bytes, FileQueue& files);

    void on_record(const record::Record& record) override;

    /// Sets the source of session states. Each session's state is repeated regularly, so that the
    /// kept datagrams can be decoded from any of these points on.
    void repeat_states(StateSource states);

    void on_datagram(const record::RecordHead& head, std::span<const std::byte> datagram) override {
        blocks_.on_datagram(head, datagram);
    }

    void on_datagram_end() override;

    /// Requests a file with the kept datagrams of one session, or of all sessions if `session` is 0. If
    /// another request waits, one file with all sessions answers both. May be called from any thread.
    void request(std::uint32_t session);

    /// Writes the next piece of a file. To be called regularly. Returns true if there is more to write
    /// at once.
    bool on_time(record::Timestamp now);

    /// True if a file is being written, or a finding waits for its file.
    [[nodiscard]] bool busy() const { return dump_ || cause_; }

    /// Writes the requested files. No further call is allowed.
    void finish(record::Timestamp now);

    [[nodiscard]] const FlightTally& tally() const { return tally_; }

  private:
    static constexpr std::size_t kPieceBytes = std::size_t{256} << 10U;
    static constexpr std::int64_t kNobody = -1;

    /// The reason for writing a file.
    struct Cause {
        std::uint32_t session = 0; ///< 0 for all sessions
        std::string name{};        ///< the finding's id; empty for a request
        std::string text{};
        record::Timestamp since = 0; ///< time of the finding; 0: the next on_time() sets it
    };

    struct Dump {
        FileQueue::File file;
        std::uint32_t session;
        FlightRing::Place at;
        FlightRing::Place end;
        std::uint64_t dropped; ///< value of the ring's dropped() when the file was begun
    };

    /// True if the file may be begun: the previous file is old enough, or the datagrams around the
    /// finding would otherwise be dropped soon.
    [[nodiscard]] bool is_due(record::Timestamp now) const;
    void begin(const Cause& cause, record::Timestamp now);
    /// Writes one piece of the file. Returns false if it was the last piece.
    [[nodiscard]] bool write_piece();
    void end_dump();

    FlightOptions options_;
    FileQueue* files_;
    CaptureBlocks blocks_;
    FlightRing ring_;
    std::vector<std::byte> block_; ///< kept to reuse its memory
    std::atomic<std::int64_t> asked_{kNobody};
    std::optional<Cause> cause_; ///< the first finding that waits for a file
    std::uint64_t waiting_ = 0;  ///< number of findings that wait after the first one
    /// Time of the last file caused by a finding; 0 if there was none.
    record::Timestamp written_ = 0;
    std::optional<Dump> dump_;
    FlightTally tally_;
};

} // namespace tw::sink
