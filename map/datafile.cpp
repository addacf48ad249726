#include "map/datafile.h"

#include "map/datafile_parser.h"
#include "map/little_endian.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

#include <zlib.h>

namespace tw::map {

Result<Datafile> Datafile::parse(std::vector<std::byte> file, const Limits& limits) {
    return DatafileParser{std::move(file), limits}.run();
}

Result<Datafile> Datafile::open(const std::filesystem::path& path, const Limits& limits) {
    auto file = read_file(path, limits.max_file_bytes);
    if (!file) {
        return tl::unexpected{file.error()};
    }
    return parse(std::move(*file), limits);
}

ItemView Datafile::item(std::size_t index) const {
    const std::size_t start = item_starts_[index];
    const auto head = static_cast<std::uint32_t>(ints_[start]);
    const auto count = static_cast<std::size_t>(ints_[start + 1]) / sizeof(std::int32_t);
    return {static_cast<std::uint16_t>(head >> 16U), static_cast<std::uint16_t>(head & 0xffffU),
            std::span{ints_}.subspan(start + 2, count)};
}

std::optional<ItemType> Datafile::find_type(std::uint16_t type) const {
    const auto found = std::find_if(types_.begin(), types_.end(),
                                    [type](const ItemType& entry) { return entry.type == type; });
    return found == types_.end() ? std::nullopt : std::optional{*found};
}

std::optional<ItemView> Datafile::find_item(std::uint16_t type, std::int64_t index) const {
    const auto range = find_type(type);
    if (!range || index < 0 || index >= range->num) {
        return std::nullopt;
    }
    return item(range->start + static_cast<std::size_t>(index));
}

std::optional<ItemView> Datafile::find_id(std::uint16_t type, std::uint16_t id) const {
    const auto range = find_type(type);
    for (std::size_t i = 0; range && i < range->num; ++i) {
        const ItemView view = item(range->start + i);
        if (view.id == id) {
            return view;
        }
    }
    return std::nullopt;
}

BlockInfo Datafile::block_info(std::size_t index) const {
    const auto field = [this](std::uint64_t table, std::size_t entry) {
        return static_cast<std::uint32_t>(
            read_i32(file_, static_cast<std::size_t>(table) + sizeof(std::int32_t) * entry));
    };
    const std::uint32_t offset = field(block_offsets_at_, index);
    const std::uint32_t end = index + 1 < block_count()
                                  ? field(block_offsets_at_, index + 1)
                                  : static_cast<std::uint32_t>(header_.data_size);
    const std::uint32_t stored = end - offset;
    return {blocks_at_ + offset, stored,
            header_.version == 4 ? field(block_sizes_at_, index) : stored};
}

std::span<const std::byte> Datafile::stored_block(std::size_t index) const {
    const BlockInfo info = block_info(index);
    return std::span{file_}.subspan(info.offset, info.stored);
}

SizeField Datafile::compare_size(std::int32_t value, std::uint64_t full) const {
    const std::uint64_t sizes = header_.version == 4 ? block_count() * 4 : 0;
    if (value >= 0 && static_cast<std::uint64_t>(value) == full) {
        return SizeField::full;
    }
    return value >= 0 && static_cast<std::uint64_t>(value) + sizes == full ? SizeField::shortened
                                                                           : SizeField::wrong;
}

SizeField Datafile::size_field() const {
    return compare_size(header_.size, file_.size() - trailing_ - 16);
}

SizeField Datafile::swaplen_field() const {
    return compare_size(header_.swaplen, file_.size() - trailing_ - 16 -
                                             static_cast<std::uint64_t>(header_.data_size));
}

namespace {

/// Inflates `in` into all of `out`; the stream must fill it exactly and end there.
MapErrc inflate_exactly(std::span<const std::byte> in, std::span<std::byte> out) {
    z_stream stream{};
    if (inflateInit(&stream) != Z_OK) {
        return MapErrc::out_of_memory;
    }
    std::byte spare{};
    stream.next_in = reinterpret_cast<const Bytef*>(in.data());
    stream.avail_in = static_cast<uInt>(in.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    int code = inflate(&stream, Z_FINISH);
    const std::size_t got = out.size() - stream.avail_out;
    if (code != Z_STREAM_END && got == out.size()) {
        // Full before its end: with one more byte of room the stream shows whether it goes on.
        stream.next_out = reinterpret_cast<Bytef*>(&spare);
        stream.avail_out = 1;
        code = inflate(&stream, Z_FINISH);
        if (stream.avail_out == 0) {
            inflateEnd(&stream);
            return MapErrc::block_wrong_size;
        }
    }
    inflateEnd(&stream);
    if (code == Z_MEM_ERROR) {
        return MapErrc::out_of_memory;
    }
    if (code != Z_STREAM_END) {
        return MapErrc::block_corrupt;
    }
    return got == out.size() ? MapErrc::none : MapErrc::block_wrong_size;
}

} // namespace

Result<Block> Datafile::block(std::int64_t index) const {
    MapError error{.block = static_cast<std::uint32_t>(index)};
    const auto fail = [&error](MapErrc code) {
        error.code = code;
        return tl::unexpected{error};
    };
    if (index < 0 || static_cast<std::uint64_t>(index) >= block_count()) {
        return fail(MapErrc::block_index_out_of_range);
    }
    const BlockInfo info = block_info(static_cast<std::size_t>(index));
    error.offset = info.offset;
    const auto stored = stored_block(static_cast<std::size_t>(index));
    const bool packed = header_.version == 4;
    if (info.size == 0) {
        const MapErrc lie = packed ? inflate_exactly(stored, {}) : MapErrc::none;
        return fail(lie == MapErrc::none ? MapErrc::block_empty : lie);
    }
    if (info.size > limits_.max_block_bytes) {
        return fail(MapErrc::block_too_large);
    }
    if (packed && info.size > kMaxInflateRatio * info.stored + kInflateSlack) {
        return fail(MapErrc::block_size_not_possible);
    }
    try {
        Block block{static_cast<std::size_t>(info.size)};
        if (!packed) {
            std::memcpy(block.writable().data(), stored.data(), stored.size());
        } else if (const MapErrc code = inflate_exactly(stored, block.writable());
                   code != MapErrc::none) {
            return fail(code);
        }
        return block;
    } catch (const std::bad_alloc&) {
        return fail(MapErrc::out_of_memory);
    }
}

Result<std::vector<std::byte>> read_file(const std::filesystem::path& path,
                                         std::uint64_t max_bytes) {
    const auto fail = [](MapErrc code) { return tl::unexpected{MapError{.code = code}}; };
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) {
        return fail(MapErrc::file_unreadable); // a folder opens, and a pipe would block
    }
    const std::uintmax_t size = std::filesystem::file_size(path, error);
    if (error) {
        return fail(MapErrc::file_unreadable);
    }
    if (size > max_bytes) {
        return fail(MapErrc::file_too_large);
    }
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::fopen(path.c_str(), "rb"),
                                                               &std::fclose};
    if (file == nullptr) {
        return fail(MapErrc::file_unreadable);
    }
    std::vector<std::byte> bytes(static_cast<std::size_t>(size));
    // A file that shrinks while it is read is taken as far as it goes; its parser will notice.
    bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file.get()));
    if (std::ferror(file.get()) != 0) {
        return fail(MapErrc::file_unreadable);
    }
    return bytes;
}

} // namespace tw::map
