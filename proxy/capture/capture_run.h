#pragma once

#include "proxy/capture/capture_file.h"
#include "proxy/capture/capture_sessions.h"
#include "proxy/capture/demo_file.h"
#include "proxy/capture/demo_header.h"
#include "proxy/capture/time_order.h"
#include "proxy/inspect/inspector.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tw::capture {

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
