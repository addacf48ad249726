#include "proxy/capture/fragments.h"

#include <algorithm>
#include <tuple>

namespace tw::capture {

/// The one that is under way or was made; else the place of one whose time is over, of the oldest that
/// is whole, or of the oldest.
Fragments::Partial& Fragments::place_of(const Fragment& fragment) {
    const auto worth = [](const Partial& partial) {
        return std::tuple{partial.used, !partial.whole, partial.began};
    };
    Partial* least = nullptr;
    for (Partial& partial : partials_) {
        const std::int64_t age = fragment.time - partial.began;
        // A clock that was set back makes nothing wait for ever.
        partial.used = partial.used && age <= kPatience && age >= -kPatience;
        if (partial.used && partial.id == fragment.id && partial.source == fragment.source &&
            partial.destination == fragment.destination) {
            return partial;
        }
        least = least == nullptr || worth(partial) < worth(*least) ? &partial : least;
    }
    begin(*least, fragment);
    return *least;
}

void Fragments::begin(Partial& partial, const Fragment& fragment) {
    partial.used = true;
    partial.spoiled = false;
    partial.whole = false;
    partial.source = fragment.source;
    partial.destination = fragment.destination;
    partial.id = fragment.id;
    partial.began = fragment.time;
    partial.size.reset();
    partial.have = 0;
    partial.num_pieces = 0;
}

/// By its bytes: a host that sends much soon uses an id again.
bool Fragments::is_of_whole(const Partial& partial, const Fragment& fragment) {
    const auto bytes = std::span<const std::byte>{partial.bytes}.first(*partial.size);
    return fit_of(partial, fragment) == Fit::again &&
           std::ranges::equal(fragment.bytes,
                              bytes.subspan(fragment.offset, fragment.bytes.size()));
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
    if (partial.whole && !is_of_whole(partial, fragment)) {
        begin(partial, fragment);
    }
    const Fit fit = fit_of(partial, fragment);
    if (fit != Fit::fits) {
        partial.spoiled = fit == Fit::spoils;
        repeats_ += fit == Fit::again ? 1 : 0;
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
    partial.whole = true;
    return Whole{.bytes = std::span<const std::byte>{partial.bytes}.first(*partial.size),
                 .pieces = partial.num_pieces};
}

} // namespace tw::capture
