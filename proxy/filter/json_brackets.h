#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tw::filter {

/// Where the brackets of a list or an object stand, and which of them belong together: found in one pass, so that
/// what is in them need not be read to get behind them. Brackets in strings are none.
class JsonBrackets {
  public:
    /// More than any record has; what has more is read without.
    static constexpr std::size_t kMaxPairs = std::size_t{1} << 20U;

    struct Pair {
        std::uint32_t open = 0;  ///< offset in the text
        std::uint32_t close = 0; ///< of the bracket that closes it
        std::uint32_t next =
            0; ///< the first pair that begins behind that; while it is open: what holds it
    };

    /// Reads from the bracket that the text begins with to the one that closes it, and returns what is between them,
    /// both included. Only counts them, as if there were but one kind: who looks inside checks. Nothing: it is not
    /// closed, or has more than kMaxPairs.
    [[nodiscard]] std::optional<std::string_view> read(std::string_view text);

    /// The pair that opens here, looked for from this one on, which is moved there; null: none does.
    [[nodiscard]] const Pair* find(const char* open, std::uint32_t& from) const {
        const auto offset = static_cast<std::size_t>(open - text_.data());
        while (from < pairs_.size() && pairs_[from].open < offset) {
            ++from;
        }
        return from < pairs_.size() && pairs_[from].open == offset ? &pairs_[from] : nullptr;
    }

  private:
    [[nodiscard]] bool open(std::size_t offset);
    /// False: that was the last one.
    [[nodiscard]] bool close(std::size_t offset);

    std::string_view text_;
    std::vector<Pair> pairs_;
    std::uint32_t inner_ = 0; ///< the pair that is open
};

} // namespace tw::filter
