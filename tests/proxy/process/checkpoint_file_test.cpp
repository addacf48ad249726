// Covers: proxy/pipeline/worker_result.cpp
#include "proxy/pipeline/worker_result.h"

#include <vector>

#include <doctest/doctest.h>
#include <sys/types.h>
#include <unistd.h>

using namespace tw;
using pipeline::SessionCheckpoints;

namespace {

SessionCheckpoints some() {
    inspect::SessionCheckpoint known{
        .map = inspect::MapAnnouncement{.name = "dm1", .crc = 7, .size = 9},
        .snapshots = {{.tick = 5, .num_items = 2, .block = {1, 2, 1, 3, 10, 20, 30}},
                      {.tick = 7, .num_items = 0, .block = {}}}};
    known.map->sha256.emplace().fill(3);
    known.roster.add_player({.client_id = 1, .own = true, .team = -1, .name = "anna"});
    known.roster.add_player({.client_id = 63, .team = 1, .name = "bob"});
    return {{3, known}, {8, {}}};
}

bool same(const SessionCheckpoints& left, const SessionCheckpoints& right) {
    if (left.size() != right.size()) {
        return false;
    }
    for (const auto& [number, checkpoint] : left) {
        const auto other = right.find(number);
        if (other == right.end() || other->second.map != checkpoint.map ||
            other->second.roster != checkpoint.roster ||
            other->second.snapshots.size() != checkpoint.snapshots.size()) {
            return false;
        }
        for (std::size_t i = 0; i < checkpoint.snapshots.size(); ++i) {
            const auto& one = checkpoint.snapshots[i];
            const auto& two = other->second.snapshots[i];
            if (one.tick != two.tick || one.num_items != two.num_items || one.block != two.block) {
                return false;
            }
        }
    }
    return true;
}

} // namespace

TEST_CASE("checkpoints are read as they were written") {
    const auto file = pipeline::create_checkpoint_file();
    REQUIRE(file.valid());
    CHECK(pipeline::write_checkpoints(file.get(), some()) == 2);
    CHECK(same(pipeline::read_checkpoints(file.get()), some()));
}

TEST_CASE("a truncated file gives only whole checkpoints") {
    const auto file = pipeline::create_checkpoint_file();
    CHECK(pipeline::write_checkpoints(file.get(), some()) == 2);
    for (off_t size = ::lseek(file.get(), 0, SEEK_END); size-- > 0;) {
        CAPTURE(size);
        REQUIRE(::ftruncate(file.get(), size) == 0);
        CHECK(pipeline::read_checkpoints(file.get()).size() < 2);
    }
}

TEST_CASE("a file with a changed byte gives only valid checkpoints") {
    const auto file = pipeline::create_checkpoint_file();
    CHECK(pipeline::write_checkpoints(file.get(), some()) == 2);
    const off_t size = ::lseek(file.get(), 0, SEEK_END);
    for (off_t at = 0; at < size; ++at) {
        CAPTURE(at);
        unsigned char byte = 0;
        REQUIRE(::pread(file.get(), &byte, 1, at) == 1);
        for (const unsigned changed : {0xFFU, 0x80U, 0x01U}) {
            const auto wrong = static_cast<unsigned char>(byte ^ changed);
            REQUIRE(::pwrite(file.get(), &wrong, 1, at) == 1);
            for (const auto& [number, checkpoint] : pipeline::read_checkpoints(file.get())) {
                CHECK(checkpoint.is_sound());
            }
        }
        REQUIRE(::pwrite(file.get(), &byte, 1, at) == 1);
    }
    CHECK(pipeline::read_checkpoints(-1).empty());
}
