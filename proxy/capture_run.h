#pragma once

#include "proxy/capture_file.h"
#include "proxy/capture_sessions.h"
#include "proxy/inspect/inspector.h"

#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace tw {

/// The flags of the commands that read captures.
struct CaptureFlags {
    std::vector<std::string> paths;
    std::string server; ///< empty: servers are recognised

    void add_to(CLI::App& command);
};

/// The captures of a command line, read one after the other as if their traffic had passed the
/// proxy.
class CaptureRun {
  public:
    /// Opens all of them, so that a wrong name is told before anything is read.
    /// Errors: UsageError, CaptureError.
    explicit CaptureRun(const CaptureFlags& flags);

    /// Inspects all datagrams and closes the sessions. What a capture holds besides is told on
    /// standard error.
    /// `pseudonym_key`: see shown_client.
    void read(inspect::Inspector& inspector, const std::string& pseudonym_key = {});

    /// Time of the first and the last datagram; 0 before `read`.
    [[nodiscard]] inspect::Timestamp first() const { return first_; }

    [[nodiscard]] inspect::Timestamp last() const { return last_; }

  private:
    std::vector<std::string> paths_;
    std::vector<std::unique_ptr<CaptureFile>> files_;
    ServerGuess guess_;
    inspect::Timestamp first_ = 0;
    inspect::Timestamp last_ = 0;
};

} // namespace tw
