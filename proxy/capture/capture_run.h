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

/// Puts datagrams in the order of their times. Where twscope inspects on several threads, each of them
/// adds what it gathered to the capture of the run, so that what happened at one time stands a tenth of
/// a second apart, or, where a thread is behind, more.
///
/// A newcomer's first datagrams are older than what stands before them on one thread, too: they are
/// shown when its address is proven, and then it gets its number. They stay where they are, unless
/// others have shown that there are several threads.
///
/// What passed between two ends stays in its order, whatever its times are. Where time goes back by
/// more than kWindow, the clock was set back, or another capture begins: nothing is moved across that.
class TimeOrder {
  public:
    static constexpr std::int64_t kWindow = 1'000'000'000; ///< nanoseconds
    /// Of a busy server half a second, and five times what its threads gather. What is beyond these
    /// limits is handed out early.
    static constexpr std::size_t kMaxDatagrams = 32'768;
    static constexpr std::size_t kMaxBytes = std::size_t{16} << 20U;

    struct Item {
        CapturedDatagram datagram; ///< its payload and state are those below
        std::vector<std::byte> payload;
        std::optional<CapturedState> state;
        std::size_t file = 0; ///< where it comes from, as whoever put it says
    };

    /// Takes a copy.
    void put(const CapturedDatagram& datagram, std::size_t file);

    /// The next one, once none that comes can stand before it; with `all`, at once. Null: there is none
    /// yet. Valid until the next call.
    [[nodiscard]] const Item* take(bool all);

  private:
    struct Waiting {
        std::int64_t time = 0; ///< its own, or that of the one it may not overtake
        std::size_t ends = 0;  ///< hash of them
        std::unique_ptr<Item> item;
    };

    std::deque<Waiting> waiting_; ///< sorted by time, but for where it goes back
    std::size_t settled_ = 0;     ///< of these, the first ones: time went back behind them
    std::size_t bytes_ = 0;       ///< that they take
    bool several_ = false;        ///< threads wrote it, as who was there before shows
    std::unique_ptr<Item> taken_;
};

/// Captures, read one after the other as if their traffic had passed the proxy. A demo among them
/// is a session of its own.
class CaptureRun {
  public:
    /// Opens all of them, so that a wrong name is reported before anything is read. What they are
    /// shows in their first bytes.
    /// `servers`: whose traffic counts. Errors: CaptureError.
    CaptureRun(std::vector<std::string> paths, ServerGuess servers);

    /// Inspects all datagrams and closes the sessions. What a capture holds besides is reported on
    /// standard error.
    ///
    /// `pseudonym_key`: see shown_client.
    void read(inspect::Inspector& inspector, const std::string& pseudonym_key = {});

    /// Asked before each datagram: whether nobody wants the rest.
    void stop_when(std::function<bool()> enough) { enough_ = std::move(enough); }

    /// What captures hold besides is not reported.
    void set_quiet(bool quiet) { quiet_ = quiet; }

    /// Time of the first and the last datagram; 0 before `read`.
    [[nodiscard]] record::Timestamp first() const { return first_; }

    [[nodiscard]] record::Timestamp last() const { return last_; }

    /// Whether records are missing: a capture or a demo could not be read to its end, and not because
    /// it was cut short, or datagrams of its sessions were truncated by the recorder.
    [[nodiscard]] bool damaged() const { return damaged_; }

  private:
    /// A file to read: the one or the other.
    struct Source {
        std::string path;
        std::unique_ptr<CaptureFile> capture{};
        std::unique_ptr<DemoFile> demo{};
        DemoHead head{}; ///< of the demo
        // Of the capture's datagrams:
        std::uint64_t ignored = 0;   ///< of no server asked for, or of no game
        std::uint64_t refused = 0;   ///< there were too many sessions
        std::uint64_t oversized = 0; ///< longer than any game program takes
        bool begun = false;          ///< something of it was wanted
    };

    [[nodiscard]] static Source open(std::string path);
    void read_as_it_stands(Source& source, CaptureSessions& sessions);
    void read_in_order(std::size_t index, CaptureSessions& sessions);
    void hand_on_waiting(CaptureSessions& sessions, bool all);
    void hand_on(const CapturedDatagram& datagram, Source& source, CaptureSessions& sessions);
    void conclude_captures();
    void read_demo(const Source& source, inspect::Inspector& inspector);
    void note_time(record::Timestamp first, record::Timestamp last);

    std::vector<Source> sources_;
    ServerGuess guess_;
    TimeOrder order_; ///< over the captures of a run in segments
    record::Timestamp first_ = 0;
    record::Timestamp last_ = 0;
    bool any_ = false;
    bool damaged_ = false;
    bool quiet_ = false;
    std::function<bool()> enough_ = [] { return false; };
};

} // namespace tw::capture
