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

/// The latest blocks of a capture, in memory that is taken once: a new one takes the place of the
/// oldest. A block has a place that never comes again, so that who reads notices what is gone.
class FlightRing {
  public:
    using Place = std::uint64_t;

    struct Block {
        std::uint32_t session = 0;
        record::Timestamp time = 0;
        std::span<const std::byte> bytes{}; ///< valid until the next push
        Place next = 0;
    };

    /// Memory is only used as it is filled.
    explicit FlightRing(std::size_t bytes);

    /// False: it is larger than all of it.
    bool push(std::uint32_t session, record::Timestamp time, std::span<const std::byte> block);
    /// Forgets what is older.
    void forget_before(record::Timestamp time);

    /// Where the oldest block is, and where the next one will be: places in between are blocks.
    [[nodiscard]] Place begin() const { return begin_; }

    [[nodiscard]] Place end() const { return end_; }

    /// The block at a place, or the oldest one behind it; nothing at the end.
    [[nodiscard]] std::optional<Block> at(Place place) const;

    /// Whether there is a block of this session.
    [[nodiscard]] bool holds(std::uint32_t session) const;

    /// Soon the oldest will make room.
    [[nodiscard]] bool nearly_full() const { return end_ - begin_ >= capacity_ / 8 * 7; }

    /// Blocks that are there.
    [[nodiscard]] std::uint64_t size() const { return pushed_ - dropped_; }

    /// Blocks that were there and are not any more.
    [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

  private:
    struct Head {
        std::uint32_t size = 0; ///< of the block
        std::uint32_t session = 0;
        record::Timestamp time = 0;
    };

    static_assert(sizeof(Head) == 16);

    /// In place of a block: the ring goes on at its beginning.
    static constexpr std::uint32_t kFiller = 0xffffffff;

    [[nodiscard]] Head head_at(Place place) const;
    void put(Place place, const Head& head);
    [[nodiscard]] std::uint64_t length(Place place, const Head& head) const;
    void drop_oldest();
    void make_room(Place until);

    std::size_t capacity_;
    std::unique_ptr<std::byte[]> bytes_; // NOLINT(modernize-avoid-c-arrays): left as it comes
    Place begin_ = 0;
    Place end_ = 0;
    std::uint64_t pushed_ = 0;
    std::uint64_t dropped_ = 0;
};

struct FlightOptions {
    std::filesystem::path folder{};
    std::int64_t time = 0; ///< nanoseconds that are kept
    std::size_t bytes = 0; ///< that are kept, by all recorders of a run together
    /// What makes it write, besides those who ask.
    std::array<bool, record::kFindingCount> triggers{};
    bool whole = false; ///< a finding writes all sessions, not its own alone
};

/// What recorders did and could not do.
struct FlightTally {
    std::uint64_t files = 0;
    std::uint64_t held_back = 0; ///< findings that came too soon after a file
    std::uint64_t lost = 0;      ///< datagrams that were gone before they were written

    void merge(const FlightTally& other) {
        files += other.files;
        held_back += other.held_back;
        lost += other.lost;
    }
};

/// Keeps the latest datagrams in memory, and writes them as a capture when a finding says so or
/// somebody asks. It writes piece by piece, between datagrams, so that nobody waits.
class FlightRecorder final : public record::RecordSink, public DatagramSink {
  public:
    /// Two files that findings ask for begin as far apart as the time that is kept, so that together
    /// they hold all, or closer where what a finding is about would be dropped before; but no closer
    /// than this.
    static constexpr std::int64_t kLeastPause = 5'000'000'000;

    /// `bytes`: its part of those of the run. `files` has to outlive it.
    FlightRecorder(FlightOptions options, std::size_t bytes, FileQueue& files);

    void on_record(const record::Record& record) override;

    /// Where states come from: each session's comes again every so often, so that what is kept can be
    /// read wherever it begins.
    void repeat_states(StateSource states);

    void on_datagram(const record::RecordHead& head, std::span<const std::byte> datagram) override {
        blocks_.on_datagram(head, datagram);
    }

    void on_datagram_end() override;

    /// Asks for what is kept: of one session, or with 0 of all. From any thread.
    /// Where another one waits, both get all.
    void request(std::uint32_t session);

    /// From time to time: writes a piece of what is to be written. True: there is more to write now.
    bool on_time(record::Timestamp now);

    /// Something waits to be written, by time or by a slow disk.
    [[nodiscard]] bool busy() const { return dump_ || cause_; }

    /// Writes what was asked for. Nothing follows.
    void finish(record::Timestamp now);

    [[nodiscard]] const FlightTally& tally() const { return tally_; }

  private:
    static constexpr std::size_t kPieceBytes = std::size_t{256} << 10U;
    static constexpr std::int64_t kNobody = -1;

    /// Why a file is to be written.
    struct Cause {
        std::uint32_t session = 0; ///< 0: all
        std::string name{};        ///< of a finding; empty: somebody asked
        std::string text{};
        record::Timestamp since = 0; ///< 0: just now
    };

    struct Dump {
        FileQueue::File file;
        std::uint32_t session;
        FlightRing::Place at;
        FlightRing::Place end;
        std::uint64_t dropped; ///< of the ring, when it began
    };

    /// Whether the cause has waited for long enough.
    [[nodiscard]] bool is_due(record::Timestamp now) const;
    void begin(const Cause& cause, record::Timestamp now);
    /// False: that was the last one.
    [[nodiscard]] bool write_piece();
    void end_dump();

    FlightOptions options_;
    FileQueue* files_;
    CaptureBlocks blocks_;
    FlightRing ring_;
    std::vector<std::byte> block_; ///< kept for its memory
    std::atomic<std::int64_t> asked_{kNobody};
    std::optional<Cause> cause_;    ///< the first finding that waits
    std::uint64_t waiting_ = 0;     ///< findings behind it
    record::Timestamp written_ = 0; ///< when a finding last began a file; 0: never
    std::optional<Dump> dump_;
    FlightTally tally_;
};

} // namespace tw::sink
