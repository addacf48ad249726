#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tw::bus {

/// What of a run's lines is under way. Lines are numbered from 1; a line's place is its number in the
/// stream. At most kSize lines stand behind the first that is not settled.
class Window {
  public:
    /// Enough for 20,000 records a second over a line of 50 ms, and what a reader of the stream has to
    /// look through when a connection broke.
    static constexpr std::size_t kSize = 1024;

    /// Nothing is under way; all up to `settled` are settled, and whatever else is in the stream stands
    /// behind `place`.
    void begin(std::uint64_t settled, std::uint64_t place);

    /// The next line to hand over.
    [[nodiscard]] std::uint64_t next() const { return sent_ + 1; }

    [[nodiscard]] bool has_room() const { return sent_ - settled_ < kSize; }

    /// Lines that are sent and not settled.
    [[nodiscard]] std::size_t under_way() const { return under_way_; }

    /// The next line was sent.
    void send();
    /// The next line needs not be sent: it stands at this place, or is lost for good (0).
    void skip(std::uint64_t place);
    /// The lines before this one are lost. Only while none is under way.
    void jump(std::uint64_t next);
    /// False: no such line is under way.
    bool acknowledge(std::uint64_t line, std::uint64_t place);

    /// All up to here are settled.
    [[nodiscard]] std::uint64_t settled() const { return settled_; }

    /// Behind this stands whatever else of the run is in the stream.
    [[nodiscard]] std::uint64_t place() const;

  private:
    enum class State : std::uint8_t { none, sent, settled };

    struct Slot {
        State state = State::none;
        std::uint64_t place = 0;
    };

    [[nodiscard]] Slot& slot(std::uint64_t line) { return slots_[line % kSize]; }

    void settle();

    std::array<Slot, kSize> slots_{};
    std::uint64_t settled_ = 0;
    std::uint64_t sent_ = 0; ///< or skipped
    std::uint64_t place_ = 0;
    std::size_t under_way_ = 0;
};

} // namespace tw::bus
