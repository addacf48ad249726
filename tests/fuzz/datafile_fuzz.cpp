#include "map/datafile.h"
#include "tests/fuzz/demand.h"
#include "tests/map/writer.h"

#include <cstddef>
#include <cstdint>
#include <span>

/// The input is a datafile. Writing and rereading it must not change its items and data.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using tw::fuzz::demand;
    const auto bytes = std::as_bytes(std::span{data, size});
    tw::map::Limits limits;
    limits.max_block_bytes = std::uint64_t{1} << 20U; // limits the fuzzer's memory
    const auto file = tw::map::Datafile::parse({bytes.begin(), bytes.end()}, limits);
    if (!file) {
        return 0;
    }
    std::size_t items = 0;
    for (const auto& type : file->item_types()) {
        items += type.num;
    }
    demand(items == file->item_count());
    const auto again = tw::map::Datafile::parse(tw::map::test::rewrite_datafile(*file));
    demand(again.has_value());
    demand(again->item_count() == file->item_count());
    demand(again->block_count() == file->block_count());
    for (std::size_t i = 0; i < file->block_count(); ++i) {
        const auto block = file->block(static_cast<std::int64_t>(i));
        const auto copy = again->block(static_cast<std::int64_t>(i));
        demand(!block || (copy && copy->size() == block->size()));
    }
    return 0;
}
