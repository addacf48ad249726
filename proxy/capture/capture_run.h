#pragma once

#include "proxy/capture/capture_file.h"
#include "proxy/capture/capture_sessions.h"
#include "proxy/capture/demo_reader.h"
#include "proxy/capture/frame_reader.h"
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

/// Sorts datagrams by time. If twscope inspects with several threads, each thread writes its collected
/// datagrams in one batch, about every 0.1 s. So datagrams of the same time can be separated in the
/// file by up to 0.1 s of other datagrams, or by more if a thread is late.
///
/// With one thread, only the first datagrams of a new client are older than the datagrams before them
/// in the file, because twscope writes them only when the client's address is verified and its session
/// has a number. They are sorted only if other datagrams have shown that there are several threads.
///
/// Datagrams between the same two endpoints are never reordered. If time goes back by more than
/// kWindow, the clock was set or another capture begins. No datagram is moved across that point.
class TimeSorter {
  public:
    static constexpr std::int64_t kWindow = 1'000'000'000; ///< nanoseconds
    /// Limits of the waiting datagrams: half a second of a busy server, and five times what its threads
    /// collect. Above a limit, datagrams are passed on early.
    static constexpr std::size_t kMaxDatagrams = 32'768;
    static constexpr std::size_t kMaxBytes = std::size_t{16} << 20U;

    struct OrderedDatagram {
        CapturedDatagram datagram; ///< its views refer to the members below
        std::vector<std::byte> payload;
        std::optional<CapturedState> state;
        std::size_t file = 0; ///< index of the datagram's file, as passed to add()
    };

    /// Adds a copy of a datagram.
    void add(const CapturedDatagram& datagram, std::size_t file);

    /// Returns the next datagram once no earlier one can follow; if `all`, returns it at once. Returns
    /// null if there is no such datagram. The result is valid until the next call.
    [[nodiscard]] const OrderedDatagram* next(bool all);

  private:
    struct WaitingDatagram {
        /// The time of the datagram, or of an earlier one that it may not overtake.
        std::int64_t time = 0;
        std::size_t ends = 0; ///< hash of the datagram's two endpoints
        std::unique_ptr<OrderedDatagram> item;
    };

    std::deque<WaitingDatagram>
        waiting_; ///< sorted by time between two points at which time goes back
    /// The number of datagrams at the front that precede the last point at which time went back.
    std::size_t num_before_jump_ = 0;
    std::size_t bytes_ = 0; ///< bytes of the waiting datagrams
    /// Several threads wrote the capture: datagrams of known clients were out of order.
    bool has_several_threads_ = false;
    std::unique_ptr<OrderedDatagram> taken_;
};

/// Reads captures one after the other as if their traffic passed the proxy. A demo among the files
/// becomes a separate session.
class CaptureRun {
  public:
    /// Opens all files, so that a wrong name is reported before any file is read. A file's first bytes
    /// decide whether it is read as a capture or as a demo.
    ///
    /// `servers`: the servers whose traffic is read.
    /// Errors: CaptureError.
    CaptureRun(std::vector<std::string> paths, ServerGuess servers);

    /// Inspects all datagrams and closes the sessions. Prints on standard error what the captures
    /// contain apart from the inspected datagrams.
    ///
    /// `pseudonym_key`: see record::shown_client.
    void read(inspect::Inspector& inspector, const std::string& pseudonym_key = {});

    /// Sets a function that is called before each datagram. Reading ends when it returns true.
    void stop_when(std::function<bool()> enough) { enough_ = std::move(enough); }

    /// Turns the report on standard error off or on.
    void set_quiet(bool quiet) { quiet_ = quiet; }

    /// The position of a datagram in its capture.
    struct DatagramPosition {
        std::string_view path{};
        std::uint64_t frame = 0; ///< number of its frame in the file, from 1; 0 if it has none
        record::Timestamp time = 0;
    };

    /// Returns the position of the latest datagram with this time, among the kPositions last ones that
    /// were passed on; frame 0 if there is none. The path is valid as long as this object.
    [[nodiscard]] DatagramPosition position_at(record::Timestamp time) const;

    /// Sessions hold back their first datagrams until the protocol is known.
    static constexpr std::size_t kPositions = 4096;

    /// The time of the first datagram; 0 before read().
    [[nodiscard]] record::Timestamp first() const { return first_; }

    [[nodiscard]] record::Timestamp last() const { return last_; }

    /// True if records are missing because a file could not be read to its end, or because the recorder
    /// truncated datagrams of sessions.
    [[nodiscard]] bool damaged() const { return damaged_; }

  private:
    /// A file to read: a capture or a demo.
    struct CaptureSource {
        std::string path;
        std::unique_ptr<CaptureFile> capture{};
        std::unique_ptr<DemoFile> demo{};
        DemoHead head{}; ///< head of the demo
        // Counts of the capture's datagrams:
        /// Datagrams that are not game traffic or do not belong to a requested server.
        std::uint64_t ignored = 0;
        std::uint64_t refused = 0;   ///< datagrams rejected because there were too many sessions
        std::uint64_t oversized = 0; ///< datagrams longer than any game program accepts
        bool begun = false;          ///< a datagram of the source was used
    };

    [[nodiscard]] static CaptureSource open_source(std::string path);
    void read_in_file_order(CaptureSource& source, CaptureSessions& sessions);
    void read_by_time(std::size_t index, CaptureSessions& sessions);
    void pass_on_waiting(CaptureSessions& sessions, bool all);
    void pass_on(const CapturedDatagram& datagram, CaptureSource& source,
                 CaptureSessions& sessions);
    void report_captures();
    void read_demo(const CaptureSource& source, inspect::Inspector& inspector);
    void note_time(record::Timestamp first, record::Timestamp last);

    std::vector<CaptureSource> sources_;
    ServerGuess guess_;
    TimeSorter order_;                        ///< shared by all files of a recording
    std::vector<DatagramPosition> positions_; ///< a ring; empty for demos
    std::size_t num_positions_ = 0;           ///< number of datagrams that were passed on
    record::Timestamp first_ = 0;
    record::Timestamp last_ = 0;
    bool any_ = false;
    bool damaged_ = false;
    bool quiet_ = false;
    std::function<bool()> enough_ = [] { return false; };
};

} // namespace tw::capture
