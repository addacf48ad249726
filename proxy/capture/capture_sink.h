#pragma once

#include "proxy/capture/pcapng.h"
#include "proxy/inspect/reporter.h"
#include "proxy/record/records.h"
#include "proxy/sink/output.h"
#include "proxy/store/file_output.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace tw::capture {

/// Collects the capture blocks of datagrams, and passes on pieces of about kBlockBytes bytes.
class CaptureBlockBuffer {
  public:
    /// A function that receives capture blocks. Returns false if it rejects them.
    using WriteBlocks = std::function<bool(std::span<const std::byte> blocks)>;

    explicit CaptureBlockBuffer(WriteBlocks write) : write_{std::move(write)} {}

    [[nodiscard]] CaptureEncoder& encoder() { return encoder_; }

    /// Appends the block of the current datagram of encoder() to the collected blocks.
    void end_datagram();
    void flush();
    /// Passes on all collected blocks, with the comments made since the latest datagram. `time`:
    /// the time of these comments.
    void flush_with_comments(record::Timestamp time);

    /// Discards the comments made since the latest datagram.
    void discard_comments() {
        std::vector<std::byte> said;
        encoder_.append_remaining_comments(0, said);
    }

    /// Returns the number of datagrams that were rejected since the last call of take_lost_count().
    [[nodiscard]] std::uint64_t take_lost_count() { return std::exchange(num_lost_, 0); }

  private:
    static constexpr std::size_t kBlockBytes = std::size_t{64} << 10U;

    WriteBlocks write_;
    CaptureEncoder encoder_;
    std::vector<std::byte> collected_;
    std::uint64_t num_datagrams_ = 0; ///< number of datagrams in collected_
    std::uint64_t num_lost_ = 0;
};

/// Returns the format of the pcapng files that CaptureEncoder writes.
[[nodiscard]] const store::RecordingFormat& capture_format();

/// Writes the datagrams of all sessions as a capture. If the output has segments, each segment
/// contains the description and state of each session, so that it can be read alone.
class CaptureSink final : public record::RecordSink, public inspect::Observer {
  public:
    /// Which datagrams are written: all datagrams, or only the datagrams for which
    /// select_current_datagram() was called.
    enum class DatagramChoice : std::uint8_t { all, selected };

    /// `output`: an output that writes capture files (see capture_format()). It must outlive the
    /// sink; several sinks may share it.
    explicit CaptureSink(sink::Output& output, DatagramChoice choice = DatagramChoice::all);

    /// Sets the source of session states, which make each segment readable alone. Has no effect
    /// with DatagramChoice::selected, because a state is useless if datagrams after it are missing.
    void set_session_state_source(SessionStateSource states) {
        if (choice_ == DatagramChoice::all) {
            block_buffer_.encoder().set_session_state_source(std::move(states));
        }
    }

    /// Makes the sink write the current datagram. Needed only with DatagramChoice::selected.
    void select_current_datagram() { is_selected_ = true; }

    void on_record(const record::Record& record) override {
        block_buffer_.encoder().on_record(record);
    }

    void on_datagram(const record::RecordHeader& head,
                     std::span<const std::byte> datagram) override;
    void on_datagram_end() override;
    void flush();
    /// Writes the comments made since the latest datagram, and all collected blocks. No other
    /// function may be called afterwards.
    void write_remaining_data(record::Timestamp time);

    /// Returns the number of datagrams that were too long for a capture and not written.
    [[nodiscard]] std::uint64_t num_lost_datagrams() const { return num_lost_; }

  private:
    void begin_segment();

    sink::Output* output_;
    DatagramChoice choice_;
    bool is_selected_ = true;
    std::uint32_t segment_; ///< 0 if the output has no segments
    CaptureBlockBuffer block_buffer_;
    std::uint64_t num_lost_ = 0;
};

/// Makes a CaptureSink write each datagram about which this object gets a record.
class DatagramSelector final : public record::RecordSink {
  public:
    explicit DatagramSelector(CaptureSink& capture) : capture_{&capture} {}

    void on_record(const record::Record& /*record*/) override {
        capture_->select_current_datagram();
    }

  private:
    CaptureSink* capture_;
};

} // namespace tw::capture
