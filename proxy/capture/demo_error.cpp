#include "proxy/capture/demo_error.h"

#include <array>

namespace tw::capture {

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

} // namespace tw::capture
