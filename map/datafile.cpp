#include "map/datafile.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include <zlib.h>

namespace tw::map {

ItemView Datafile::item(std::size_t index) const {
    const std::size_t start = item_starts_[index];
    const auto head = static_cast<std::uint32_t>(ints_[start]);
    const auto count = static_cast<std::size_t>(ints_[start + 1]) / sizeof(std::int32_t);
    return {static_cast<std::uint16_t>(head >> 16U), static_cast<std::uint16_t>(head & 0xffffU),
            std::span{ints_}.subspan(start + 2, count)};
}

std::optional<ItemType> Datafile::find_type(std::uint16_t type) const {
    const auto found =
        std::ranges::find_if(types_, [type](const ItemType& entry) { return entry.type == type; });
    return found == types_.end() ? std::nullopt : std::optional{*found};
}

std::optional<ItemView> Datafile::find_item(std::uint16_t type, std::int64_t index) const {
    const auto range = find_type(type);
    if (!range || index < 0 || index >= range->num) {
        return std::nullopt;
    }
    return item(range->start + static_cast<std::size_t>(index));
}

std::optional<ItemView> Datafile::find_item_by_id(std::uint16_t type, std::uint16_t id) const {
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
    const auto read_entry = [this](std::uint64_t table, std::size_t entry) {
        return static_cast<std::uint32_t>(
            read_i32(file_, static_cast<std::size_t>(table) + sizeof(std::int32_t) * entry));
    };
    const std::uint32_t offset = read_entry(block_offsets_at_, index);
    const std::uint32_t end = index + 1 < block_count()
                                  ? read_entry(block_offsets_at_, index + 1)
                                  : static_cast<std::uint32_t>(header_.data_size);
    const std::uint32_t stored = end - offset;
    return {blocks_at_ + offset, stored,
            header_.version == 4 ? read_entry(block_sizes_at_, index) : stored};
}

std::span<const std::byte> Datafile::stored_block(std::size_t index) const {
    const BlockInfo info = block_info(index);
    return std::span{file_}.subspan(info.offset, info.stored);
}

SizeFieldCheck Datafile::check_size(std::int32_t value, std::uint64_t full) const {
    const std::uint64_t sizes = header_.version == 4 ? block_count() * 4 : 0;
    if (value >= 0 && static_cast<std::uint64_t>(value) == full) {
        return SizeFieldCheck::correct;
    }
    return value >= 0 && static_cast<std::uint64_t>(value) + sizes == full
               ? SizeFieldCheck::shortened
               : SizeFieldCheck::wrong;
}

SizeFieldCheck Datafile::check_size_field() const {
    return check_size(header_.size, file_.size() - trailing_bytes_ - 16);
}

SizeFieldCheck Datafile::check_swaplen_field() const {
    return check_size(header_.swaplen, file_.size() - trailing_bytes_ - 16 -
                                           static_cast<std::uint64_t>(header_.data_size));
}

namespace {

/// Inflates `in` into `out`. Fails unless the inflated stream has exactly the size of `out`.
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
        // The output is full, but the stream has not ended. One more byte of space shows whether
        // the stream continues.
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
            std::memcpy(block.writable_bytes().data(), stored.data(), stored.size());
        } else if (const MapErrc code = inflate_exactly(stored, block.writable_bytes());
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
        return fail(MapErrc::file_unreadable); // fopen() also opens folders, and blocks on a pipe
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
    // If the file shrinks meanwhile, the parser reports an error in the shorter content.
    bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file.get()));
    if (std::ferror(file.get()) != 0) {
        return fail(MapErrc::file_unreadable);
    }
    return bytes;
}

namespace {

constexpr std::uint64_t kHeaderBytes = 36;
constexpr std::uint64_t kItemTypeBytes = 12;
constexpr std::uint64_t kItemHeadBytes = 8;
constexpr std::uint64_t kIntBytes = 4;
/// The type of items that define UUID types. Old DDNet tools wrote these items twice, so their ids
/// may repeat.
constexpr std::uint16_t kUuidIndexType = 0xffff;

} // namespace

/// Parses and checks a datafile from start to end. Each step relies on the earlier steps. Parsing
/// stops at the first error that makes the file unreadable.
class DatafileParser {
  public:
    DatafileParser(std::vector<std::byte> file, const Limits& limits) {
        out_.file_ = std::move(file);
        out_.limits_ = limits;
    }

    [[nodiscard]] Result<Datafile> parse() {
        try {
            if (!read_header() || !locate_sections() || !read_types() || !read_items() ||
                !check_item_types() || !read_blocks()) {
                return tl::unexpected{error_};
            }
        } catch (const std::bad_alloc&) {
            return tl::unexpected{MapError{.code = MapErrc::out_of_memory}};
        }
        check_size_fields();
        return std::move(out_);
    }

  private:
    [[nodiscard]] bool fail(MapErrc code, std::uint64_t offset,
                            std::uint32_t block = MapError::kNoIndex,
                            std::uint32_t item = MapError::kNoIndex) {
        error_ = {.code = code, .offset = offset, .block = block, .item = item};
        return false;
    }

    [[nodiscard]] std::int32_t read_field(std::uint64_t offset) const {
        return read_i32(out_.file_, static_cast<std::size_t>(offset));
    }

    [[nodiscard]] bool read_header() {
        if (out_.file_.size() > out_.limits_.max_file_bytes) {
            return fail(MapErrc::file_too_large, 0);
        }
        if (out_.file_.size() < kHeaderBytes) {
            return fail(MapErrc::file_too_short, out_.file_.size());
        }
        DatafileHeader& header = out_.header_;
        header.reversed_magic = std::memcmp(out_.file_.data(), "ATAD", 4) == 0;
        if (!header.reversed_magic && std::memcmp(out_.file_.data(), "DATA", 4) != 0) {
            return fail(MapErrc::bad_magic, 0);
        }
        header.version = read_field(4);
        if (header.version != 3 && header.version != 4) {
            return fail(MapErrc::bad_version, 4);
        }
        header.size = read_field(8);
        header.swaplen = read_field(12);
        std::uint64_t at = 16;
        for (std::int32_t* value : {&header.num_item_types, &header.num_items, &header.num_data,
                                    &header.item_size, &header.data_size}) {
            *value = read_field(at);
            if (*value < 0) {
                return fail(MapErrc::negative_header_field, at);
            }
            at += kIntBytes;
        }
        if (header.num_item_types > kMaxItemTypes) {
            return fail(MapErrc::too_many_item_types, 16);
        }
        if (header.item_size % 4 != 0) {
            return fail(MapErrc::items_unaligned, 28);
        }
        return true;
    }

    [[nodiscard]] bool locate_sections() {
        // No count exceeds 2^31, so these sums cannot overflow 64 bits.
        const auto count = [](std::int32_t value) { return static_cast<std::uint64_t>(value); };
        const DatafileHeader& header = out_.header_;
        types_at_ = kHeaderBytes;
        item_offsets_at_ = types_at_ + kItemTypeBytes * count(header.num_item_types);
        out_.block_offsets_at_ = item_offsets_at_ + kIntBytes * count(header.num_items);
        out_.block_sizes_at_ = out_.block_offsets_at_ + kIntBytes * count(header.num_data);
        items_at_ =
            out_.block_sizes_at_ + (header.version == 4 ? kIntBytes * count(header.num_data) : 0);
        out_.blocks_at_ = items_at_ + count(header.item_size);
        const std::uint64_t total = out_.blocks_at_ + count(header.data_size);
        if (total > out_.file_.size()) {
            return fail(MapErrc::file_truncated, out_.file_.size());
        }
        out_.trailing_bytes_ = out_.file_.size() - total;
        return true;
    }

    [[nodiscard]] bool read_types() {
        std::vector<bool> seen(static_cast<std::size_t>(kMaxItemTypes));
        out_.types_.reserve(static_cast<std::size_t>(out_.header_.num_item_types));
        std::uint64_t at = types_at_;
        std::int64_t next = 0;
        for (std::int32_t i = 0; i < out_.header_.num_item_types; ++i, at += kItemTypeBytes) {
            const std::int32_t type = read_field(at);
            const std::int32_t start = read_field(at + 4);
            const std::int32_t num = read_field(at + 8);
            if (type < 0 || type >= kMaxItemTypes) {
                return fail(MapErrc::item_type_out_of_range, at);
            }
            if (seen[static_cast<std::size_t>(type)]) {
                return fail(MapErrc::item_type_duplicate, at);
            }
            seen[static_cast<std::size_t>(type)] = true;
            if (num < 0 || start != next || next + num > out_.header_.num_items) {
                return fail(MapErrc::item_type_bad_range, at);
            }
            if (num == 0) {
                out_.warnings_.add(WarningId::empty_item_type, static_cast<std::uint64_t>(i));
            }
            next += num;
            out_.types_.push_back({static_cast<std::uint16_t>(type),
                                   static_cast<std::uint32_t>(start),
                                   static_cast<std::uint32_t>(num)});
        }
        if (next != out_.header_.num_items) {
            return fail(MapErrc::item_type_bad_range, at);
        }
        return true;
    }

    [[nodiscard]] bool read_items() {
        const auto count = static_cast<std::size_t>(out_.header_.num_items);
        const auto bytes = static_cast<std::uint64_t>(out_.header_.item_size);
        out_.ints_.resize(static_cast<std::size_t>(bytes / kIntBytes));
        for (std::size_t i = 0; i < out_.ints_.size(); ++i) {
            out_.ints_[i] = read_field(items_at_ + kIntBytes * i);
        }
        out_.item_starts_.reserve(count);
        std::uint64_t expected = 0;
        for (std::size_t i = 0; i < count; ++i) {
            if (!read_item(i, expected)) {
                return false;
            }
        }
        if (expected != bytes) {
            return fail(MapErrc::item_bad_offset, items_at_ + expected);
        }
        return true;
    }

    [[nodiscard]] bool read_item(std::size_t index, std::uint64_t& expected) {
        const auto item = static_cast<std::uint32_t>(index);
        const auto bytes = static_cast<std::uint64_t>(out_.header_.item_size);
        const std::uint64_t offset_at = item_offsets_at_ + kIntBytes * index;
        const std::int32_t offset = read_field(offset_at);
        if (offset < 0 || static_cast<std::uint64_t>(offset) != expected ||
            expected + kItemHeadBytes > bytes) {
            return fail(MapErrc::item_bad_offset, offset_at, MapError::kNoIndex, item);
        }
        const std::int32_t size = read_field(items_at_ + expected + 4);
        if (size < 0 || size % 4 != 0 ||
            static_cast<std::uint64_t>(size) > bytes - expected - kItemHeadBytes) {
            return fail(MapErrc::item_bad_size, items_at_ + expected + 4, MapError::kNoIndex, item);
        }
        out_.item_starts_.push_back(static_cast<std::uint32_t>(expected / kIntBytes));
        expected += kItemHeadBytes + static_cast<std::uint64_t>(size);
        return true;
    }

    [[nodiscard]] bool check_item_types() {
        std::vector<std::uint16_t> ids;
        for (const ItemType& type : out_.types_) {
            ids.clear();
            for (std::uint32_t i = type.start; i < type.start + type.num; ++i) {
                const ItemView item = out_.item(i);
                if (item.type != type.type) {
                    return fail(MapErrc::item_type_mismatch,
                                items_at_ + kIntBytes * out_.item_starts_[i], MapError::kNoIndex,
                                i);
                }
                ids.push_back(item.id);
            }
            std::ranges::sort(ids);
            if (type.type != kUuidIndexType &&
                std::adjacent_find(ids.begin(), ids.end()) != ids.end()) {
                out_.warnings_.add(WarningId::duplicate_item_id, type.type);
            }
        }
        return true;
    }

    [[nodiscard]] bool read_blocks() {
        const auto count = static_cast<std::size_t>(out_.header_.num_data);
        const std::int32_t end = out_.header_.data_size;
        std::int32_t before = 0;
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint64_t at = out_.block_offsets_at_ + kIntBytes * i;
            const std::int32_t offset = read_field(at);
            const std::int32_t next = i + 1 < count ? read_field(at + kIntBytes) : end;
            if (offset < before || offset > end || next < offset || next > end) {
                return fail(MapErrc::block_bad_offset, at, static_cast<std::uint32_t>(i));
            }
            before = offset;
            if (i == 0 && offset != 0) {
                out_.warnings_.add(WarningId::first_block_offset, 0);
            }
            if (next == offset) {
                out_.warnings_.add(WarningId::block_without_bytes, i);
            }
            std::int32_t size = next - offset;
            if (out_.header_.version == 4) {
                size = read_field(out_.block_sizes_at_ + kIntBytes * i);
            }
            if (size < 0) {
                return fail(MapErrc::block_negative_size, out_.block_sizes_at_ + kIntBytes * i,
                            static_cast<std::uint32_t>(i));
            }
            if (size == 0) {
                out_.warnings_.add(WarningId::empty_block, i);
            }
        }
        return true;
    }

    void check_size_fields() {
        if (out_.trailing_bytes_ > 0) {
            out_.warnings_.add(WarningId::trailing_bytes);
        }
        const SizeFieldCheck size = out_.check_size_field();
        const SizeFieldCheck swaplen = out_.check_swaplen_field();
        if (size == SizeFieldCheck::wrong || swaplen == SizeFieldCheck::wrong) {
            out_.warnings_.add(WarningId::header_sizes);
        } else if (size == SizeFieldCheck::shortened || swaplen == SizeFieldCheck::shortened) {
            out_.warnings_.add(WarningId::header_sizes_short);
        }
    }

    Datafile out_;
    MapError error_;
    std::uint64_t types_at_ = 0;
    std::uint64_t item_offsets_at_ = 0;
    std::uint64_t items_at_ = 0;
};

Result<Datafile> Datafile::parse(std::vector<std::byte> file, const Limits& limits) {
    return DatafileParser{std::move(file), limits}.parse();
}

} // namespace tw::map
