// Covers: proxy/relay/new_client_filter.cpp
#include "proxy/relay/new_client_filter.h"

#include <vector>

#include <doctest/doctest.h>

namespace {

using namespace tw::relay;

constexpr std::uint8_t kKind = 1;
constexpr AnswerPart kFirst{.is_first = true};
constexpr AnswerPart kMore{.is_first = false};
constexpr std::uint32_t kWhole = AnswerCache::kMaxPartsMs;

std::vector<std::byte> part(std::uint8_t what, std::size_t size = 10) {
    return std::vector<std::byte>(size, std::byte{what});
}

/// Returns the first byte of each part of the answer that would be repeated.
std::vector<int> found(AnswerCache& answers, std::uint32_t now, std::uint8_t kind = kKind) {
    std::vector<int> parts;
    if (const AnswerCache::Answer* const answer = answers.find(kind, now)) {
        for (std::size_t i = 0; i < answer->num_parts; ++i) {
            parts.push_back(std::to_integer<int>(answer->part(i)[0]));
        }
    }
    return parts;
}

TEST_CASE("an answer is repeated once all of its parts must have come, for a second") {
    AnswerCache answers;
    CHECK(found(answers, 0).empty());
    answers.add_part(kKind, 7, kFirst, part(1), 100);
    answers.add_part(kKind, 7, kMore, part(2), 110);
    CHECK(found(answers, 100 + kWhole - 1).empty());
    CHECK(found(answers, 100 + kWhole) == std::vector{1, 2});
    CHECK(found(answers, 100 + AnswerCache::kMaxAgeMs - 1) == std::vector{1, 2});
    CHECK(found(answers, 100 + AnswerCache::kMaxAgeMs).empty());
    CHECK(found(answers, 200, 2).empty());
}

TEST_CASE("a newer answer takes its place, and none is mixed with another") {
    AnswerCache answers;
    answers.add_part(kKind, 7, kFirst, part(1), 100);
    answers.add_part(kKind, 8, kFirst, part(2), 101); // another session's answer at the same time
    answers.add_part(kKind, 8, kMore, part(3), 102);
    answers.add_part(kKind, 7, kMore, part(4), 103);
    CHECK(found(answers, 140) == std::vector{1, 4});
    answers.add_part(kKind, 9, kMore, part(5), 150); // the first part of this answer was lost
    answers.add_part(kKind, 9, kFirst, part(6), 151);
    CHECK(found(answers, 160) == std::vector{1, 4});
    CHECK(found(answers, 190) == std::vector{6});
}

TEST_CASE("an answer that is too long is not repeated") {
    SUBCASE("in one part") {
        AnswerCache answers;
        answers.add_part(kKind, 7, kFirst, part(1, AnswerCache::kMaxBytes + 1), 100);
        CHECK(found(answers, 200).empty());
    }
    SUBCASE("in all") {
        AnswerCache answers;
        answers.add_part(kKind, 7, kFirst, part(1), 100);
        for (std::size_t i = 0; i < AnswerCache::kMaxParts; ++i) {
            answers.add_part(kKind, 7, kMore, part(2), 100);
        }
        CHECK(found(answers, 200).empty());
        answers.add_part(kKind, 8, kFirst, part(3), 300);
        CHECK(found(answers, 400) == std::vector{3});
    }
}

} // namespace
