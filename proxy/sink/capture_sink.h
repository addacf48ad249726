#pragma once

#include "proxy/record/records.h"
#include "proxy/sink/output.h"
#include "proxy/sink/pcapng.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace tw::sink {

/// Takes every datagram that is looked at: before that, and again after it, when the records about it
/// have passed.
class DatagramSink {
  public:
    DatagramSink() = default;
    DatagramSink(const DatagramSink&) = delete;
    DatagramSink& operator=(const DatagramSink&) = delete;
    DatagramSink(DatagramSink&&) = delete;
    DatagramSink& operator=(DatagramSink&&) = delete;
    virtual ~DatagramSink() = default;

    /// `datagram` stays valid until its end.
    virtual void on_datagram(const record::RecordHead& head,
                             std::span<const std::byte> datagram) = 0;
    virtual void on_datagram_end() = 0;
};

/// Datagrams as blocks of a capture, gathered until they are worth handing over.
class CaptureGathering {
  public:
    /// False: not taken.
    using Put = std::function<bool(std::span<const std::byte> blocks)>;

    explicit CaptureGathering(Put put) : put_{std::move(put)} {}

    [[nodiscard]] CaptureBlocks& blocks() { return blocks_; }

    /// The datagram that blocks() were told of.
    void end_datagram();
    /// Hands over what is gathered.
    void flush();
    /// What was said since the last datagram stands behind it.
    void finish(record::Timestamp time);
    /// Forgets what was said since the last datagram.
    void forget();

    /// Datagrams that found no room, since this was asked last.
    [[nodiscard]] std::uint64_t take_lost() { return std::exchange(lost_, 0); }

  private:
    static constexpr std::size_t kBlockBytes = std::size_t{64} << 10U;

    Put put_;
    CaptureBlocks blocks_;
    std::vector<std::byte> gathered_;
    std::uint64_t packets_ = 0; ///< in gathered_
    std::uint64_t lost_ = 0;
};

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

/// Tells a capture that somebody wants the datagram at hand: the one that gives a record.
class Wanted final : public record::RecordSink {
  public:
    explicit Wanted(CaptureSink& capture) : capture_{&capture} {}

    void on_record(const record::Record& /*record*/) override { capture_->want(); }

  private:
    CaptureSink* capture_;
};

} // namespace tw::sink
