#include "proxy/run/legacy_file.h"

#include "proxy/relay/archive.h"

#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tw::run {

namespace {

/// Every change of what is left, or of its layout, is a new version.
constexpr std::uint32_t kVersion = 3;
constexpr std::size_t kMaxName = 256;
constexpr std::size_t kMaxBlockBytes = 1 << 20U; // far above a snapshot's
constexpr std::size_t kMaxSnapshots = 1024;

void archive_map(auto& archive, auto& map) {
    bool known = map.has_value();
    archive.flag(known);
    if (!known) {
        return;
    }
    if (!map) {
        map.emplace();
    }
    archive.bytes(map->name, kMaxName);
    archive.number(map->crc);
    archive.number(map->size);
    bool named = map->sha256.has_value();
    archive.flag(named);
    if (named) {
        if (!map->sha256) {
            map->sha256.emplace();
        }
        archive.raw(std::as_writable_bytes(std::span{*map->sha256}));
    }
}

struct Player {
    std::uint16_t client = 0;
    record::Roster::Entry entry{};
};

void archive_roster(auto& archive, record::Roster& roster) {
    std::vector<Player> players;
    roster.each([&](std::uint16_t client, const record::Roster::Entry& entry) {
        players.push_back({client, entry});
    });
    archive.list(players, record::Roster::kMaxClients, [](auto& each, auto& player) {
        each.number(player.client);
        each.number(player.entry.team);
        for (auto& ints_of_name : player.entry.name) {
            each.number(ints_of_name);
        }
    });
    for (const Player& player : players) {
        roster.put(player.client, player.entry); // out of range: ignored
    }
    std::uint16_t own = roster.own().value_or(record::Roster::kMaxPlayers);
    archive.number(own);
    if (own < record::Roster::kMaxClients) {
        roster.put_own(own);
    }
}

void archive_legacy(auto& archive, auto& number, auto& legacy) {
    archive.number(number);
    archive_map(archive, legacy.map);
    archive.choice(legacy.dialect, snapshot::Dialect::seven);
    archive.list(legacy.snapshots, kMaxSnapshots, [](auto& each, auto& snapshot) {
        each.number(snapshot.tick);
        each.number(snapshot.num_items);
        each.bytes(snapshot.block, kMaxBlockBytes);
    });
    archive_roster(archive, legacy.roster);
}

bool write_all(int file, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(file, bytes.data(), bytes.size());
        if (written < 0 && errno != EINTR) {
            return false;
        }
        bytes = bytes.subspan(written < 0 ? 0 : static_cast<std::size_t>(written));
    }
    return true;
}

bool read_all(int file, std::span<std::byte> bytes, off_t& at) {
    while (!bytes.empty()) {
        const ssize_t got = ::pread(file, bytes.data(), bytes.size(), at);
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return false;
        }
        at += got < 0 ? 0 : got;
        bytes = bytes.subspan(got < 0 ? 0 : static_cast<std::size_t>(got));
    }
    return true;
}

bool read_number(int file, std::uint32_t& number, off_t& at) {
    return read_all(file, std::as_writable_bytes(std::span{&number, 1}), at);
}

} // namespace

relay::UniqueFd create_legacy_file() {
    return relay::UniqueFd{::memfd_create("twscope-legacy", MFD_CLOEXEC)};
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): who archives also reads, and takes nothing const
std::size_t write_legacies(int file, Legacies legacies) {
    std::vector<std::byte> piece;
    relay::ArchiveWriter{piece}.number(kVersion);
    std::size_t written = 0;
    std::size_t total = 0;
    if (!write_all(file, piece)) {
        return 0;
    }
    for (auto& [number, legacy] : legacies) {
        piece.assign(sizeof(std::uint32_t), std::byte{0}); // for its size
        relay::ArchiveWriter archive{piece};
        archive_legacy(archive, number, legacy);
        const auto size = static_cast<std::uint32_t>(piece.size() - sizeof(std::uint32_t));
        std::memcpy(piece.data(), &size, sizeof(size));
        total += piece.size();
        if (total > kMaxLegacyBytes || !write_all(file, piece)) {
            break;
        }
        ++written;
    }
    return written;
}

void hand_over(const relay::UniqueFd& file, Legacies legacies) {
    if (!file.valid()) {
        return;
    }
    const std::size_t all = legacies.size();
    const std::size_t left = write_legacies(file.get(), std::move(legacies));
    if (left != all) {
        spdlog::warn("{} of {} sessions are joined midway: there is too much to hand over",
                     all - left, all);
    }
}

Legacies read_legacies(int file) {
    Legacies legacies;
    off_t at = 0;
    std::uint32_t version = 0;
    if (!read_number(file, version, at) || version != kVersion) {
        return legacies;
    }
    std::vector<std::byte> piece;
    std::uint32_t size = 0;
    while (read_number(file, size, at) && size <= kMaxLegacyBytes) {
        struct stat facts {};

        if (::fstat(file, &facts) != 0 || facts.st_size - at < off_t{size}) {
            break;
        }
        piece.resize(size);
        if (!read_all(file, piece, at)) {
            break;
        }
        relay::ArchiveReader archive{piece};
        std::uint32_t number = 0;
        inspect::Legacy legacy;
        archive_legacy(archive, number, legacy);
        if (archive.done() && legacy.is_sound()) {
            legacies.insert_or_assign(number, std::move(legacy));
        }
    }
    return legacies;
}

} // namespace tw::run
