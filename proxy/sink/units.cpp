#include "proxy/sink/units.h"

#include "proxy/record/json_check.h"
#include "proxy/record/records.h"
#include "proxy/sink/capture_blocks.h"
#include "proxy/sink/json_lines.h"
#include "proxy/sink/output.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include <fmt/format.h>
#include <unistd.h>

namespace tw::sink {

namespace {

/// What every record begins with (RECORDS.md).
constexpr std::string_view kRecordStart = "{\"v\":";

/// Appends what is written to a text.
class Text final : public Output {
  public:
    void write(std::string_view block) override { text.append(block); }

    std::string text;
};

/// All that a lost power may leave of a file: its size.
bool is_zeros(int file) {
    std::array<char, 4096> piece{};
    for (off_t at = 0;;) {
        const ssize_t read = ::pread(file, piece.data(), piece.size(), at);
        if (read <= 0) {
            return read == 0;
        }
        if (std::any_of(piece.begin(), piece.begin() + read, [](char c) { return c != '\0'; })) {
            return false;
        }
        at += read;
    }
}

class Lines final : public Units {
  public:
    [[nodiscard]] std::size_t front(std::string_view text, std::size_t size) const override {
        const std::size_t end = size == 0 ? std::string_view::npos : text.find('\n', size - 1);
        return end == std::string_view::npos ? text.size() : end + 1;
    }

    [[nodiscard]] std::size_t whole(std::string_view text) const override {
        return text.rfind('\n') + 1; // npos + 1 is 0
    }

    [[nodiscard]] std::uint64_t count(std::string_view text) const override {
        return lines_in(text);
    }

    [[nodiscard]] std::optional<std::uint64_t> end_in(int file, std::uint64_t size) const override {
        std::array<char, 4096> piece{};
        for (std::uint64_t end = size; end > 0;) {
            const std::uint64_t begin = end - std::min<std::uint64_t>(end, piece.size());
            const ssize_t read = ::pread(file, piece.data(), static_cast<std::size_t>(end - begin),
                                         static_cast<off_t>(begin));
            if (read != static_cast<ssize_t>(end - begin)) {
                return std::nullopt;
            }
            const std::string_view text{piece.data(), static_cast<std::size_t>(read)};
            if (const std::size_t bytes = whole(text); bytes != 0) {
                return begin + bytes;
            }
            end = begin;
        }
        return 0;
    }

    /// A line that was cut short is a record's, too, if it begins like one.
    [[nodiscard]] bool foreign(int file) const override {
        std::array<char, kRecordStart.size()> piece{};
        const ssize_t read = ::pread(file, piece.data(), piece.size(), 0);
        return is_foreign({piece.data(), static_cast<std::size_t>(std::max<ssize_t>(read, 0))}) &&
               !is_zeros(file);
    }

    [[nodiscard]] bool is_foreign(std::string_view begin) const override {
        return !kRecordStart.starts_with(begin.substr(0, kRecordStart.size()));
    }

    [[nodiscard]] std::string_view missing_end(std::string_view text) const override {
        return record::is_json_object(text) ? "\n" : "";
    }

    [[nodiscard]] std::string loss(const Loss& loss, std::int64_t now) const override {
        const record::LossRecord record{
            .head = {.time = now}, .lost = loss.count, .since = loss.since, .cause = loss.cause};
        Text line;
        JsonLines json{{}, line};
        json.on_record(&record);
        json.flush();
        return line.text;
    }

    [[nodiscard]] std::string_view name() const override { return "records"; }
};

std::string_view as_text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class Blocks final : public Units {
  public:
    [[nodiscard]] std::string head() const override {
        return std::string{as_text(CaptureBlocks::head())};
    }

    [[nodiscard]] std::size_t front(std::string_view text, std::size_t size) const override {
        BlockWalk walk{text};
        while (walk.at() < size && walk.next()) {
        }
        return walk.at() < size ? text.size() : walk.at();
    }

    [[nodiscard]] std::size_t whole(std::string_view text) const override {
        BlockWalk walk{text};
        while (walk.next()) {
        }
        return walk.at();
    }

    [[nodiscard]] std::uint64_t count(std::string_view text) const override {
        std::uint64_t packets = 0;
        BlockWalk walk{text};
        while (const auto block = walk.next()) {
            packets += block->type == PcapngEncoder::kPacketBlock ? 1U : 0U;
        }
        return packets;
    }

    [[nodiscard]] std::optional<std::uint64_t> end_in(int file,
                                                      std::uint64_t /*size*/) const override {
        return whole_capture_bytes(file);
    }

    [[nodiscard]] bool foreign(int file) const override {
        const std::string own = head();
        std::string first(own.size(), '\0');
        const ssize_t read = ::pread(file, first.data(), first.size(), 0);
        first.resize(static_cast<std::size_t>(std::max<ssize_t>(read, 0)));
        // More than a head that was cut short, and nothing whole: somebody else's, in whatever state.
        const auto section = PcapngBlock::read(own);
        const bool is_broken =
            section && first.size() >= section->size && whole_capture_bytes(file) == 0;
        return is_foreign(first) || is_broken;
    }

    [[nodiscard]] bool is_foreign(std::string_view begin) const override {
        constexpr std::size_t kOrderAt = 8; // behind the type and the length of a section's head
        const std::string own = head();
        // The type reads the same in either order of bytes: what follows the length tells them apart.
        const auto is_same = [&](std::size_t at) {
            const std::string_view mine = std::string_view{own}.substr(at, sizeof(std::uint32_t));
            return begin.size() < at || mine.starts_with(begin.substr(at, sizeof(std::uint32_t)));
        };
        return !is_same(0) || !is_same(kOrderAt);
    }

    [[nodiscard]] std::string loss(const Loss& loss, std::int64_t now) const override {
        CaptureBlocks blocks;
        blocks.say(fmt::format("{} packets are missing here ({})", loss.count, loss.cause));
        std::vector<std::byte> block;
        blocks.finish(now, block);
        return std::string{as_text(block)};
    }

    [[nodiscard]] std::string_view name() const override { return "a pcapng capture"; }
};

} // namespace

const Units& record_lines() {
    static const Lines lines;
    return lines;
}

const Units& capture_units() {
    static const Blocks blocks;
    return blocks;
}

} // namespace tw::sink
