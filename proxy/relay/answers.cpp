#include "proxy/relay/answers.h"

#include <algorithm>

namespace tw::relay {

/// Once all of its parts must have come, an answer that has them all takes the place of the one before.
void Answers::settle(Pair& pair, std::uint32_t now_ms) noexcept {
    Answer& coming = pair.answers[pair.whole ^ 1U];
    if (coming.asker != 0 && now_ms - coming.came_ms >= kCompleteMs) {
        if (coming.num_parts <= kMaxParts) {
            pair.whole ^= 1U;
        }
        pair.answers[pair.whole ^ 1U].asker = 0;
    }
}

void Answers::add(std::uint8_t kind, std::uint32_t asker, const AnswerPart& part,
                  std::span<const std::byte> datagram, std::uint32_t now_ms) noexcept {
    Pair& pair = (*pairs_)[kind % kMaxQuestions];
    settle(pair, now_ms);
    Answer& coming = pair.answers[pair.whole ^ 1U];
    if (coming.asker == 0 && part.is_first) {
        coming.came_ms = now_ms;
        coming.asker = asker;
        coming.num_parts = 0;
    } else if (coming.asker != asker || part.is_first) {
        return; // one answer at a time
    }
    if (coming.num_parts >= kMaxParts || datagram.size() > kMaxBytes) {
        coming.num_parts = kMaxParts + 1;
        return;
    }
    Answer::Part& kept = coming.parts[coming.num_parts++];
    kept.size = static_cast<std::uint16_t>(datagram.size());
    std::ranges::copy(datagram, kept.bytes.begin());
}

const Answers::Answer* Answers::find(std::uint8_t kind, std::uint32_t now_ms) noexcept {
    Pair& pair = (*pairs_)[kind % kMaxQuestions];
    settle(pair, now_ms);
    const Answer& whole = pair.answers[pair.whole];
    const bool is_recent = whole.asker != 0 && now_ms - whole.came_ms < kHoldsMs;
    return is_recent ? &whole : nullptr;
}

} // namespace tw::relay
