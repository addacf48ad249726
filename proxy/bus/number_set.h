#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tw::bus {

/// Numbers, most of which follow each other.
class NumberSet {
  public:
    void insert(std::uint64_t first, std::uint64_t last);

    void insert(std::uint64_t number) { insert(number, number); }

    void insert(const NumberSet& other);

    [[nodiscard]] bool contains(std::uint64_t number) const;

    [[nodiscard]] bool empty() const { return ranges_.empty(); }

    /// How many of those from `first` to `last` are there.
    [[nodiscard]] std::uint64_t count(std::uint64_t first, std::uint64_t last) const;

    /// The largest; 0: it is empty.
    [[nodiscard]] std::uint64_t last() const { return empty() ? 0 : ranges_.rbegin()->second; }

    /// Forgets those before.
    void forget_before(std::uint64_t number);

    /// "1-5,7"
    [[nodiscard]] std::string text() const;
    /// Nothing: it is no such text.
    [[nodiscard]] static std::optional<NumberSet> read(std::string_view text);

    friend bool operator==(const NumberSet&, const NumberSet&) = default;

  private:
    std::map<std::uint64_t, std::uint64_t> ranges_; ///< first to last
};

} // namespace tw::bus
