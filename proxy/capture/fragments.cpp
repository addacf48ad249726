#include "proxy/capture/fragments.h"

#include <algorithm>

namespace tw::capture {

/// The one that is under way; else the place of one whose time is over, or of the oldest.
Fragments::Partial& Fragments::place_of(const Fragment& fragment) {
    Partial* oldest = nullptr;
    for (Partial& partial : partials_) {
        const std::int64_t age = fragment.time - partial.began;
        // A clock that was set back makes nothing wait for ever.
        partial.used = partial.used && age <= kPatience && age >= -kPatience;
        if (partial.used && partial.id == fragment.id && partial.source == fragment.source &&
            partial.destination == fragment.destination) {
            return partial;
        }
        const bool better = oldest == nullptr || (oldest->used && !partial.used) ||
                            (oldest->used == partial.used && partial.began < oldest->began);
        oldest = better ? &partial : oldest;
    }
    oldest->used = true;
    oldest->spoiled = false;
    oldest->source = fragment.source;
    oldest->destination = fragment.destination;
    oldest->id = fragment.id;
    oldest->began = fragment.time;
    oldest->size.reset();
    oldest->have = 0;
    oldest->num_pieces = 0;
    return *oldest;
}

Fragments::Fit Fragments::fit_of(const Partial& partial, const Fragment& fragment) {
    const std::size_t begin = fragment.offset;
    const std::size_t end = begin + fragment.bytes.size();
    constexpr std::size_t kUnit = 8; // every piece but the last ends on one
    if (fragment.bytes.empty() || end > kMaxBytes || (fragment.more && end % kUnit != 0)) {
        return Fit::spoils;
    }
    const auto pieces = std::span{partial.pieces}.first(partial.num_pieces);
    for (const Piece& piece : pieces) {
        if (piece.begin == begin && piece.end == end) {
            return Fit::again;
        }
        if (piece.begin < end && begin < piece.end) {
            return Fit::spoils;
        }
        if (!fragment.more && piece.end > end) {
            return Fit::spoils;
        }
    }
    const bool behind_the_end = partial.size && end > *partial.size;
    const bool second_end = !fragment.more && partial.size && *partial.size != end;
    return behind_the_end || second_end || partial.num_pieces == kMaxPieces ? Fit::spoils
                                                                            : Fit::fits;
}

std::optional<Fragments::Whole> Fragments::add(const Fragment& fragment) {
    Partial& partial = place_of(fragment);
    if (partial.spoiled) {
        return std::nullopt;
    }
    const Fit fit = fit_of(partial, fragment);
    if (fit != Fit::fits) {
        partial.spoiled = fit == Fit::spoils;
        return std::nullopt;
    }
    const std::size_t end = fragment.offset + fragment.bytes.size();
    if (partial.bytes.size() < end) {
        partial.bytes.resize(end);
    }
    std::copy(fragment.bytes.begin(), fragment.bytes.end(),
              partial.bytes.begin() + static_cast<std::ptrdiff_t>(fragment.offset));
    partial.pieces[partial.num_pieces++] = {.begin = fragment.offset, .end = end};
    partial.have += fragment.bytes.size();
    if (!fragment.more) {
        partial.size = end;
    }
    if (!partial.size || partial.have != *partial.size) {
        return std::nullopt;
    }
    partial.used = false;
    return Whole{.bytes = std::span<const std::byte>{partial.bytes}.first(*partial.size),
                 .pieces = partial.num_pieces};
}

} // namespace tw::capture
