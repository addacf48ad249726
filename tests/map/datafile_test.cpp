#include "map/datafile.h"
#include "tests/map/map_builder.h"
#include "tests/map/writer.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

namespace tw::map {
namespace {

using Bytes = std::vector<std::byte>;

void overwrite_int(Bytes& file, std::size_t at, std::int64_t value) {
    for (std::size_t i = 0; i < 4; ++i) {
        file.at(at + i) = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i));
    }
}

/// Returns a datafile with three items of two types and two blocks. All table offsets are known.
Bytes make_sample(int version = 4) {
    test::DatafileWriter writer{version};
    const std::int32_t ints[] = {1, -2, 3};
    writer.add_item(0, 0, std::span{ints}.first(1));
    writer.add_item(5, 0, ints);
    writer.add_item(5, 1, std::span{ints}.first(0));
    writer.add_block(Bytes(1000, std::byte{7}));
    writer.add_block(Bytes(10, std::byte{9}));
    return writer.finish();
}

constexpr std::size_t kTypes = 36;
constexpr std::size_t kItemOffsets = kTypes + 2 * 12;
constexpr std::size_t kDataOffsets = kItemOffsets + 3 * 4;
constexpr std::size_t kDataSizes = kDataOffsets + 2 * 4;
constexpr std::size_t kItems = kDataSizes + 2 * 4;

} // namespace

TEST_CASE("a datafile of either version reads back as it was written") {
    for (const int version : {3, 4}) {
        CAPTURE(version);
        const auto file = Datafile::parse(make_sample(version)).value();
        CHECK(file.header().version == version);
        CHECK(file.warnings().list().empty());
        REQUIRE(file.item_count() == 3);
        const ItemView item = file.item(1);
        CHECK(item.type == 5);
        CHECK(item.id == 0);
        CHECK(std::vector(item.ints.begin(), item.ints.end()) ==
              std::vector<std::int32_t>{1, -2, 3});
        CHECK(file.item(2).ints.empty());
        CHECK(file.find_item(5, 1)->id == 1);
        CHECK_FALSE(file.find_item(5, 2).has_value());
        CHECK_FALSE(file.find_item(5, -1).has_value());
        CHECK_FALSE(file.find_item(4, 0).has_value());
        CHECK(file.find_item_by_id(5, 1)->ints.empty());
        CHECK_FALSE(file.find_item_by_id(5, 2).has_value());
        CHECK_FALSE(file.find_item_by_id(4, 0).has_value());
        REQUIRE(file.block_count() == 2);
        const auto block = file.block(0).value();
        CHECK(block.size() == 1000);
        CHECK(block.bytes()[999] == std::byte{7});
        CHECK(file.block(2).error().code == MapErrc::block_index_out_of_range);
        CHECK(file.block(-1).error().code == MapErrc::block_index_out_of_range);
    }
}

TEST_CASE("a datafile cut at any byte is refused") {
    for (const int version : {3, 4}) {
        const Bytes whole = make_sample(version);
        for (std::size_t length = 0; length < whole.size(); ++length) {
            CAPTURE(length);
            const auto file = Datafile::parse(
                {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)});
            REQUIRE_FALSE(file.has_value());
            CHECK(file.error().code ==
                  (length < 36 ? MapErrc::file_too_short : MapErrc::file_truncated));
        }
    }
}

TEST_CASE("a datafile with wrong fields is rejected with the reason") {
    struct Row {
        std::string_view name;
        std::size_t at;
        std::int64_t value;
        MapErrc code;
    };

    constexpr std::int64_t kMax = 0x7fffffff;
    const Row rows[] = {
        {"magic", 0, 0x41544145, MapErrc::bad_magic},
        {"version 2", 4, 2, MapErrc::bad_version},
        {"version 5", 4, 5, MapErrc::bad_version},
        {"negative types", 16, -1, MapErrc::negative_header_field},
        {"negative items", 20, -1, MapErrc::negative_header_field},
        {"negative blocks", 24, -1, MapErrc::negative_header_field},
        {"negative item bytes", 28, -4, MapErrc::negative_header_field},
        {"negative data bytes", 32, -1, MapErrc::negative_header_field},
        {"many types", 16, 65537, MapErrc::too_many_item_types},
        {"most types", 16, 65536, MapErrc::file_truncated},
        {"all items", 20, kMax, MapErrc::file_truncated},
        {"all blocks", 24, kMax, MapErrc::file_truncated},
        {"odd item bytes", 28, 41, MapErrc::items_unaligned},
        {"all item bytes", 28, kMax - 3, MapErrc::file_truncated},
        {"all data bytes", 32, kMax, MapErrc::file_truncated},
        {"negative type", kTypes, -1, MapErrc::item_type_out_of_range},
        {"type 65536", kTypes, 65536, MapErrc::item_type_out_of_range},
        {"type twice", kTypes + 12, 0, MapErrc::item_type_duplicate},
        {"start too late", kTypes + 12 + 4, 2, MapErrc::item_type_bad_range},
        {"negative start", kTypes + 4, -1, MapErrc::item_type_bad_range},
        {"negative num", kTypes + 8, -1, MapErrc::item_type_bad_range},
        {"num too large", kTypes + 12 + 8, kMax, MapErrc::item_type_bad_range},
        {"num too small", kTypes + 12 + 8, 1, MapErrc::item_type_bad_range},
        {"first item late", kItemOffsets, 4, MapErrc::item_bad_offset},
        {"negative item offset", kItemOffsets + 4, -8, MapErrc::item_bad_offset},
        {"item overlaps", kItemOffsets + 4, 8, MapErrc::item_bad_offset},
        {"negative item size", kItems + 4, -4, MapErrc::item_bad_size},
        {"odd item size", kItems + 4, 3, MapErrc::item_bad_size},
        {"item past the end", kItems + 4, kMax - 3, MapErrc::item_bad_size},
        {"item too short", kItems + 4, 0, MapErrc::item_bad_offset},
        {"item of another type", kItems, 0x60000, MapErrc::item_type_mismatch},
        {"negative block offset", kDataOffsets, -1, MapErrc::block_bad_offset},
        {"block offset falls", kDataOffsets, 20, MapErrc::block_bad_offset},
        {"block past the end", kDataOffsets + 4, kMax, MapErrc::block_bad_offset},
        {"negative block size", kDataSizes, -1, MapErrc::block_negative_size},
    };
    for (const auto& row : rows) {
        CAPTURE(row.name);
        Bytes bytes = make_sample();
        overwrite_int(bytes, row.at, row.value);
        const auto file = Datafile::parse(bytes);
        REQUIRE_FALSE(file.has_value());
        CHECK(error_info(file.error().code).name == error_info(row.code).name);
    }
}

TEST_CASE("an unusual datafile is read with warnings") {
    struct Row {
        std::string_view name;
        std::function<void(Bytes&)> change;
        WarningId id;
        bool strict;
    };

    const auto set = [](std::size_t at, std::int64_t value) {
        return [=](Bytes& bytes) { overwrite_int(bytes, at, value); };
    };
    const Row rows[] = {
        {"size", set(8, 1), WarningId::header_sizes, true},
        {"swaplen", set(12, -1), WarningId::header_sizes, true},
        {"sizes of old writers",
         [](Bytes& bytes) {
             overwrite_int(bytes, 8, read_i32(bytes, 8) - 8);
             overwrite_int(bytes, 12, read_i32(bytes, 12) - 8);
         },
         WarningId::header_sizes_short, false},
        {"one size of old writers",
         [](Bytes& bytes) { overwrite_int(bytes, 12, read_i32(bytes, 12) - 8); },
         WarningId::header_sizes_short, false},
        {"a type without items",
         [](Bytes& bytes) {
             overwrite_int(bytes, kTypes + 8, 0);
             overwrite_int(bytes, kTypes + 12 + 4, 0);
             overwrite_int(bytes, kTypes + 12 + 8, 3);
             overwrite_int(bytes, kItems, 0x50007);
         },
         WarningId::empty_item_type, true},
        {"trailing byte", [](Bytes& bytes) { bytes.push_back(std::byte{0}); },
         WarningId::trailing_bytes, true},
        {"id twice", set(kItems + 12 + 20, 0x50000), WarningId::duplicate_item_id, true},
        {"empty block", set(kDataSizes, 0), WarningId::empty_block, false},
        {"first block late", set(kDataOffsets, 1), WarningId::first_block_offset, true},
        {"block without bytes", set(kDataOffsets + 4, 0), WarningId::block_without_bytes, true},
        {"reversed magic is none", [](Bytes& bytes) { overwrite_int(bytes, 0, 0x44415441); },
         WarningId::header_sizes, false},
    };
    for (const auto& row : rows) {
        CAPTURE(row.name);
        Bytes bytes = make_sample();
        row.change(bytes);
        const auto file = Datafile::parse(bytes).value();
        if (file.header().reversed_magic) {
            CHECK(file.warnings().list().empty());
            CHECK(file.item(1).ints[1] == -2);
            continue;
        }
        CHECK(file.warnings().contains(row.id));
        CHECK(file.warnings().first_warning_rejected_by_ddnet().has_value() == row.strict);
    }
}

TEST_CASE("an item that overlaps the next one is rejected") {
    Bytes bytes = make_sample();
    const std::int32_t second = read_i32(bytes, kItemOffsets + 4);
    const std::size_t size_at = kItems + static_cast<std::size_t>(second) + 4;
    overwrite_int(bytes, size_at, read_i32(bytes, size_at) + 8);
    overwrite_int(bytes, kItemOffsets + 8, read_i32(bytes, kItemOffsets + 8) + 8);
    const auto file = Datafile::parse(bytes);
    REQUIRE_FALSE(file.has_value());
    CHECK(file.error().code == MapErrc::item_bad_offset);
    CHECK(file.error().item == 2);
}

TEST_CASE("an empty block gives block_empty, compressed or not") {
    for (const int version : {3, 4}) {
        CAPTURE(version);
        test::DatafileWriter writer{version};
        writer.add_block({});
        writer.add_block(Bytes(4));
        const auto file = Datafile::parse(writer.finish()).value();
        CHECK(file.block(0).error().code == MapErrc::block_empty);
        CHECK(file.block(1)->size() == 4);
    }
}

TEST_CASE("a block with a wrong size is unusable, and other blocks remain usable") {
    struct Row {
        std::string_view name;
        std::int64_t size;
        MapErrc code;
    };

    const Row rows[] = {
        {"too small", 999, MapErrc::block_wrong_size},
        {"too large", 1001, MapErrc::block_wrong_size},
        {"more than zlib can", 0x7fffffff, MapErrc::block_too_large},
        {"more than these bytes can", 1 << 20, MapErrc::block_size_not_possible},
        {"says it is empty", 0, MapErrc::block_wrong_size},
    };
    for (const auto& row : rows) {
        CAPTURE(row.name);
        Bytes bytes = make_sample();
        overwrite_int(bytes, kDataSizes, row.size);
        const auto file = Datafile::parse(bytes).value();
        const auto block = file.block(0);
        REQUIRE_FALSE(block.has_value());
        CHECK(error_info(block.error().code).name == error_info(row.code).name);
        CHECK(block.error().block == 0);
        CHECK(file.block(1).has_value());
    }
}

TEST_CASE("a damaged zlib stream is an error or gives the right bytes") {
    const Bytes whole = make_sample();
    const auto good = Datafile::parse(whole).value();
    const BlockInfo info = good.block_info(0);
    for (std::uint64_t i = 0; i < info.stored; ++i) {
        CAPTURE(i);
        Bytes bytes = whole;
        bytes[static_cast<std::size_t>(info.offset + i)] ^= std::byte{0x55};
        const auto file = Datafile::parse(bytes).value();
        // Some bits do not matter, for example those that fill up the last byte of a code.
        const auto block = file.block(0);
        CHECK((!block || std::equal(block->bytes().begin(), block->bytes().end(),
                                    good.block(0)->bytes().begin())));
        CHECK(file.block(1).has_value());
    }
}

TEST_CASE("limits hold for files and blocks") {
    Limits limits;
    limits.max_file_bytes = 100;
    CHECK(Datafile::parse(make_sample(), limits).error().code == MapErrc::file_too_large);
    limits = {};
    limits.max_block_bytes = 999;
    const auto file = Datafile::parse(make_sample(), limits).value();
    CHECK(file.block(0).error().code == MapErrc::block_too_large);
    CHECK(file.block(1).has_value());
}

TEST_CASE("a path that is not a file cannot be opened") {
    CHECK(read_file("/", 1).error().code == MapErrc::file_unreadable);
    CHECK(read_file("/no such file", 1).error().code == MapErrc::file_unreadable);
}

TEST_CASE("every error and warning has a name and a sentence") {
    for (std::size_t i = 0; i < kErrorTable.size(); ++i) {
        CHECK(static_cast<std::size_t>(kErrorTable[i].code) == i);
        CHECK_FALSE(kErrorTable[i].name.empty());
        CHECK_FALSE(kErrorTable[i].sentence.empty());
    }
    for (std::size_t i = 0; i < kWarningTable.size(); ++i) {
        CHECK(static_cast<std::size_t>(kWarningTable[i].id) == i);
        CHECK_FALSE(kWarningTable[i].name.empty());
        CHECK_FALSE(kWarningTable[i].sentence.empty());
    }
    CHECK(kErrorTable.size() == static_cast<std::size_t>(MapErrc::out_of_memory) + 1);
    CHECK(&error_info(static_cast<MapErrc>(kErrorTable.size())) == kErrorTable.data());
    CHECK(kWarningTable.size() == static_cast<std::size_t>(WarningId::skip_bytes_set) + 1);
}

} // namespace tw::map
