#include "map/datafile_parser.h"

#include "map/little_endian.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace tw::map {
namespace {

constexpr std::uint64_t kHeaderBytes = 36;
constexpr std::uint64_t kItemTypeBytes = 12;
constexpr std::uint64_t kItemHeadBytes = 8;
constexpr std::uint64_t kIntBytes = 4;
/// The index of UUID types. Old DDNet tools listed one type twice, so its ids may repeat.
constexpr std::uint16_t kUuidIndexType = 0xffff;

} // namespace

DatafileParser::DatafileParser(std::vector<std::byte> file, const Limits& limits) {
    out_.file_ = std::move(file);
    out_.limits_ = limits;
}

Result<Datafile> DatafileParser::run() {
    try {
        if (!read_header() || !lay_out() || !read_types() || !read_items() || !check_item_types() ||
            !read_blocks()) {
            return tl::unexpected{error_};
        }
    } catch (const std::bad_alloc&) {
        return tl::unexpected{MapError{.code = MapErrc::out_of_memory}};
    }
    note_sizes();
    return std::move(out_);
}

bool DatafileParser::fail(MapErrc code, std::uint64_t offset, std::uint32_t block,
                          std::uint32_t item) {
    error_ = {.code = code, .offset = offset, .block = block, .item = item};
    return false;
}

std::int32_t DatafileParser::field(std::uint64_t offset) const {
    return read_i32(out_.file_, static_cast<std::size_t>(offset));
}

bool DatafileParser::read_header() {
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
    header.version = field(4);
    if (header.version != 3 && header.version != 4) {
        return fail(MapErrc::bad_version, 4);
    }
    header.size = field(8);
    header.swaplen = field(12);
    std::uint64_t at = 16;
    for (std::int32_t* value : {&header.num_item_types, &header.num_items, &header.num_data,
                                &header.item_size, &header.data_size}) {
        *value = field(at);
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

bool DatafileParser::lay_out() {
    // No count exceeds 2^31, so nothing here comes near the end of 64 bits.
    const auto count = [](std::int32_t value) { return static_cast<std::uint64_t>(value); };
    const DatafileHeader& header = out_.header_;
    types_at_ = kHeaderBytes;
    item_offsets_at_ = types_at_ + kItemTypeBytes * count(header.num_item_types);
    data_offsets_at_ = item_offsets_at_ + kIntBytes * count(header.num_items);
    data_sizes_at_ = data_offsets_at_ + kIntBytes * count(header.num_data);
    items_at_ = data_sizes_at_ + (header.version == 4 ? kIntBytes * count(header.num_data) : 0);
    data_at_ = items_at_ + count(header.item_size);
    const std::uint64_t total = data_at_ + count(header.data_size);
    if (total > out_.file_.size()) {
        return fail(MapErrc::file_truncated, out_.file_.size());
    }
    out_.trailing_ = out_.file_.size() - total;
    return true;
}

bool DatafileParser::read_types() {
    std::vector<bool> seen(static_cast<std::size_t>(kMaxItemTypes));
    out_.types_.reserve(static_cast<std::size_t>(out_.header_.num_item_types));
    std::uint64_t at = types_at_;
    std::int64_t next = 0;
    for (std::int32_t i = 0; i < out_.header_.num_item_types; ++i, at += kItemTypeBytes) {
        const std::int32_t type = field(at);
        const std::int32_t start = field(at + 4);
        const std::int32_t num = field(at + 8);
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
        out_.types_.push_back({static_cast<std::uint16_t>(type), static_cast<std::uint32_t>(start),
                               static_cast<std::uint32_t>(num)});
    }
    if (next != out_.header_.num_items) {
        return fail(MapErrc::item_type_bad_range, at);
    }
    return true;
}

bool DatafileParser::read_items() {
    const auto count = static_cast<std::size_t>(out_.header_.num_items);
    const auto bytes = static_cast<std::uint64_t>(out_.header_.item_size);
    out_.ints_.resize(static_cast<std::size_t>(bytes / kIntBytes));
    for (std::size_t i = 0; i < out_.ints_.size(); ++i) {
        out_.ints_[i] = field(items_at_ + kIntBytes * i);
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

bool DatafileParser::read_item(std::size_t index, std::uint64_t& expected) {
    const auto item = static_cast<std::uint32_t>(index);
    const auto bytes = static_cast<std::uint64_t>(out_.header_.item_size);
    const std::uint64_t offset_at = item_offsets_at_ + kIntBytes * index;
    const std::int32_t offset = field(offset_at);
    if (offset < 0 || static_cast<std::uint64_t>(offset) != expected ||
        expected + kItemHeadBytes > bytes) {
        return fail(MapErrc::item_bad_offset, offset_at, MapError::kNowhere, item);
    }
    const std::int32_t size = field(items_at_ + expected + 4);
    if (size < 0 || size % 4 != 0 ||
        static_cast<std::uint64_t>(size) > bytes - expected - kItemHeadBytes) {
        return fail(MapErrc::item_bad_size, items_at_ + expected + 4, MapError::kNowhere, item);
    }
    out_.item_starts_.push_back(static_cast<std::uint32_t>(expected / kIntBytes));
    expected += kItemHeadBytes + static_cast<std::uint64_t>(size);
    return true;
}

bool DatafileParser::check_item_types() {
    std::vector<std::uint16_t> ids;
    for (const ItemType& type : out_.types_) {
        ids.clear();
        for (std::uint32_t i = type.start; i < type.start + type.num; ++i) {
            const ItemView item = out_.item(i);
            if (item.type != type.type) {
                return fail(MapErrc::item_type_mismatch,
                            items_at_ + kIntBytes * out_.item_starts_[i], MapError::kNowhere, i);
            }
            ids.push_back(item.id);
        }
        std::sort(ids.begin(), ids.end());
        if (type.type != kUuidIndexType &&
            std::adjacent_find(ids.begin(), ids.end()) != ids.end()) {
            out_.warnings_.add(WarningId::duplicate_item_id, type.type);
        }
    }
    return true;
}

bool DatafileParser::read_blocks() {
    const auto count = static_cast<std::size_t>(out_.header_.num_data);
    const std::int32_t end = out_.header_.data_size;
    out_.block_offsets_at_ = data_offsets_at_;
    out_.block_sizes_at_ = data_sizes_at_;
    out_.blocks_at_ = data_at_;
    std::int32_t before = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t at = data_offsets_at_ + kIntBytes * i;
        const std::int32_t offset = field(at);
        const std::int32_t next = i + 1 < count ? field(at + kIntBytes) : end;
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
            size = field(data_sizes_at_ + kIntBytes * i);
        }
        if (size < 0) {
            return fail(MapErrc::block_negative_size, data_sizes_at_ + kIntBytes * i,
                        static_cast<std::uint32_t>(i));
        }
        if (size == 0) {
            out_.warnings_.add(WarningId::empty_block, i);
        }
    }
    return true;
}

void DatafileParser::note_sizes() {
    if (out_.trailing_ > 0) {
        out_.warnings_.add(WarningId::trailing_bytes);
    }
    const SizeField size = out_.size_field();
    const SizeField swaplen = out_.swaplen_field();
    if (size == SizeField::wrong || swaplen == SizeField::wrong) {
        out_.warnings_.add(WarningId::header_sizes);
    } else if (size == SizeField::shortened || swaplen == SizeField::shortened) {
        out_.warnings_.add(WarningId::header_sizes_short);
    }
}

} // namespace tw::map
