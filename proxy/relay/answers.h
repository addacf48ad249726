#pragma once

#include "proxy/relay/ring.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace tw::relay {

/// What a client asks for without a connection. Whoever asks the same gets the same answer, but for the token
/// that it repeats.
struct Question {
    std::uint8_t kind = 0; ///< below kMaxQuestions; 0: none that can be answered by a repetition
    std::uint32_t token = 0;
};

inline constexpr std::size_t kMaxQuestions = 4;

/// One datagram of the server's answer to a question.
struct AnswerPart {
    bool is_first = false;
};

/// Pure functions that let a relay, which knows nothing of the game, repeat to one client what the
/// server answered to another. They must not wait or allocate.
struct Repeating {
    /// What a client's datagram asks.
    Question (*read_question)(std::span<const std::byte> datagram) = nullptr;
    /// Whether a server's datagram is a part of its answer to the question.
    std::optional<AnswerPart> (*read_answer)(std::span<const std::byte> datagram,
                                             const Question& question) = nullptr;
    /// Writes such a part as the server would have written it for another question of that kind. Returns its
    /// size; 0: it cannot.
    std::size_t (*write_answer)(std::span<const std::byte> part, const Question& question,
                                std::span<std::byte> out) = nullptr;
};

/// The server's last answer to each kind of question, all of whose parts came from the server at once. Memory
/// is fixed.
class Answers {
  public:
    /// As many parts as a full server of 128 needs.
    static constexpr std::size_t kMaxParts = 8;
    /// A longer part is not kept, and neither is its answer.
    static constexpr std::size_t kMaxBytes = 1400;
    /// An older answer is not repeated.
    static constexpr std::uint32_t kHoldsMs = 1000;
    /// An answer's parts come within this time.
    static constexpr std::uint32_t kCompleteMs = 30;

    /// What was answered to a question.
    struct Answer {
        struct Part {
            std::uint16_t size = 0;
            std::array<std::byte, kMaxBytes> bytes; // NOLINT(*-member-init): as far as it is used
        };

        std::uint32_t came_ms = 0;
        std::uint32_t asker = 0;    ///< number of the session it went to; 0: none
        std::uint8_t num_parts = 0; ///< kMaxParts + 1: more than can be kept
        std::array<Part, kMaxParts> parts;

        [[nodiscard]] std::span<const std::byte> part(std::size_t i) const noexcept {
            return std::span{parts[i].bytes}.first(parts[i].size);
        }
    };

    /// Takes a part of the answer to `kind` that session `asker` got.
    void add(std::uint8_t kind, std::uint32_t asker, const AnswerPart& part,
             std::span<const std::byte> datagram, std::uint32_t now_ms) noexcept;

    /// The last whole answer, when it is recent enough; else null.
    [[nodiscard]] const Answer* find(std::uint8_t kind, std::uint32_t now_ms) noexcept;

  private:
    /// One is written while the other is read.
    struct Pair {
        std::array<Answer, 2> answers;
        std::uint8_t whole = 0;
    };

    void settle(Pair& pair, std::uint32_t now_ms) noexcept;

    std::unique_ptr<std::array<Pair, kMaxQuestions>> pairs_ =
        std::make_unique<std::array<Pair, kMaxQuestions>>();
};

} // namespace tw::relay
