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
#include <utility>
#include <vector>

namespace tw::capture {

/// Sorts datagrams by time. If twscope inspects on several threads, each thread adds its collected
/// datagrams to the capture at once. Datagrams of the same time are then 0.1 s apart, or more if a
/// thread is late.
///
/// Even with one thread, the first datagrams of a new client are older than the datagrams that
/// precede them in the capture: twscope writes them only when the client's address is verified and
/// its session has a number. These datagrams stay where they are, unless other datagrams have shown
/// that there are several threads.
///
/// Datagrams between the same two endpoints are never reordered. If time goes back by more than
/// kWindow, the clock was set or another capture begins; nothing is moved across that point.
class TimeOrder {
  public:
    static constexpr std::int64_t kWindow = 1'000'000'000; ///< nanoseconds
    /// Limits: half a second of a busy server, and five times what its threads collect. Beyond them
    /// datagrams are passed on early.
    static constexpr std::size_t kMaxDatagrams = 32'768;
    static constexpr std::size_t kMaxBytes = std::size_t{16} << 20U;

    struct Item {
        CapturedDatagram datagram; ///< its payload and state refer to the members below
        std::vector<std::byte> payload;
        std::optional<CapturedState> state;
        std::size_t file = 0; ///< the source, as passed to put()
    };

    /// Adds a copy of a datagram.
    void put(const CapturedDatagram& datagram, std::size_t file);

    /// Returns the next datagram once no earlier one can follow, or at once with `all`. Returns
    /// null if there is none yet. Valid until the next call.
    [[nodiscard]] const Item* take(bool all);

  private:
    struct Waiting {
        /// The datagram's time, or that of the datagram that it may not overtake.
        std::int64_t time = 0;
        std::size_t ends = 0; ///< hash of its endpoints
        std::unique_ptr<Item> item;
    };

    std::deque<Waiting> waiting_; ///< sorted by time, except where time goes back
    /// Number of datagrams at the front, before the last step back of the time.
    std::size_t settled_ = 0;
    std::size_t bytes_ = 0; ///< bytes of the waiting datagrams
    bool several_ = false;  ///< several threads wrote the capture, as older clients have shown
    std::unique_ptr<Item> taken_;
};

/// Reads captures one after the other as if their traffic went through the proxy. A demo among the
/// files becomes a session of its own.
class CaptureRun {
  public:
    /// Opens all files, so that a wrong name is reported before anything is read. Their first bytes
    /// show their format.
    ///
    /// `servers`: the servers whose traffic is read.
    /// Errors: CaptureError.
    CaptureRun(std::vector<std::string> paths, ServerGuess servers);

    /// Inspects all datagrams and closes the sessions. Other contents of the captures are reported
    /// on standard error.
    ///
    /// `pseudonym_key`: see shown_client.
    void read(inspect::Inspector& inspector, const std::string& pseudonym_key = {});

    /// Sets a function that is asked before each datagram and returns true to stop reading.
    void stop_when(std::function<bool()> enough) { enough_ = std::move(enough); }

    /// Turns off the report about other contents.
    void set_quiet(bool quiet) { quiet_ = quiet; }

    /// Time of the first and the last datagram; 0 before `read`.
    [[nodiscard]] record::Timestamp first() const { return first_; }

    [[nodiscard]] record::Timestamp last() const { return last_; }

    /// True if records are missing: a file could not be read to its end, without being truncated,
    /// or datagrams of its sessions were truncated by the recorder.
    [[nodiscard]] bool damaged() const { return damaged_; }

  private:
    /// A file to read: a capture or a demo.
    struct Source {
        std::string path;
        std::unique_ptr<CaptureFile> capture{};
        std::unique_ptr<DemoFile> demo{};
        DemoHead head{}; ///< head of the demo
        // Counts of the capture's datagrams:
        std::uint64_t ignored = 0;   ///< not from a requested server, or not game traffic
        std::uint64_t refused = 0;   ///< rejected because there were too many sessions
        std::uint64_t oversized = 0; ///< longer than any game program accepts
        bool begun = false;          ///< a datagram was used
    };

    [[nodiscard]] static Source open(std::string path);
    void read_as_it_stands(Source& source, CaptureSessions& sessions);
    void read_in_order(std::size_t index, CaptureSessions& sessions);
    void hand_on_waiting(CaptureSessions& sessions, bool all);
    void hand_on(const CapturedDatagram& datagram, Source& source, CaptureSessions& sessions);
    void report_captures();
    void read_demo(const Source& source, inspect::Inspector& inspector);
    void note_time(record::Timestamp first, record::Timestamp last);

    std::vector<Source> sources_;
    ServerGuess guess_;
    TimeOrder order_; ///< shared by the segments of a run
    record::Timestamp first_ = 0;
    record::Timestamp last_ = 0;
    bool any_ = false;
    bool damaged_ = false;
    bool quiet_ = false;
    std::function<bool()> enough_ = [] { return false; };
};

} // namespace tw::capture
