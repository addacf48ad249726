#include "proxy/sink/recording_mending.h"

#include "proxy/sink/line_reader.h"
#include "proxy/sink/unpacker.h"
#include "proxy/sink/zstd_frames.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

namespace tw::sink {

namespace {

using Result = Mending::Result;

/// Nothing that was ever written live has more text behind its last whole frame; a bit is for the last unit.
constexpr std::uint64_t kMaxRescued = 2 * kMaxFrameText;

/// The first bytes of what frames hold; fewer where there are fewer, or where they are damaged.
std::string begin_of_text(int file) {
    constexpr std::size_t kBegin = 4096;
    constexpr std::size_t kPiece = 65536;
    std::string text(kBegin, '\0');
    std::size_t size = 0;
    std::vector<char> packed(kPiece);
    std::unique_ptr<Unpacker> unpacker;
    for (off_t at = 0; size < text.size();) {
        const ssize_t read = ::pread(file, packed.data(), packed.size(), at);
        if (read <= 0) {
            break;
        }
        if (!unpacker) {
            unpacker = make_unpacker({packed.data(), static_cast<std::size_t>(read)});
        }
        const auto step =
            unpacker ? unpacker->unpack(std::span{packed}.first(static_cast<std::size_t>(read)),
                                        std::span{text}.subspan(size))
                     : Unpacker::Step{.damaged = true};
        size += step.written;
        at += static_cast<off_t>(step.read);
        if (step.damaged || (step.read == 0 && step.written == 0)) {
            break;
        }
    }
    text.resize(size);
    return text;
}

bool write_all(Disk& disk, int file, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t done = disk.write(file, bytes);
        if (done > 0) {
            bytes.remove_prefix(static_cast<std::size_t>(done));
        } else if (done == 0 || errno != EINTR) {
            errno = done == 0 ? EIO : errno;
            return false;
        }
    }
    return true;
}

/// Packs the whole units of a text that comes in pieces.
class Rescue {
  public:
    explicit Rescue(const Units& units) : units_{&units} {}

    /// False: it is too much.
    [[nodiscard]] bool add(std::string_view text) {
        all_bytes_ += text.size();
        rest_.append(text);
        pack(units_->whole(rest_));
        return all_bytes_ <= kMaxRescued;
    }

    /// What was packed; empty: not a single unit.
    [[nodiscard]] const std::string& finish() {
        if (const std::string_view end = units_->missing_end(rest_); !end.empty()) {
            rest_.append(end);
            pack(rest_.size());
        }
        end_frame();
        return packed_;
    }

    /// What is no whole unit.
    [[nodiscard]] std::uint64_t rest_bytes() const { return rest_.size(); }

    [[nodiscard]] bool too_much() const { return all_bytes_ > kMaxRescued; }

  private:
    void pack(std::size_t size) {
        if (size != 0) {
            frames_.add(std::string_view{rest_}.substr(0, size), packed_);
            rest_.erase(0, size);
            frame_bytes_ += size;
        }
        if (frame_bytes_ >= kMaxFrameText) {
            end_frame();
        }
    }

    void end_frame() {
        if (frame_bytes_ != 0) {
            frames_.end(packed_);
            frame_bytes_ = 0;
        }
    }

    const Units* units_;
    FrameWriter frames_;
    std::string packed_;
    std::string rest_; ///< behind the last whole unit
    std::uint64_t frame_bytes_ = 0;
    std::uint64_t all_bytes_ = 0;
};

/// The units go behind the frame that holds them, and only when they are there for sure that becomes one that readers
/// skip. In between it still has no end, so that the next try takes them from it again.
Mending mend_frame(Disk& disk, int file, const Units& units, const FrameScan& scan) {
    Rescue rescue{units};
    const auto end = read_unfinished_frame(
        file, scan.whole, [&rescue](std::string_view text) { return rescue.add(text); });
    if (rescue.too_much() || !end || *end - scan.whole > kMaxSkippable) {
        return {.result = Result::too_much};
    }
    const std::string& frames = rescue.finish();
    const std::uint64_t kept = frames.empty() ? scan.whole : *end;
    if (!disk.truncate(file, kept)) {
        return {.result = Result::failed};
    }
    const Mending cut{.cut_bytes = scan.size - kept + (frames.empty() ? 0 : rescue.rest_bytes())};
    if (frames.empty()) {
        return cut;
    }
    const bool done = write_all(disk, file, frames) && disk.sync(file) &&
                      disk.patch(file, scan.whole, skippable_header(kept - scan.whole));
    if (!done) {
        const int error = errno;
        static_cast<void>(disk.truncate(file, kept));
        errno = error;
        return {.result = Result::failed};
    }
    return cut;
}

/// What stands behind the last whole unit; empty where it is longer than any.
std::string behind(int file, std::uint64_t end, std::uint64_t size) {
    std::string text(size - end <= LineReader::kMaxLineBytes ? size - end : 0, '\0');
    const ssize_t read = ::pread(file, text.data(), text.size(), static_cast<off_t>(end));
    return read == static_cast<ssize_t>(text.size()) ? text : std::string{};
}

} // namespace

Mending mend_end(Disk& disk, int file, const Units& units, bool compressed) {
    const auto facts = disk.facts(file);
    if (!facts || !facts->regular) {
        return {};
    }
    if (compressed) {
        const auto scan = scan_frames(file);
        if (!scan) {
            return {};
        }
        if (scan->foreign || units.is_foreign(begin_of_text(file))) {
            return {.result = Result::foreign};
        }
        return scan->whole == scan->size ? Mending{} : mend_frame(disk, file, units, *scan);
    }
    if (units.foreign(file)) {
        return {.result = Result::foreign};
    }
    const auto end = units.end_in(file, facts->size);
    if (!end || *end >= facts->size) {
        return {};
    }
    const std::string_view missing = units.missing_end(behind(file, *end, facts->size));
    if (!missing.empty() && write_all(disk, file, missing)) {
        return {};
    }
    return {.cut_bytes = disk.truncate(file, *end) ? facts->size - *end : 0};
}

} // namespace tw::sink
