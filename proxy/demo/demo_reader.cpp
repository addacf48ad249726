#include "proxy/demo/demo_reader.h"

#include "map/datafile.h"
#include "proxy/inspect/map_tracker.h"
#include "proxy/wire/huffman.h"
#include "proxy/wire/text.h"
#include "snapshot/cursor.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <fstream>
#include <stdexcept>
#include <utility>

#include <sys/stat.h>

namespace tw::demo {

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
    return std::string{wire::as_text({field.begin(), end})};
}

auto error(DemoErrc code, std::size_t offset) {
    return tl::unexpected{DemoError{code, offset}};
}

std::size_t header_bytes(int version) {
    return version < kFirstVersionWithMarkers ? kHeaderBytes : kMarkersEnd;
}

void read_markers(BytesView file, DemoHeader& header) {
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

constexpr std::int32_t kBytesOfInt = 4;
constexpr std::size_t kHeadInts = 2;

struct Item {
    std::uint32_t key = 0;
    std::span<const std::int32_t> data;
};

using record::FindingId;
using snapshot::Tick;

constexpr std::int64_t kNanosecondsPerTick = record::kNanosecondsPerSecond / kTicksPerSecond;

/// Returns the dialect that demo players use for the header's net version.
snapshot::Dialect dialect_of(const DemoHeader& header) {
    return header.net_version.starts_with("0.7") ? snapshot::Dialect::seven
                                                 : snapshot::Dialect::six;
}

/// Inspects the chunks of a demo in the order in which demo players play them.
class DemoInspection {
  public:
    DemoInspection(const DemoParts& demo, const std::string& name, inspect::Inspector& inspector)
        : demo_{&demo}, inspector_{&inspector}, chunks_{demo.chunks, demo.header.version,
                                                        demo.chunks_at},
          start_{parse_demo_time(demo.header.timestamp).value_or(0)}, now_{start_},
          session_{inspector.begin_demo(start_, name, demo.header.type + " demo",
                                        dialect_of(demo.header))} {}

    DemoReadResult inspect_all() {
        inspect_map();
        session_->set_record_time(now_);
        while (const auto chunk = chunks_.next_chunk()) {
            if (!inspect_chunk(*chunk)) {
                break;
            }
        }
        if (chunks_.has_failed()) {
            error_ = chunks_.error();
        }
        finish();
        inspector_->end_demo(*session_, now_, "end of demo");
        return {.first = start_, .last = now_, .error = error_};
    }

  private:
    void inspect_map() {
        const DemoHeader& header = demo_->header;
        session_->set_map({.name = header.map_name,
                           .crc = header.map_crc,
                           .size = header.map_size,
                           .sha256 = header.sha256},
                          {demo_->map.begin(), demo_->map.end()});
    }

    /// Returns false if the rest of the demo cannot be played.
    bool inspect_chunk(const DemoChunk& chunk) {
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
            return inspect_unused_chunk(chunk);
        }
        return true;
    }

    /// If the current tick has no usable snapshot, inspects the previous snapshot again. Demo
    /// players also repeat it when another chunk follows such a tick.
    void repeat_snapshot() {
        if (waiting_) {
            session_->on_unchanged_snapshot(tick_);
            waiting_ = false;
        }
    }

    /// Reports a tick that is not later than the previous tick. Demo players accept such a tick,
    /// and play it at once.
    void check_tick_order(const DemoChunk& chunk) {
        if (first_tick_ && chunk.tick <= tick_) {
            session_->report_finding_once({.id = FindingId::demo_tick_order,
                                           .tick = chunk.tick,
                                           .offset = chunk.offset,
                                           .value = tick_});
        }
    }

    void set_tick(Tick tick) {
        first_tick_ = first_tick_.value_or(tick);
        tick_ = tick;
        waiting_ = true;
        now_ = start_ + (std::int64_t{tick} - *first_tick_) * kNanosecondsPerTick;
        session_->set_record_time(now_);
    }

    bool stop_at_error(const DemoError& error) {
        error_ = error;
        return false;
    }

    bool inspect_snapshot(const DemoChunk& chunk) {
        const auto body = chunk_decoder_.decompress_varints(chunk);
        if (!body) {
            return stop_at_error(body.error());
        }
        const std::size_t bytes = body->size();
        const auto ints = chunk_decoder_.decode_ints(chunk);
        if (!ints) {
            return stop_at_error(ints.error());
        }
        const DemoSnapshotResult read = decode_demo_snapshot(*ints, full_);
        if (!read.error.empty()) {
            session_->on_invalid_snapshot(tick_, bytes,
                                          {.id = FindingId::demo_snapshot_invalid,
                                           .offset = chunk.offset,
                                           .value = static_cast<std::int64_t>(read.index),
                                           .detail = read.error});
            return true;
        }
        if (read.duplicates != 0) {
            session_->report_finding({.id = FindingId::demo_duplicate_item,
                                      .tick = tick_,
                                      .offset = chunk.offset,
                                      .value = static_cast<std::int64_t>(read.duplicates)});
        }
        session_->on_full_snapshot(tick_, bytes, full_.view());
        waiting_ = false;
        return true;
    }

    bool inspect_delta(const DemoChunk& chunk) {
        const auto body = chunk_decoder_.decompress_varints(chunk);
        if (!body) {
            return stop_at_error(body.error());
        }
        if (session_->on_delta(tick_, *body)) {
            waiting_ = false;
        }
        return true;
    }

    bool inspect_message(const DemoChunk& chunk) {
        const auto payload = chunk_decoder_.decode_message(chunk);
        if (!payload) {
            return stop_at_error(payload.error());
        }
        repeat_snapshot();
        session_->on_message(*payload, fields_);
        return true;
    }

    /// Decompresses a chunk of an unused type, and discards the result. Returns false on an error,
    /// because demo players end the demo there.
    bool inspect_unused_chunk(const DemoChunk& chunk) {
        const auto ints = chunk_decoder_.decode_ints(chunk);
        if (!ints) {
            return stop_at_error(ints.error());
        }
        repeat_snapshot();
        return true;
    }

    void finish() {
        if (error_.code != DemoErrc::none) {
            const DemoErrorInfo& info = demo_error_info(error_.code);
            session_->report_finding({.id = is_truncation(error_.code) ? FindingId::demo_cut_short
                                                                       : FindingId::demo_damaged,
                                      .tick = first_tick_ ? std::optional{tick_} : std::nullopt,
                                      .offset = error_.offset,
                                      .name = info.name,
                                      .detail = info.sentence});
        }
    }

    const DemoParts* demo_;
    inspect::Inspector* inspector_;
    DemoChunkReader chunks_;
    record::Timestamp start_;
    record::Timestamp now_;
    std::unique_ptr<inspect::DemoSession> session_;
    DemoChunkDecoder chunk_decoder_;
    snapshot::Snapshot full_;
    wire::DecodedFields fields_;
    std::optional<Tick> first_tick_;
    Tick tick_ = 0;
    bool waiting_ = false; ///< no usable snapshot was read since the last tick
    DemoError error_;
};

} // namespace

bool looks_like_demo(BytesView begin) {
    return begin.size() >= kDemoMagic.size() &&
           std::memcmp(begin.data(), kDemoMagic.data(), kDemoMagic.size()) == 0;
}

DemoResult<DemoParts> decode_demo_parts(BytesView file) {
    if (!looks_like_demo(file)) {
        return error(DemoErrc::no_demo, 0);
    }
    if (file.size() <= kVersionAt) {
        return error(DemoErrc::header_cut, file.size());
    }
    DemoParts head;
    DemoHeader& header = head.header;
    header.version = std::to_integer<int>(file[kVersionAt]);
    if (header.version < kOldestVersion || header.version > kFirstVersionWithSha256) {
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
    if (header.version >= kFirstVersionWithMarkers) {
        read_markers(file, header);
    }
    const Sha256Extension extension =
        header.version >= kFirstVersionWithSha256 ? find_sha256(file) : Sha256Extension::absent;
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
    std::tm given{};
    if (::strptime(std::string{timestamp}.c_str(), "%Y-%m-%d_%H-%M-%S", &given) == nullptr) {
        return std::nullopt;
    }
    std::tm time = given; // timegm() turns a day that does not exist into another day
    const std::int64_t seconds = ::timegm(&time);
    if (seconds < 0 || seconds > record::kLastInputSecond || time.tm_mday != given.tm_mday) {
        return std::nullopt;
    }
    return seconds * record::kNanosecondsPerSecond;
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
    return (first & kTickBit) != 0 ? read_tick_chunk(first) : read_data_chunk(first);
}

std::optional<DemoChunk> DemoChunkReader::read_tick_chunk(std::uint8_t first) {
    const bool steps = version_ >= kFirstVersionWithSteps;
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

std::optional<DemoChunk> DemoChunkReader::read_data_chunk(std::uint8_t first) {
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
    : bytes_(kMaxPayloadBytes), ints_(kMaxPayloadBytes + snapshot::kVarintsSlack) {}

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
    const snapshot::DecodedVarints decoded = snapshot::decode_varints(*bytes, ints_);
    if (decoded.bytes != bytes->size()) {
        return tl::unexpected{DemoError{DemoErrc::payload_ints_cut, chunk.offset}};
    }
    if (decoded.count > kMaxPayloadBytes / kIntBytes) {
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

DemoSnapshotResult decode_demo_snapshot(std::span<const std::int32_t> ints,
                                        snapshot::Snapshot& out) {
    constexpr std::string_view kWrongCounts = "its counts do not match its size";
    out.clear();
    if (ints.size() < kHeadInts || ints[0] < 0 || ints[1] < 0 ||
        static_cast<std::size_t>(ints[1]) > snapshot::kMaxItems) {
        return {.error = kWrongCounts};
    }
    const auto num_items = static_cast<std::size_t>(ints[1]);
    const std::int32_t bytes = ints[0];
    if (bytes % kBytesOfInt != 0 ||
        ints.size() != kHeadInts + num_items + static_cast<std::size_t>(bytes / kBytesOfInt)) {
        return {.error = kWrongCounts};
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
            return {.error = "an item's offset is invalid", .index = kHeadInts + i};
        }
        const auto item = data.subspan(static_cast<std::size_t>(begin / kBytesOfInt),
                                       static_cast<std::size_t>((end - begin) / kBytesOfInt));
        if (item[0] < 0) {
            return {.error = "an item's type is invalid",
                    .index = kHeadInts + num_items + static_cast<std::size_t>(begin / kBytesOfInt)};
        }
        items.push_back({static_cast<std::uint32_t>(item[0]), item.subspan(1)});
    }
    std::ranges::stable_sort(items, {}, &Item::key);
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
    std::array<char, kDemoMagic.size()> begin{};

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
    auto bytes = map::read_file(path, kMaxBytes);
    if (!bytes || bytes->empty()) {
        throw std::runtime_error{path + ": " +
                                 (bytes ? "is empty"
                                  : bytes.error().code == map::MapErrc::file_too_large
                                      ? "larger than 1 GiB, the limit for demos"
                                      : "cannot be read")};
    }
    bytes_ = std::move(*bytes);
}

DemoReadResult inspect_demo(const DemoParts& demo, const std::string& name,
                            inspect::Inspector& inspector) {
    return DemoInspection{demo, name, inspector}.inspect_all();
}

} // namespace tw::demo
