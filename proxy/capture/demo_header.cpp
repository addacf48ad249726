#include "proxy/capture/demo_header.h"

#include "proxy/inspect/map_download.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstring>

namespace tw::capture {

namespace {

namespace demo = sink::demo;

using Bytes = std::span<const std::byte>;

std::uint32_t big_endian_at(Bytes bytes, std::size_t at) {
    std::uint32_t value = 0;
    for (const std::byte byte : bytes.subspan(at, 4)) {
        value = value << 8U | std::to_integer<std::uint32_t>(byte);
    }
    return value;
}

std::string text(Bytes bytes, std::size_t at, std::size_t size) {
    const Bytes field = bytes.subspan(at, size);
    const auto end = std::find(field.begin(), field.end(), std::byte{0});
    return {reinterpret_cast<const char*>(field.data()),
            static_cast<std::size_t>(end - field.begin())};
}

auto error(DemoErrc code, std::size_t offset) {
    return tl::unexpected{DemoError{code, offset}};
}

std::size_t header_bytes(int version) {
    return version < demo::kMarkersVersion ? demo::kHeaderBytes : demo::kMarkersEnd;
}

void read_markers(Bytes file, demo::Header& header) {
    // DDNet's player takes any count, and makes it one that fits.
    const auto count = static_cast<std::int32_t>(big_endian_at(file, demo::kNumMarkersAt));
    const auto kept = std::clamp<std::int32_t>(count, 0, demo::kMaxMarkers);
    for (std::int32_t i = 0; i < kept; ++i) {
        header.markers.push_back(static_cast<std::int32_t>(
            big_endian_at(file, demo::kMarkersAt + 4 * static_cast<std::size_t>(i))));
    }
}

enum class Extension : std::uint8_t { absent, cut, whole };

/// Whether the extension stands there: source states of late 2019 wrote none.
Extension find_extension(Bytes file) {
    const Bytes rest = file.subspan(demo::kMarkersEnd);
    const std::size_t compared = std::min(rest.size(), demo::kSha256Uuid.size());
    if (std::memcmp(rest.data(), demo::kSha256Uuid.data(), compared) != 0) {
        return Extension::absent;
    }
    return file.size() < demo::kSha256End ? Extension::cut : Extension::whole;
}

} // namespace

bool looks_like_demo(Bytes begin) {
    return begin.size() >= demo::kMagic.size() &&
           std::memcmp(begin.data(), demo::kMagic.data(), demo::kMagic.size()) == 0;
}

DemoResult<DemoHead> decode_demo_head(Bytes file) {
    if (!looks_like_demo(file)) {
        return error(DemoErrc::no_demo, 0);
    }
    if (file.size() <= demo::kVersionAt) {
        return error(DemoErrc::header_cut, file.size());
    }
    DemoHead head;
    demo::Header& header = head.header;
    header.version = std::to_integer<int>(file[demo::kVersionAt]);
    if (header.version < demo::kOldestVersion || header.version > demo::kSha256Version) {
        return error(DemoErrc::version_unsupported, demo::kVersionAt);
    }
    head.map_at = header_bytes(header.version);
    if (file.size() < head.map_at) {
        return error(DemoErrc::header_cut, file.size());
    }
    header.net_version = text(file, demo::kNetVersionAt, demo::kTextBytes);
    header.map_name = text(file, demo::kMapNameAt, demo::kTextBytes);
    header.map_size = big_endian_at(file, demo::kMapSizeAt);
    header.map_crc = big_endian_at(file, demo::kMapCrcAt);
    header.type = text(file, demo::kTypeAt, demo::kTypeBytes);
    header.length = static_cast<std::int32_t>(big_endian_at(file, demo::kLengthAt));
    header.timestamp = text(file, demo::kTimestampAt, demo::kTimestampBytes);
    if (header.version >= demo::kMarkersVersion) {
        read_markers(file, header);
    }
    const Extension extension =
        header.version >= demo::kSha256Version ? find_extension(file) : Extension::absent;
    if (extension == Extension::cut) {
        return error(DemoErrc::header_cut, file.size());
    }
    if (extension == Extension::whole) {
        std::memcpy(header.sha256.emplace().data(), file.data() + demo::kSha256At,
                    header.sha256->size());
        head.map_at = demo::kSha256End;
    }
    if (header.map_size > inspect::MapDownload::kMaxBytes) {
        return error(DemoErrc::map_size_invalid, demo::kMapSizeAt);
    }
    if (header.map_size > file.size() - head.map_at) {
        return error(DemoErrc::map_cut, file.size());
    }
    head.map = file.subspan(head.map_at, header.map_size);
    head.chunks_at = head.map_at + header.map_size;
    head.chunks = file.subspan(head.chunks_at);
    return head;
}

std::optional<std::int64_t> demo_time(std::string_view timestamp) {
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

} // namespace tw::capture
