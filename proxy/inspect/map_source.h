#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tw::map {
class Physics;
} // namespace tw::map

namespace tw::inspect {

/// The map a server announces.
struct MapAnnouncement {
    std::string name{};
    std::uint32_t crc = 0;
    std::int64_t size = 0;
    std::optional<std::array<std::uint8_t, 32>> sha256{};
    /// A server of DDNet gives its 0.7 clients a converted file with the same tiles: any of this
    /// name will do.
    bool any_version = false;

    friend bool operator==(const MapAnnouncement&, const MapAnnouncement&) = default;
};

enum class MapStatus : std::uint8_t {
    found,
    not_found,
    other_version, ///< the name is there, the checksum is not
    unreadable,
    name_invalid,
};

struct FoundMap {
    MapStatus status = MapStatus::not_found;
    std::shared_ptr<const map::Physics> physics{}; ///< set when found
    std::optional<std::array<std::uint8_t, 32>> sha256{};
    std::string detail{};   ///< what is wrong, for people
    bool from_wire = false; ///< some client's download, not a file of a folder
    /// The file, where the source was asked to keep what it reads.
    std::shared_ptr<const std::vector<std::byte>> file{};
};

/// Finds and reads maps; files are its business, not the inspector's.
class MapSource {
  public:
    MapSource() = default;
    MapSource(const MapSource&) = delete;
    MapSource& operator=(const MapSource&) = delete;
    MapSource(MapSource&&) = delete;
    MapSource& operator=(MapSource&&) = delete;
    virtual ~MapSource() = default;

    [[nodiscard]] virtual FoundMap find(const MapAnnouncement& announcement) = 0;
    /// A map that came over the wire: checks it against its announcement and keeps it.
    [[nodiscard]] virtual FoundMap keep(const MapAnnouncement& announcement,
                                        std::vector<std::byte> bytes) = 0;

    /// Only among the maps kept so far, without looking at any file.
    [[nodiscard]] virtual FoundMap find_kept(const MapAnnouncement& /*announcement*/) { return {}; }

    /// Gives up what nobody uses, because memory is wanted.
    virtual void shed() {}

    /// Whether this is found of a map for the first time in any session of this server; of one server
    /// every session finds the same. Any thread may ask. Beyond kMaxReported everything is new.
    [[nodiscard]] bool is_news(std::string_view server, const MapAnnouncement& announcement,
                               std::string_view finding);

    /// How many maps were kept: whoever misses one asks again when this has changed.
    [[nodiscard]] std::uint32_t num_kept() const noexcept {
        return num_kept_.load(std::memory_order_relaxed);
    }

  protected:
    /// To be called once find_kept gives the map.
    void count_kept() noexcept { num_kept_.fetch_add(1, std::memory_order_relaxed); }

  private:
    static constexpr std::size_t kMaxReported = 1024;

    std::atomic<std::uint32_t> num_kept_{0};
    std::array<std::atomic<std::uint64_t>, kMaxReported> reported_{}; ///< hashes; 0: free
};

} // namespace tw::inspect
