// Opens one map and locates one point, or only inflates the needed blocks, or does nothing. map_peers.py
// compares the times with those of DDNet's own tools.
//   map_locate open|floor|nothing FILE

#include "map/map.h"

#include <cstdio>
#include <string_view>
#include <vector>

namespace {

using namespace tw::map;

int open_and_locate(const Map& map) {
    const auto physics = map.physics();
    return physics ? physics->locate(WorldPos{500, 500}).game : -1;
}

/// Inflates the physics layers' blocks, and holds them all at once, like a reader.
int inflate_only(const Map& map) {
    std::vector<Block> held;
    for (int kind = 0; kind < kPhysicsLayers; ++kind) {
        const auto layer = static_cast<Layer>(kind);
        if (const auto place = map.physics_layer(layer)) {
            const auto item = map.layer(place->layer);
            auto block =
                map.datafile().block(*tile_block(std::get<TileLayer>(item->content), layer));
            if (block) {
                held.push_back(std::move(*block));
            }
        }
    }
    return static_cast<int>(held.size());
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fputs("usage: map_locate open|floor|nothing FILE\n", stderr);
        return 2;
    }
    const std::string_view what{argv[1]};
    if (what == "nothing") {
        return 0;
    }
    const auto map = Map::open(argv[2]);
    if (!map) {
        std::fprintf(stderr, "map_locate: %s cannot be read\n", argv[2]);
        return 1;
    }
    std::printf("%d\n", what == "floor" ? inflate_only(*map) : open_and_locate(*map));
    return 0;
}
