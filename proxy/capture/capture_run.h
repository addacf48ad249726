#pragma once

#include "proxy/capture/capture_file.h"
#include "proxy/capture/capture_sessions.h"
#include "proxy/capture/frame_reader.h"
#include "proxy/demo/demo_reader.h"
#include "proxy/inspect/inspector.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tw::capture {

/// Holds each datagram back until the datagram that follows it is known. Sorts the datagrams by
/// time if twscope wrote the capture. If twscope inspects with several threads, each thread writes
/// its collected datagrams in one batch, about every 0.1 s. Therefore, datagrams of the same time
/// can be 0.1 s of traffic apart in the file, or more if a thread is late.
///
/// With one thread, only the first datagrams of a new client are older than the datagrams before
/// them in the file, because twscope writes them only when the client's address is verified and its
/// session has a number. These datagrams are sorted only if other datagrams have shown that several
/// threads wrote the file.
///
/// Datagrams between the same two endpoints are never reordered. If time goes back by more than
/// kWindowNs, the clock was set or another capture begins. No datagram is moved across that point.
class TimeSorter {
  public:
    /// The largest time by which datagrams are moved, in nanoseconds.
    static constexpr std::int64_t kWindowNs = 1'000'000'000;
    /// Limits of the waiting datagrams: half a second of a busy server. Above a limit, datagrams
    /// are returned early.
    static constexpr std::size_t kMaxDatagrams = 32'768;
    static constexpr std::size_t kMaxBytes = std::size_t{16} << 20U;

    struct OrderedDatagram {
        CapturedDatagram datagram; ///< its views refer to the members below
        std::vector<std::byte> payload;
        std::optional<StoredSessionState> state;
        std::size_t file = 0; ///< index of the datagram's file
    };

    /// Adds a copy of a datagram. `file`: the index of its file. `sorts`: whether to sort it by
    /// time among the waiting datagrams.
    void add_datagram(const CapturedDatagram& datagram, std::size_t file, bool sorts = true);

    /// Returns the earliest datagram if no earlier one can follow, or if more than `most` are
    /// waiting. Otherwise returns null. The result is valid until the next call.
    [[nodiscard]] const OrderedDatagram* next_datagram(std::size_t most = kMaxDatagrams);

  private:
    struct WaitingDatagram {
        /// The time by which the datagram is sorted: its own, or the later time of a waiting
        /// datagram that the datagram must follow.
        std::int64_t time = 0;
        std::size_t hash = 0; ///< hash of the two endpoints of the datagram
        std::unique_ptr<OrderedDatagram> item;
    };

    std::deque<WaitingDatagram> waiting_; ///< sorted by time, except where the clock was set back
    /// The number of datagrams at the front of waiting_ that precede the latest point at which the
    /// clock was set back.
    std::size_t num_before_jump_ = 0;
    std::size_t bytes_ = 0; ///< size of the waiting datagrams in bytes
    /// True if the order of datagrams has shown that several threads wrote the capture.
    bool has_several_threads_ = false;
    std::unique_ptr<OrderedDatagram> returned_;
};

/// Inspects the traffic in captures, one after the other. Each demo among the files becomes a
/// separate session.
class CaptureRun {
  public:
    /// Opens all files, to report wrong names before reading a file. The first bytes of a file
    /// decide whether it is a capture or a demo.
    CaptureRun(std::vector<std::string> paths, ServerDetector servers);

    /// Inspects all datagrams of games, and closes the sessions. Prints on standard error how many
    /// other frames and datagrams the captures contain.
    void read_captures(inspect::Inspector& inspector, const std::string& pseudonym_key = {});

    /// Sets a function that is called before each datagram. Reading ends when it returns true.
    void stop_when(std::function<bool()> enough) { is_enough_ = std::move(enough); }

    /// If `quiet` is true, read_captures() does not print counts on standard error.
    void set_quiet(bool quiet) { is_quiet_ = quiet; }

    struct DatagramPosition {
        std::string_view path{};
        /// Number of the datagram's frame in the file, from 1; 0 if the file is a demo.
        std::uint64_t frame = 0;
        record::Timestamp time = 0;
    };

    /// Returns the position of the datagram with this time, if it is among the latest kMaxPositions
    /// datagrams. Prefers the datagram that is being inspected. `frame` is 0 if the position is
    /// unknown, or if several earlier datagrams have this time. The path is valid as long as this
    /// object.
    [[nodiscard]] DatagramPosition datagram_position_at(record::Timestamp time) const;

    /// The number of stored positions. Many are needed, because records about a session's first
    /// datagrams come late, when the protocol is known.
    static constexpr std::size_t kMaxPositions = 4096;

    /// Returns the time of the first datagram; 0 if no datagram was read.
    [[nodiscard]] record::Timestamp first_time() const { return first_time_; }

    [[nodiscard]] record::Timestamp last_time() const { return last_time_; }

    /// Returns true if records are missing because a file could not be read to its end, or because
    /// the recorder truncated datagrams of sessions.
    [[nodiscard]] bool is_damaged() const { return is_damaged_; }

    /// Returns true if every file is a capture on a disk and contains no packet.
    [[nodiscard]] bool is_empty() const;

  private:
    /// A file to read: a capture or a demo.
    struct CaptureSource {
        std::string path;
        std::unique_ptr<CaptureFile> capture{};
        std::unique_ptr<demo::DemoFile> demo{};
        demo::DemoParts head{}; ///< header of the demo
        // Numbers of datagrams in the capture:
        /// Datagrams that are not game traffic or do not belong to a requested server.
        std::uint64_t ignored = 0;
        /// Datagrams that were rejected because there were too many sessions.
        std::uint64_t refused = 0;
        std::uint64_t oversized = 0; ///< datagrams that are longer than any game program accepts
        bool begun = false;          ///< true if a datagram of the file was inspected
    };

    [[nodiscard]] static CaptureSource open_source(std::string path);
    void read_capture(std::size_t index, CaptureSessions& sessions);
    /// Passes on all datagrams that TimeSorter::next_datagram() returns for `most`.
    void pass_on_waiting_datagrams(CaptureSessions& sessions, std::size_t most);
    void pass_on_datagram(const CapturedDatagram& datagram, CaptureSource& source,
                          CaptureSessions& sessions);
    void report_captures();
    void read_demo(const CaptureSource& source, inspect::Inspector& inspector);
    void extend_time_range(record::Timestamp first, record::Timestamp last);

    std::vector<CaptureSource> sources_;
    ServerDetector detector_;
    TimeSorter sorter_; ///< sorts the datagrams of all files of a recording together
    std::vector<DatagramPosition> positions_; ///< positions of the latest datagrams, in a ring
    std::size_t num_positions_ = 0;           ///< number of datagrams that were inspected
    record::Timestamp first_time_ = 0;
    record::Timestamp last_time_ = 0;
    bool has_datagrams_ = false;
    bool is_damaged_ = false;
    bool is_quiet_ = false;
    std::function<bool()> is_enough_ = [] { return false; };
};

} // namespace tw::capture
