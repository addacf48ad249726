#pragma once

#include "proxy/capture/capture_file.h"
#include "proxy/capture/capture_sessions.h"
#include "proxy/inspect/inspector.h"

#include <memory>
#include <string>
#include <vector>

namespace tw::capture {

/// Captures, read one after the other as if their traffic had passed the proxy.
class CaptureRun {
  public:
    /// Opens all of them, so that a wrong name is reported before anything is read.
    /// `servers`: whose traffic counts. Errors: CaptureError.
    CaptureRun(std::vector<std::string> paths, ServerGuess servers);

    /// Inspects all datagrams and closes the sessions. What a capture holds besides is reported on
    /// standard error.
    ///
    /// `pseudonym_key`: see shown_client.
    void read(inspect::Inspector& inspector, const std::string& pseudonym_key = {});

    /// Time of the first and the last datagram; 0 before `read`.
    [[nodiscard]] record::Timestamp first() const { return first_; }

    [[nodiscard]] record::Timestamp last() const { return last_; }

  private:
    std::vector<std::string> paths_;
    std::vector<std::unique_ptr<CaptureFile>> files_;
    ServerGuess guess_;
    record::Timestamp first_ = 0;
    record::Timestamp last_ = 0;
};

} // namespace tw::capture
