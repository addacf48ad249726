#include "proxy/demo/demo_reader.h"

#include "proxy/inspect/map_tracker.h"
#include "proxy/wire/huffman.h"
#include "snapshot/cursor.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <system_error>

#include <sys/stat.h>

namespace tw::demo {

namespace {

using enum DemoErrc;

constexpr auto kTable = std::to_array<DemoErrorInfo>({
    {none, "none", "nothing is wrong"},
    {no_demo, "no_demo", "is not a demo"},
    {version_unsupported, "version_unsupported", "is a demo of a version other than 3 to 6"},
    {header_cut, "header_cut", "ends inside the header of a demo"},
    {map_size_invalid, "map_size_invalid", "claims a map of an impossible size"},
    {map_cut, "map_cut", "ends inside its map"},
    {chunk_cut, "chunk_cut", "ends inside a chunk"},
    {tick_before_first, "tick_before_first", "has a relative tick before an absolute one"},
    {tick_out_of_range, "tick_out_of_range", "has a tick that no demo player accepts"},
    {payload_undecodable, "payload_undecodable", "has a chunk that cannot be decompressed"},
    {payload_too_long, "payload_too_long", "has a chunk of more than 64 KiB"},
    {payload_ints_cut, "payload_ints_cut", "has a chunk that ends inside an integer"},
});

static_assert(kTable.size() == static_cast<std::size_t>(payload_ints_cut) + 1);

} // namespace

std::span<const DemoErrorInfo> demo_error_table() {
    return kTable;
}

const DemoErrorInfo& demo_error_info(DemoErrc code) {
    return kTable[static_cast<std::size_t>(code)];
}

namespace {

using BytesView = std::span<const std::byte>;

std::uint32_t big_endian_at(BytesView bytes, std::size_t at) {
    std::uint32_t value = 0;
    for (const std::byte byte : bytes.subspan(at, 4)) {
        value = value << 8U | std::to_integer<std::uint32_t>(byte);
    }
    return value;
}

std::string read_text(BytesView bytes, std::size_t at, std::size_t size) {
    const BytesView field = bytes.subspan(at, size);
    const auto end = std::ranges::find(field, std::byte{0});
    return {reinterpret_cast<const char*>(field.data()),
            static_cast<std::size_t>(end - field.begin())};
}

auto error(DemoErrc code, std::size_t offset) {
    return tl::unexpected{DemoError{code, offset}};
}

std::size_t header_bytes(int version) {
    return version < kMarkersVersion ? kHeaderBytes : kMarkersEnd;
}

void read_markers(BytesView file, Header& header) {
    // DDNet's player does not reject a count out of range, but limits the number of markers.
    const auto count = static_cast<std::int32_t>(big_endian_at(file, kNumMarkersAt));
    const auto kept = std::clamp<std::int32_t>(count, 0, kMaxMarkers);
    for (std::int32_t i = 0; i < kept; ++i) {
        header.markers.push_back(static_cast<std::int32_t>(
            big_endian_at(file, kMarkersAt + 4 * static_cast<std::size_t>(i))));
    }
}

enum class Sha256Extension : std::uint8_t { absent, cut, whole };

/// Looks for the map's SHA-256 after the header. DDNet versions of late 2019 did not write it.
Sha256Extension find_sha256(BytesView file) {
    const BytesView rest = file.subspan(kMarkersEnd);
    const std::size_t compared = std::min(rest.size(), kSha256Uuid.size());
    if (std::memcmp(rest.data(), kSha256Uuid.data(), compared) != 0) {
        return Sha256Extension::absent;
    }
    return file.size() < kSha256End ? Sha256Extension::cut : Sha256Extension::whole;
}

} // namespace

bool looks_like_demo(BytesView begin) {
    return begin.size() >= kMagic.size() &&
           std::memcmp(begin.data(), kMagic.data(), kMagic.size()) == 0;
}

DemoResult<DemoHead> decode_demo_head(BytesView file) {
    if (!looks_like_demo(file)) {
        return error(DemoErrc::no_demo, 0);
    }
    if (file.size() <= kVersionAt) {
        return error(DemoErrc::header_cut, file.size());
    }
    DemoHead head;
    Header& header = head.header;
    header.version = std::to_integer<int>(file[kVersionAt]);
    if (header.version < kOldestVersion || header.version > kSha256Version) {
        return error(DemoErrc::version_unsupported, kVersionAt);
    }
    head.map_at = header_bytes(header.version);
    if (file.size() < head.map_at) {
        return error(DemoErrc::header_cut, file.size());
    }
    header.net_version = read_text(file, kNetVersionAt, kTextBytes);
    header.map_name = read_text(file, kMapNameAt, kTextBytes);
    header.map_size = big_endian_at(file, kMapSizeAt);
    header.map_crc = big_endian_at(file, kMapCrcAt);
    header.type = read_text(file, kTypeAt, kTypeBytes);
    header.length = static_cast<std::int32_t>(big_endian_at(file, kLengthAt));
    header.timestamp = read_text(file, kTimestampAt, kTimestampBytes);
    if (header.version >= kMarkersVersion) {
        read_markers(file, header);
    }
    const Sha256Extension extension =
        header.version >= kSha256Version ? find_sha256(file) : Sha256Extension::absent;
    if (extension == Sha256Extension::cut) {
        return error(DemoErrc::header_cut, file.size());
    }
    if (extension == Sha256Extension::whole) {
        std::memcpy(header.sha256.emplace().data(), file.data() + kSha256At, header.sha256->size());
        head.map_at = kSha256End;
    }
    if (header.map_size > inspect::MapDownload::kMaxBytes) {
        return error(DemoErrc::map_size_invalid, kMapSizeAt);
    }
    if (header.map_size > file.size() - head.map_at) {
        return error(DemoErrc::map_cut, file.size());
    }
    head.map = file.subspan(head.map_at, header.map_size);
    head.chunks_at = head.map_at + header.map_size;
    head.chunks = file.subspan(head.chunks_at);
    return head;
}

std::optional<std::int64_t> parse_demo_time(std::string_view timestamp) {
    struct Part {
        std::size_t at;
        std::size_t size;
        int min;
        int max;
    };

    static constexpr std::array<Part, 6> kParts{{{0, 4, 1970, 2255},
                                                 {5, 2, 1, 12},
                                                 {8, 2, 1, 31},
                                                 {11, 2, 0, 23},
                                                 {14, 2, 0, 59},
                                                 {17, 2, 0, 60}}};
    std::array<int, kParts.size()> values{};
    for (std::size_t i = 0; i < kParts.size(); ++i) {
        const Part& part = kParts[i];
        if (timestamp.size() < part.at + part.size) {
            return std::nullopt;
        }
        const char* const begin = timestamp.data() + part.at;
        const auto [end, failed] = std::from_chars(begin, begin + part.size, values[i]);
        if (failed != std::errc{} || end != begin + part.size || values[i] < part.min ||
            values[i] > part.max) {
            return std::nullopt;
        }
    }
    using namespace std::chrono;
    const year_month_day date{year{values[0]}, month{static_cast<unsigned>(values[1])},
                              day{static_cast<unsigned>(values[2])}};
    if (!date.ok()) {
        return std::nullopt;
    }
    const auto time = sys_days{date} + hours{values[3]} + minutes{values[4]} + seconds{values[5]};
    return nanoseconds{time.time_since_epoch()}.count();
}

std::uint8_t DemoChunkReader::read_u8() {
    return std::to_integer<std::uint8_t>(chunks_[used_++]);
}

std::optional<DemoChunk> DemoChunkReader::fail(DemoErrc code) {
    error_ = {code, at_ + begin_};
    return std::nullopt;
}

std::optional<DemoChunk> DemoChunkReader::next_chunk() {
    if (has_failed() || bytes_left() == 0) {
        return std::nullopt;
    }
    begin_ = used_;
    const std::uint8_t first = read_u8();
    return (first & kTickBit) != 0 ? next_tick_chunk(first) : next_data_chunk(first);
}

std::optional<DemoChunk> DemoChunkReader::next_tick_chunk(std::uint8_t first) {
    const bool steps = version_ >= kStepsVersion;
    const bool by_step = steps ? (first & kStepBit) != 0 : (first & kOldStepMask) != 0;
    std::int64_t tick = 0;
    if (by_step) {
        if (!tick_) {
            return fail(DemoErrc::tick_before_first);
        }
        tick = std::int64_t{*tick_} + (first & (steps ? kStepMask : kOldStepMask));
    } else {
        if (bytes_left() < kIntBytes) {
            return fail(DemoErrc::chunk_cut);
        }
        std::uint32_t absolute = 0;
        for (std::size_t i = 0; i < kIntBytes; ++i) {
            absolute = absolute << 8U | read_u8();
        }
        tick = static_cast<std::int32_t>(absolute);
    }
    if (tick < 0 || tick > kMaxTick) {
        return fail(DemoErrc::tick_out_of_range);
    }
    tick_ = static_cast<snapshot::Tick>(tick);
    return DemoChunk{.kind = DemoChunk::Kind::tick,
                     .keyframe = (first & kKeyframeBit) != 0,
                     .tick = *tick_,
                     .offset = at_ + begin_,
                     .data = {}};
}

std::optional<DemoChunk> DemoChunkReader::next_data_chunk(std::uint8_t first) {
    std::size_t size = first & kSizeMask;
    const std::size_t more = size < kSizeOneByte ? 0 : size == kSizeOneByte ? 1 : 2;
    if (bytes_left() < more) {
        return fail(DemoErrc::chunk_cut);
    }
    if (more != 0) {
        size = read_u8();
        size |= more == 1 ? 0 : std::size_t{read_u8()} << 8U;
    }
    if (bytes_left() < size) {
        return fail(DemoErrc::chunk_cut);
    }
    using enum DemoChunk::Kind;
    static constexpr DemoChunk::Kind kKinds[] = {other, snapshot, message, delta};
    const DemoChunk chunk{.kind = kKinds[first >> kTypeShift & kTypeMask],
                          .offset = at_ + begin_,
                          .data = chunks_.subspan(used_, size)};
    used_ += size;
    return chunk;
}

DemoChunkDecoder::DemoChunkDecoder()
    : bytes_(kMaxPayload), ints_(kMaxPayload + snapshot::kVarintsSlack) {}

DemoResult<std::span<const std::byte>>
DemoChunkDecoder::decompress_varints(const DemoChunk& chunk) {
    if (chunk.data.empty()) {
        return chunk.data; // demo players do not decompress an empty chunk
    }
    const auto size = wire::huffman_decompress(chunk.data, bytes_);
    if (!size) {
        const bool long_one = size.error().code == wire::WireErrc::huffman_overflow;
        return tl::unexpected{DemoError{
            long_one ? DemoErrc::payload_too_long : DemoErrc::payload_undecodable, chunk.offset}};
    }
    return std::span<const std::byte>{bytes_}.first(*size);
}

DemoResult<std::span<const std::int32_t>> DemoChunkDecoder::decode_ints(const DemoChunk& chunk) {
    const auto bytes = decompress_varints(chunk);
    if (!bytes) {
        return tl::unexpected{bytes.error()};
    }
    const snapshot::VarintsDecoded decoded = snapshot::decode_varints(*bytes, ints_);
    if (decoded.bytes != bytes->size()) {
        return tl::unexpected{DemoError{DemoErrc::payload_ints_cut, chunk.offset}};
    }
    if (decoded.count > kMaxPayload / kIntBytes) {
        return tl::unexpected{DemoError{DemoErrc::payload_too_long, chunk.offset}};
    }
    return std::span<const std::int32_t>{ints_}.first(decoded.count);
}

DemoResult<std::span<const std::byte>> DemoChunkDecoder::decode_message(const DemoChunk& chunk) {
    const auto decoded = decode_ints(chunk);
    if (!decoded) {
        return tl::unexpected{decoded.error()};
    }
    message_.clear();
    for (const std::int32_t value : *decoded) {
        const auto bits = static_cast<std::uint32_t>(value);
        for (const unsigned shift : {0U, 8U, 16U, 24U}) {
            message_.push_back(static_cast<std::byte>(bits >> shift));
        }
    }
    return std::span<const std::byte>{message_};
}

namespace {

constexpr std::int32_t kBytesOfInt = 4;
constexpr std::size_t kHeadInts = 2;

struct Item {
    std::uint32_t key = 0;
    std::span<const std::int32_t> data;
};

DemoSnapshotResult fail(DemoSnapshotError::Kind kind, std::size_t index) {
    return {.ok = false, .error = {.kind = kind, .index = index}};
}

} // namespace

DemoSnapshotResult decode_demo_snapshot(std::span<const std::int32_t> ints,
                                        snapshot::Snapshot& out) {
    using Kind = DemoSnapshotError::Kind;
    out.clear();
    if (ints.size() < kHeadInts || ints[0] < 0 || ints[1] < 0 ||
        static_cast<std::size_t>(ints[1]) > snapshot::kMaxItems) {
        return fail(Kind::counts, 0);
    }
    const auto num_items = static_cast<std::size_t>(ints[1]);
    const std::int32_t bytes = ints[0];
    if (bytes % kBytesOfInt != 0 ||
        ints.size() != kHeadInts + num_items + static_cast<std::size_t>(bytes / kBytesOfInt)) {
        return fail(Kind::counts, 0);
    }
    const auto offsets = ints.subspan(kHeadInts, num_items);
    const auto data = ints.subspan(kHeadInts + num_items);
    std::vector<Item> items;
    items.reserve(num_items);
    for (std::size_t i = 0; i < num_items; ++i) {
        const std::int32_t begin = offsets[i];
        const std::int32_t end = i + 1 < num_items ? offsets[i + 1] : bytes;
        const bool inside = begin >= 0 && begin <= bytes && end >= 0 && end <= bytes;
        if (!inside || begin % kBytesOfInt != 0 || end % kBytesOfInt != 0 ||
            end - begin < kBytesOfInt) {
            return fail(Kind::offsets, kHeadInts + i);
        }
        const auto item = data.subspan(static_cast<std::size_t>(begin / kBytesOfInt),
                                       static_cast<std::size_t>((end - begin) / kBytesOfInt));
        if (item[0] < 0) {
            return fail(Kind::type,
                        kHeadInts + num_items + static_cast<std::size_t>(begin / kBytesOfInt));
        }
        items.push_back({static_cast<std::uint32_t>(item[0]), item.subspan(1)});
    }
    std::ranges::stable_sort(
        items, [](const Item& left, const Item& right) { return left.key < right.key; });
    DemoSnapshotResult read;
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (i != 0 && items[i].key == items[i - 1].key) {
            ++read.duplicates;
        } else {
            out.append(snapshot::ItemKey::from_packed(items[i].key), items[i].data);
        }
    }
    return read;
}

bool DemoFile::is_demo(const std::string& path) {
    if (path == "-") {
        return false;
    }
    std::array<char, kMagic.size()> begin{};

    // A pipe is not read here, because reading would consume its data.
    struct stat found {};

    if (::stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) {
        return false;
    }
    std::ifstream file{path, std::ios::binary};
    file.read(begin.data(), begin.size());
    return file && looks_like_demo(std::as_bytes(std::span{begin}));
}

DemoFile::DemoFile(const std::string& path) {
    const auto fail = [&path](const std::string& why) {
        throw std::runtime_error{path + ": " + why};
    };
    std::FILE* const opened = std::fopen(path.c_str(), "rbe");
    if (opened == nullptr) {
        fail(std::generic_category().message(errno));
    }
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{opened, &std::fclose};

    struct stat found {};

    if (::fstat(::fileno(opened), &found) != 0) {
        fail(std::generic_category().message(errno));
    }
    if (static_cast<std::uint64_t>(found.st_size) > kMaxBytes) {
        fail("larger than 1 GiB, the limit for demos");
    }
    bytes_.resize(static_cast<std::size_t>(found.st_size));
    bytes_.resize(std::fread(bytes_.data(), 1, bytes_.size(), opened));
    if (std::ferror(opened) != 0) {
        fail(std::generic_category().message(errno));
    }
    if (bytes_.empty()) {
        fail("is empty");
    }
}

namespace {

using record::FindingId;
using snapshot::Tick;

constexpr std::int64_t kNanosecondsPerTick = 1'000'000'000 / kTicksPerSecond;

std::string_view describe(DemoSnapshotError::Kind kind) {
    switch (kind) {
    case DemoSnapshotError::Kind::counts:
        return "its counts do not match its size";
    case DemoSnapshotError::Kind::offsets:
        return "an item's offset is invalid";
    case DemoSnapshotError::Kind::type:
        return "an item's type is invalid";
    }
    return {};
}

/// Returns the dialect that demo players use for the header's net version.
snapshot::Dialect dialect_of(const Header& header) {
    return header.net_version.starts_with("0.7") ? snapshot::Dialect::seven
                                                 : snapshot::Dialect::six;
}

class DemoPlayer {
  public:
    DemoPlayer(const DemoHead& demo, const std::string& name, inspect::Inspector& inspector)
        : demo_{&demo}, inspector_{&inspector}, chunks_{demo.chunks, demo.header.version,
                                                        demo.chunks_at},
          start_{parse_demo_time(demo.header.timestamp).value_or(0)}, now_{start_},
          playback_{inspector.begin_demo(start_, name, demo.header.type + " demo",
                                         dialect_of(demo.header))} {}

    DemoReadResult play() {
        inspect_map();
        playback_->on_time(now_);
        while (const auto chunk = chunks_.next_chunk()) {
            if (!play_chunk(*chunk)) {
                break;
            }
        }
        if (chunks_.has_failed()) {
            error_ = chunks_.error();
        }
        finish();
        inspector_->end_demo(*playback_, now_, "end of demo");
        return {.first = start_, .last = now_, .error = error_};
    }

  private:
    void inspect_map() {
        const Header& header = demo_->header;
        playback_->on_map({.name = header.map_name,
                           .crc = header.map_crc,
                           .size = header.map_size,
                           .sha256 = header.sha256},
                          {demo_->map.begin(), demo_->map.end()});
    }

    /// Plays a chunk. Returns false if the rest of the demo cannot be played.
    bool play_chunk(const DemoChunk& chunk) {
        switch (chunk.kind) {
        case DemoChunk::Kind::tick:
            repeat_snapshot();
            check_tick_order(chunk);
            set_tick(chunk.tick);
            return true;
        case DemoChunk::Kind::snapshot:
            return inspect_snapshot(chunk);
        case DemoChunk::Kind::delta:
            return inspect_delta(chunk);
        case DemoChunk::Kind::message:
            return inspect_message(chunk);
        case DemoChunk::Kind::other:
            return play_unused(chunk);
        }
        return true;
    }

    /// Inspects the previous snapshot again for a tick without a usable snapshot. Demo players do
    /// so when another chunk follows the tick.
    void repeat_snapshot() {
        if (waiting_) {
            playback_->on_unchanged_snapshot(tick_);
            waiting_ = false;
        }
    }

    /// Reports ticks out of order. Demo players accept any tick and play it at once if it is not
    /// later than the previous one.
    void check_tick_order(const DemoChunk& chunk) {
        if (first_ && chunk.tick <= tick_) {
            playback_->on_finding_once({.id = FindingId::demo_tick_order,
                                        .tick = chunk.tick,
                                        .offset = chunk.offset,
                                        .value = tick_});
        }
    }

    void set_tick(Tick tick) {
        first_ = first_.value_or(tick);
        tick_ = tick;
        waiting_ = true;
        now_ = start_ + (std::int64_t{tick} - *first_) * kNanosecondsPerTick;
        playback_->on_time(now_);
    }

    bool stop_at_error(const DemoError& error) {
        error_ = error;
        return false;
    }

    bool inspect_snapshot(const DemoChunk& chunk) {
        const auto body = payload_.decompress_varints(chunk);
        if (!body) {
            return stop_at_error(body.error());
        }
        const std::size_t bytes = body->size();
        const auto ints = payload_.decode_ints(chunk);
        if (!ints) {
            return stop_at_error(ints.error());
        }
        const DemoSnapshotResult read = decode_demo_snapshot(*ints, full_);
        if (!read.ok) {
            playback_->on_invalid_snapshot(tick_, bytes,
                                           {.id = FindingId::demo_snapshot_invalid,
                                            .offset = chunk.offset,
                                            .value = static_cast<std::int64_t>(read.error.index),
                                            .detail = describe(read.error.kind)});
            return true;
        }
        if (read.duplicates != 0) {
            playback_->on_finding({.id = FindingId::demo_duplicate_item,
                                   .tick = tick_,
                                   .offset = chunk.offset,
                                   .value = static_cast<std::int64_t>(read.duplicates)});
        }
        playback_->on_full_snapshot(tick_, bytes, full_.view());
        waiting_ = false;
        return true;
    }

    bool inspect_delta(const DemoChunk& chunk) {
        const auto body = payload_.decompress_varints(chunk);
        if (!body) {
            return stop_at_error(body.error());
        }
        if (playback_->on_delta(tick_, *body)) {
            waiting_ = false;
        }
        return true;
    }

    bool inspect_message(const DemoChunk& chunk) {
        const auto payload = payload_.decode_message(chunk);
        if (!payload) {
            return stop_at_error(payload.error());
        }
        repeat_snapshot();
        playback_->on_message(*payload, fields_);
        return true;
    }

    /// Decompresses a chunk of an unused type, whose errors end the demo, as in demo players.
    bool play_unused(const DemoChunk& chunk) {
        const auto ints = payload_.decode_ints(chunk);
        if (!ints) {
            return stop_at_error(ints.error());
        }
        repeat_snapshot();
        return true;
    }

    void finish() {
        if (error_.code != DemoErrc::none) {
            const DemoErrorInfo& info = demo_error_info(error_.code);
            playback_->on_finding({.id = is_truncation(error_.code) ? FindingId::demo_cut_short
                                                                    : FindingId::demo_damaged,
                                   .tick = first_ ? std::optional{tick_} : std::nullopt,
                                   .offset = error_.offset,
                                   .name = info.name,
                                   .detail = info.sentence});
        }
    }

    const DemoHead* demo_;
    inspect::Inspector* inspector_;
    DemoChunkReader chunks_;
    record::Timestamp start_;
    record::Timestamp now_;
    std::unique_ptr<inspect::DemoSession> playback_;
    DemoChunkDecoder payload_;
    snapshot::Snapshot full_;
    wire::DecodedFields fields_;
    std::optional<Tick> first_;
    Tick tick_ = 0;
    bool waiting_ = false; ///< no usable snapshot was read since the last tick
    DemoError error_;
};

} // namespace

DemoReadResult inspect_demo(const DemoHead& demo, const std::string& name,
                            inspect::Inspector& inspector) {
    return DemoPlayer{demo, name, inspector}.play();
}

} // namespace tw::demo
