#pragma once

#include "proxy/inspect/reporter.h"
#include "proxy/record/records.h"
#include "proxy/wire/direction.h"

#include <cstdint>
#include <string_view>

namespace tw::inspect {

/// Says once when the server leaves a session's client without an answer, and once when it answers
/// again. What is in the datagrams does not matter.
class ServerSilence {
  public:
    /// As many datagrams in a row without an answer, and for as long: clients repeat a CONNECT
    /// twice a second and send 50 inputs a second, so it is neither a lost datagram nor a pause.
    static constexpr std::uint64_t kUnanswered = 3;
    static constexpr record::Timestamp kPatience = 3'000'000'000; ///< ns
    /// Who sends less often than this does not wait for an answer.
    static constexpr record::Timestamp kPause = 5'000'000'000; ///< ns

    /// The datagram at hand; `server`: its address.
    void on_datagram(std::string_view server, Reporter& reporter);
    /// Copies were lost: an answer may have been among them.
    void on_gap();

  private:
    void report(std::string_view server, std::string_view what, Reporter& reporter) const;

    std::uint64_t unanswered_ = 0;
    record::Timestamp since_ = 0; ///< of the first of them
    record::Timestamp last_ = 0;  ///< of the last of them
    bool silent_ = false;
};

} // namespace tw::inspect
