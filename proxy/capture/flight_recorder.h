#pragma once

#include "proxy/capture/capture_sink.h"
#include "proxy/capture/pcapng.h"
#include "proxy/inspect/reporter.h"
#include "proxy/record/records.h"
#include "proxy/store/file_queue.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tw::capture {

/// The latest blocks of a capture, in memory of a fixed size. When it is full, a new block replaces
/// the oldest blocks. Blocks are numbered from 0 in the order in which they were added, so that a
/// reader notices if a block was replaced.
class FlightRecorderRing {
  public:
    struct Block {
        std::uint32_t session = 0;
        record::Timestamp time = 0;
        std::uint64_t at = 0; ///< number of bytes added to the ring before this block
        std::size_t size = 0; ///< size of the block in bytes
    };

    /// `bytes`: the most memory that the ring takes. An eighth of it is for the list of blocks. The
    /// process grows only as the ring is filled.
    explicit FlightRecorderRing(std::size_t bytes);

    /// Adds a block. Returns false if the block is larger than the ring.
    bool push_block(std::uint32_t session, record::Timestamp time,
                    std::span<const std::byte> bytes);
    /// Removes all blocks older than `time`.
    void drop_blocks_before(record::Timestamp time);

    [[nodiscard]] std::uint64_t first_block_number() const { return num_dropped_; }

    /// Returns the number that the next block will have.
    [[nodiscard]] std::uint64_t end_block_number() const { return num_dropped_ + blocks_.size(); }

    /// Returns a block by its number. Precondition: the block is in the ring.
    [[nodiscard]] const Block& block(std::uint64_t number) const {
        return blocks_[number - num_dropped_];
    }

    void append_block_bytes(const Block& block, std::vector<std::byte>& out) const;

    [[nodiscard]] bool contains_session(std::uint32_t session) const {
        return std::ranges::find(blocks_, session, &Block::session) != blocks_.end();
    }

    /// Returns whether the oldest blocks will be replaced soon.
    [[nodiscard]] bool is_nearly_full() const;

    [[nodiscard]] std::uint64_t num_blocks() const { return blocks_.size(); }

  private:
    [[nodiscard]] std::uint64_t num_added_bytes() const;
    void drop_oldest_block();

    std::size_t capacity_; ///< size of `bytes_`
    std::size_t max_blocks_;
    std::unique_ptr<std::byte[]> bytes_; // NOLINT(modernize-avoid-c-arrays): not initialised
    std::deque<Block> blocks_;
    std::uint64_t num_dropped_ = 0;
};

struct FlightRecorderOptions {
    std::filesystem::path folder{};
    std::int64_t time = 0; ///< how long datagrams stay in memory, in nanoseconds
    /// The memory for the datagrams of all recorders of a run together, in bytes.
    std::size_t bytes = 0;
    /// The findings after which a file is written.
    std::array<bool, record::kFindingCount> triggers{};
    bool includes_all_sessions = false; ///< true: a finding's file contains all sessions
};

/// Counts of files that flight recorders wrote, and of losses.
struct FlightRecorderCounts {
    std::uint64_t files = 0;
    /// Number of findings that got no separate file, because a file was written shortly before.
    std::uint64_t num_findings_without_file = 0;
    /// Number of datagrams that were dropped from the memory before they were written to a file.
    std::uint64_t lost = 0;

    void merge(const FlightRecorderCounts& other) {
        files += other.files;
        num_findings_without_file += other.num_findings_without_file;
        lost += other.lost;
    }
};

/// Stores the latest datagrams in memory, and writes them to a capture file after a finding or on
/// request. Writes the file in pieces, so that callers do not wait.
class FlightRecorder final : public record::RecordSink, public inspect::Observer {
  public:
    /// The shortest time between two files that are written after findings, in nanoseconds. Usually
    /// FlightRecorderOptions::time passes between two files, so that each datagram is in one file
    /// only. A file is written earlier if the memory is nearly full and would drop a finding's
    /// datagrams.
    static constexpr std::int64_t kMinFileInterval = 5'000'000'000;

    /// `bytes`: the memory for this recorder's datagrams. `files` must outlive the recorder.
    FlightRecorder(FlightRecorderOptions options, std::size_t bytes, store::FileQueue& files);

    void on_record(const record::Record& record) override;

    /// Sets the source of session states. Each session's state is stored regularly, so that
    /// datagrams after a stored state can be decoded.
    void set_session_state_source(SessionStateSource states);

    void on_datagram(const record::RecordHeader& head,
                     std::span<const std::byte> datagram) override {
        encoder_.on_datagram(head, datagram);
    }

    void on_datagram_end() override;

    /// Requests a file with the stored datagrams of one session; of all sessions if `session` is 0.
    /// Two waiting requests get a single file with all sessions. Callable from any thread.
    void request_file(std::uint32_t session);

    /// Writes the next piece of a file. Call this function regularly, and again at once if it
    /// returns true.
    bool on_time(record::Timestamp now);

    /// Returns whether a file is being written or must be written.
    [[nodiscard]] bool is_busy() const { return open_file_ || file_cause_; }

    /// Writes all files that must be written. No other function may be called afterwards.
    void write_remaining_files(record::Timestamp now);

    [[nodiscard]] const FlightRecorderCounts& counts() const { return counts_; }

  private:
    static constexpr std::size_t kPieceBytes = std::size_t{256} << 10U;
    static constexpr std::int64_t kNoRequest = -1;

    /// The finding or request after which a file is written.
    struct FileCause {
        std::uint32_t session = 0; ///< session whose datagrams are written; 0 for all sessions
        std::string name{};        ///< the finding's id; empty for a request
        std::string text{};
        record::Timestamp since = 0; ///< time of the finding; 0: on_time() sets it
    };

    /// A file that is being written.
    struct OpenFile {
        store::FileQueue::File file;
        std::uint32_t session; ///< session whose datagrams are written; 0 for all sessions
        std::uint64_t at;      ///< number of the next block to write
        std::uint64_t end;     ///< number of the first block that is too new for the file
    };

    /// Returns whether a finding's file may be begun: the previous file is old enough, or the
    /// datagrams around the finding will soon be dropped.
    [[nodiscard]] bool is_file_due(record::Timestamp now) const;
    void begin_file(const FileCause& cause, record::Timestamp now);
    /// Writes a piece of the current file. Returns false if it was the last piece.
    [[nodiscard]] bool write_next_piece();
    void end_file();

    FlightRecorderOptions options_;
    store::FileQueue* files_;
    CaptureEncoder encoder_;
    FlightRecorderRing ring_;
    std::vector<std::byte> block_; ///< the current datagram's block; a member to reuse its memory
    std::atomic<std::int64_t> requested_session_{kNoRequest};
    std::optional<FileCause> file_cause_; ///< the oldest finding without a file
    std::uint64_t waiting_findings_ = 0;  ///< number of further findings without a file
    /// The time of the latest file that was written after a finding; 0 if there is none.
    record::Timestamp last_file_time_ = 0;
    std::optional<OpenFile> open_file_;
    FlightRecorderCounts counts_;
};

} // namespace tw::capture
