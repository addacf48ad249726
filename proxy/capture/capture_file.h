#pragma once

#include "proxy/capture/frame_reader.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tw::capture {

/// Hands on a capture's bytes so that all sections of a pcapng file have the byte order of its first
/// one: libpcap reads no others. Everything else passes as it is.
///
/// Bounded: it keeps one block of a section in the other order, which has at most kMaxBlock bytes.
/// Source:  draft-ietf-opsawg-pcapng, sections 3 and 4.
class SectionOrder {
  public:
    static constexpr std::uint32_t kMaxBlock = std::uint32_t{16} << 20U; ///< libpcap's

    /// Fills a room as far as bytes are there; 0: the end, or an error.
    using Read = std::function<std::size_t(std::span<std::byte>)>;

    /// Reads at least one byte, unless `source` has none.
    [[nodiscard]] std::size_t read(std::span<std::byte> room, const Read& source);

  private:
    struct Head {
        std::uint32_t type;
        std::uint32_t size;
    };

    /// The block that begins here; nothing: its head is not all there, or no block of pcapng.
    [[nodiscard]] std::optional<Head> head_of(std::span<const std::byte> bytes);
    /// How many of these bytes, which follow those handed on, may be handed on as they are.
    [[nodiscard]] std::size_t passing(std::span<const std::byte> bytes);
    /// Moves what is complete from held_ to ready_.
    void make_ready();

    bool is_pcapng_ = true; ///< as far as was seen
    bool begun_ = false;
    bool swapped_ = false;         ///< the first section's order is not this machine's
    bool foreign_ = false;         ///< the section at hand has another order than the first one
    std::uint64_t left_ = 0;       ///< of a block that is handed on as it is
    std::vector<std::byte> held_;  ///< bytes of a block that is not all there
    std::vector<std::byte> ready_; ///< in the right order
    std::size_t handed_ = 0;       ///< of these
};

/// Finds what a pcapng file says of sessions (sink/session_state.h) in its bytes, which libpcap reads:
/// that skips such blocks. Keeps no more than was read and not asked for.
class StateBlocks {
  public:
    /// The next bytes of the file.
    void on_bytes(std::span<const std::byte> bytes);

    /// What stands right before this packet of the file, from 0 on; to be asked for all of them in
    /// turn. Null: nothing. Valid until the next call.
    [[nodiscard]] const CapturedState* before(std::uint64_t packet);

    /// Whether the first interface is one of twscope's, also where another program wrote the file anew.
    [[nodiscard]] bool by_twscope() const { return by_twscope_; }

  private:
    /// Type, length and, of a section, the mark that shows its order of bytes.
    static constexpr std::size_t kHead = 8;
    static constexpr std::size_t kSectionHead = 12;

    struct Found {
        std::uint64_t packet = 0; ///< behind it
        CapturedState state;
    };

    [[nodiscard]] std::uint32_t number_at(std::size_t at) const;
    /// Its head is there.
    void begin_block();
    void end_block();
    void look_at_interface(std::span<const std::byte> body);

    bool begun_ = false;
    bool lost_ = false;    ///< these are no blocks of pcapng
    bool swapped_ = false; ///< their order of bytes is not this machine's
    std::array<std::byte, kSectionHead> head_{};
    std::size_t head_size_ = 0;
    std::uint64_t left_ = 0; ///< of the block at hand, behind its head
    bool keeps_ = false;     ///< it is a state, or the first interface
    bool interface_ = false; ///< the latter
    bool interface_seen_ = false;
    bool by_twscope_ = false;
    std::vector<std::byte> body_;
    std::uint64_t packets_ = 0;
    std::deque<Found> found_;
    std::optional<CapturedState> due_;
};

} // namespace tw::capture

struct pcap;

namespace tw::capture {

struct CaptureStream;

/// Bytes at a capture's begin that tell what it is.
inline constexpr std::size_t kCaptureMagicSize = 4;

/// Whether a file that begins so is pcap, as one of its writers writes it, or pcapng.
[[nodiscard]] bool looks_like_capture(std::span<const std::byte> begin);

/// A pcap or pcapng file ("-": standard input) of a link that FrameReader knows.
class CaptureFile {
  public:
    /// Errors: CaptureError.
    explicit CaptureFile(const std::string& path);
    ~CaptureFile();
    CaptureFile(const CaptureFile&) = delete;
    CaptureFile& operator=(const CaptureFile&) = delete;
    CaptureFile(CaptureFile&&) = delete;
    CaptureFile& operator=(CaptureFile&&) = delete;

    /// The next UDP datagram, whole or cut; its payload and state are valid until the next call. False
    /// at the end.
    [[nodiscard]] bool next(CapturedDatagram& datagram);

    /// Whether twscope wrote it: its datagrams may stand a little out of order.
    [[nodiscard]] bool by_twscope() const;

    /// At the end: why nothing more can be read; empty: there is nothing more, or it was cut short.
    [[nodiscard]] const std::string& unreadable() const { return unreadable_; }

    [[nodiscard]] CaptureCounts counts() const {
        CaptureCounts counts = reader_->counts();
        counts.ended_early = ended_early_;
        return counts;
    }

  private:
    struct Close {
        void operator()(pcap* handle) const;
    };

    /// Notes why there is no next frame.
    void note_failure();

    std::unique_ptr<pcap, Close> handle_;
    CaptureStream* stream_ = nullptr; ///< that it reads, lives as long as handle_; null: by itself
    std::uint64_t packets_ = 0;       ///< that it handed on
    std::optional<FrameReader> reader_;
    bool ended_early_ = false;
    std::string unreadable_;
};

} // namespace tw::capture
