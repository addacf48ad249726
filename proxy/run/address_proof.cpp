#include "proxy/run/address_proof.h"

#include "proxy/wire/info_answer.h"
#include "proxy/wire/proof.h"

#include <cstring>
#include <type_traits>

namespace tw::run {

namespace {

static_assert(std::is_trivially_copyable_v<wire::ProofState>);
static_assert(sizeof(wire::ProofState) <= sizeof(relay::ProofMemory));

relay::Standing standing_of(wire::Trust trust) {
    switch (trust) {
    case wire::Trust::connless:
        return relay::Standing::connless;
    case wire::Trust::stray:
        return relay::Standing::stray;
    case wire::Trust::unproven:
        return relay::Standing::unproven;
    case wire::Trust::verified:
        return relay::Standing::verified;
    case wire::Trust::weak:
        return relay::Standing::weak;
    case wire::Trust::player:
        return relay::Standing::player;
    }
    return relay::Standing::stray;
}

relay::Request request_of(wire::Request request) {
    switch (request) {
    case wire::Request::none:
        return relay::Request::none;
    case wire::Request::info:
        return relay::Request::common;
    case wire::Request::master:
        return relay::Request::reserved;
    case wire::Request::other:
        return relay::Request::other;
    }
    return relay::Request::other;
}

wire::InfoRequest request_of(const relay::Question& question) {
    return {.kind = static_cast<wire::InfoRequestKind>(question.kind), .token = question.token};
}

relay::Question read_question(std::span<const std::byte> datagram) {
    const auto request = wire::read_info_request(datagram);
    return request ? relay::Question{.kind = static_cast<std::uint8_t>(request->kind),
                                     .token = request->token}
                   : relay::Question{};
}

std::optional<relay::AnswerPart> read_answer(std::span<const std::byte> datagram,
                                             const relay::Question& question) {
    const auto part = wire::read_info_part(datagram, request_of(question));
    return part ? std::optional{relay::AnswerPart{.is_first = *part == wire::InfoPart::first}}
                : std::nullopt;
}

std::size_t write_answer(std::span<const std::byte> part, const relay::Question& question,
                         std::span<std::byte> out) {
    return wire::write_info_part(part, request_of(question), out);
}

} // namespace

relay::Verdict prove_address(relay::ProofMemory& memory, relay::Direction direction,
                             std::span<const std::byte> datagram) {
    wire::ProofState state;
    std::memcpy(&state, memory.bytes.data(), sizeof state);
    const wire::Judgement judgement = wire::judge(
        state, direction == relay::Direction::c2s ? wire::Direction::c2s : wire::Direction::s2c,
        datagram);
    std::memcpy(memory.bytes.data(), &state, sizeof state);
    return {.standing = standing_of(judgement.trust),
            .request = request_of(judgement.request),
            .is_answered = judgement.is_answered,
            .is_play = judgement.is_play};
}

relay::Repeating repeating_info() {
    return {
        .read_question = read_question, .read_answer = read_answer, .write_answer = write_answer};
}

} // namespace tw::run
