#pragma once

#include "proxy/record/records.h"
#include "proxy/sink/capture_gathering.h"
#include "proxy/sink/datagram_sink.h"
#include "proxy/sink/output.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace tw::sink {

/// Writes the datagrams of sessions as a capture. Where the output has segments, each describes the
/// sessions that were open before, with their states.
class CaptureSink final : public record::RecordSink, public DatagramSink {
  public:
    /// Which datagrams are written: all, or those somebody wants.
    enum class Choice : std::uint8_t { all, wanted };

    /// `output` begins its files as capture_units() do; it has to outlive this, and may serve several.
    explicit CaptureSink(Output& output, Choice choice = Choice::all);

    /// Where states come from, so that each segment can be read alone. Of chosen datagrams nobody can
    /// read on: there are none before these.
    void repeat_states(StateSource states) {
        if (choice_ == Choice::all) {
            gathering_.blocks().repeat_states(std::move(states));
        }
    }

    /// The datagram at hand is wanted.
    void want() { wanted_ = true; }

    void on_record(const record::Record& record) override { gathering_.blocks().on_record(record); }

    void on_datagram(const record::RecordHead& head, std::span<const std::byte> datagram) override;
    void on_datagram_end() override;
    /// Hands over what is gathered.
    void flush();
    /// What was said since the last datagram stands behind it. Nothing follows.
    void finish(record::Timestamp time);

    /// Datagrams that are too long for a capture.
    [[nodiscard]] std::uint64_t lost() const { return lost_; }

  private:
    void begin_segment();

    Output* output_;
    Choice choice_;
    bool wanted_ = true;
    std::uint32_t segment_; ///< 0: there are none
    CaptureGathering gathering_;
    std::uint64_t lost_ = 0;
};

} // namespace tw::sink
