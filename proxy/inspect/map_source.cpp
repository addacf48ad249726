#include "proxy/inspect/map_source.h"

namespace tw::inspect {

namespace {

/// FNV-1a.
class Hash {
  public:
    void add(std::string_view text) {
        for (const char character : text) {
            mix(static_cast<unsigned char>(character));
        }
        mix(0x100); // no byte, so that it ends the text
    }

    void add(std::uint32_t number) {
        for (unsigned shift = 0; shift < 32; shift += 8) {
            mix((number >> shift) & 0xFFU);
        }
    }

    [[nodiscard]] std::uint64_t value() const { return value_; }

  private:
    void mix(std::uint32_t symbol) { value_ = (value_ ^ symbol) * 0x100000001b3U; }

    std::uint64_t value_ = 0xcbf29ce484222325U;
};

} // namespace

bool MapSource::is_news(std::string_view server, const MapAnnouncement& announcement,
                        std::string_view finding) {
    Hash hash;
    hash.add(server);
    hash.add(announcement.name);
    hash.add(announcement.crc);
    hash.add(finding);
    const std::uint64_t wanted = hash.value() | 1U; // 0 is a free place
    for (std::size_t i = 0; i < reported_.size(); ++i) {
        std::atomic<std::uint64_t>& place = reported_[(wanted / 2 + i) % reported_.size()];
        std::uint64_t there = 0;
        if (place.compare_exchange_strong(there, wanted, std::memory_order_relaxed)) {
            return true;
        }
        if (there == wanted) {
            return false;
        }
    }
    return true;
}

} // namespace tw::inspect
