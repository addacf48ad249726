// consumer MAP DELTA DATAGRAM (both in hexadecimal): reads one of each with the installed libraries.
#include "map/map.h"
#include "proxy/wire/packet.h"
#include "snapshot/delta.h"

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace {

std::vector<std::byte> from_hex(std::string_view hex) {
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
        const std::string digits{hex.substr(i, 2)};
        bytes.push_back(static_cast<std::byte>(std::stoi(digits, nullptr, 16)));
    }
    return bytes;
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        return 2;
    }
    const auto map = tw::map::Map::open(argv[1]);
    const auto physics = map ? map->physics() : tl::unexpected{map.error()};
    tw::snapshot::Delta delta;
    tw::snapshot::Snapshot snapshot;
    tw::snapshot::DeltaWarnings warnings;
    tw::wire::PacketScratch scratch;
    const auto datagram = from_hex(argv[3]);
    const auto packet = decode_packet(datagram, tw::wire::Protocol::six, scratch);
    if (!physics || !packet ||
        !decode_delta(from_hex(argv[2]), delta, tw::snapshot::kAgreedSizes) ||
        !apply_delta({}, delta, snapshot, warnings)) {
        return 1;
    }
    std::printf("map %d x %d, snapshot of %zu items with crc %d, packet of %d chunks\n",
                physics->width(), physics->height(), snapshot.view().size(),
                snapshot.view().checksum(), int{packet->num_chunks});
    return 0;
}
