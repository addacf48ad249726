#pragma once

#include "proxy/record/interface.h"
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

/// Receives every inspected datagram: on_datagram() is called before the datagram's records, and
/// on_datagram_end() after them.
class DatagramSink : public record::Interface {
  public:
    /// `datagram` stays valid until on_datagram_end().
    virtual void on_datagram(const record::RecordHead& head,
                             std::span<const std::byte> datagram) = 0;
    virtual void on_datagram_end() = 0;
};

/// Collects the capture blocks of datagrams and passes them on in pieces of kBlockBytes.
class CaptureBlockBuffer {
  public:
    /// Receives capture blocks; returns false if they were rejected.
    using Put = std::function<bool(std::span<const std::byte> blocks)>;

    explicit CaptureBlockBuffer(Put put) : put_{std::move(put)} {}

    [[nodiscard]] CaptureBlocks& blocks() { return blocks_; }

    /// Ends the datagram that blocks() received last.
    void end_datagram();
    /// Passes on all collected blocks.
    void flush();
    /// Appends the comments made since the last datagram; `time` is their time.
    void finish(record::Timestamp time);
    /// Discards the comments made since the last datagram.
    void forget();

    /// Returns the number of datagrams rejected since the last call.
    [[nodiscard]] std::uint64_t take_lost() { return std::exchange(lost_, 0); }

  private:
    static constexpr std::size_t kBlockBytes = std::size_t{64} << 10U;

    Put put_;
    CaptureBlocks blocks_;
    std::vector<std::byte> gathered_;
    std::uint64_t packets_ = 0; ///< number of packets in gathered_
    std::uint64_t lost_ = 0;
};

/// Writes the datagrams of all sessions as a capture. If the output has segments, each segment starts
/// with a description and the state of every open session.
class CaptureSink final : public record::RecordSink, public DatagramSink {
  public:
    /// Which datagrams are written: all, or only those for which select_datagram() was called.
    enum class Choice : std::uint8_t { all, selected };

    /// `output` must start its files as capture_units() does, and must outlive the sink. Several sinks
    /// may share it.
    explicit CaptureSink(Output& output, Choice choice = Choice::all);

    /// Sets the source of session states, which make each segment readable on its own. Has no effect
    /// for Choice::selected, because a state is useless if the datagrams after it are missing.
    void repeat_states(StateSource states) {
        if (choice_ == Choice::all) {
            block_buffer_.blocks().repeat_states(std::move(states));
        }
    }

    /// Selects the current datagram to be written.
    void select_datagram() { is_selected_ = true; }

    void on_record(const record::Record& record) override {
        block_buffer_.blocks().on_record(record);
    }

    void on_datagram(const record::RecordHead& head, std::span<const std::byte> datagram) override;
    void on_datagram_end() override;
    /// Passes on all collected blocks.
    void flush();
    /// Appends the comments made since the last datagram. No further call is allowed.
    void finish(record::Timestamp time);

    /// The number of datagrams that were too long for a capture.
    [[nodiscard]] std::uint64_t lost() const { return lost_; }

  private:
    void begin_segment();

    Output* output_;
    Choice choice_;
    bool is_selected_ = true;
    std::uint32_t segment_; ///< 0 if the output has no segments
    CaptureBlockBuffer block_buffer_;
    std::uint64_t lost_ = 0;
};

/// Selects every datagram that causes a record to be written to the capture.
class CaptureSelector final : public record::RecordSink {
  public:
    explicit CaptureSelector(CaptureSink& capture) : capture_{&capture} {}

    void on_record(const record::Record& /*record*/) override { capture_->select_datagram(); }

  private:
    CaptureSink* capture_;
};

} // namespace tw::sink
