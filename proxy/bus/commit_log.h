#pragma once

#include "proxy/bus/link.h"
#include "proxy/bus/number_set.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

namespace tw::bus {

/// What the collectors of one consumer have written down for good: a stream of its own on the bus, one
/// message a batch. Who adds one has to have read all that are there; so of two that were handed the
/// same record one is told, and takes its own back.
class CommitLog {
  public:
    /// Makes the stream when it is not there, and reads all of it.
    [[nodiscard]] static Tried<CommitLog> open(const Link& link, const std::string& stream,
                                               const std::string& consumer);

    [[nodiscard]] bool contains(std::uint64_t place) const { return done_.contains(place); }

    [[nodiscard]] bool has_batch(const std::string& id) const { return batches_.contains(id); }

    /// Adds a batch. False: others added something in between, which is known now: look again.
    [[nodiscard]] Tried<bool> add(const std::string& id, const NumberSet& places);

    /// Whatever was on its way here when a collector ended comes too late from now on.
    [[nodiscard]] Tried<void> fence();

    /// Places before this one are not asked for any more.
    void forget_before(std::uint64_t place) { done_.forget_before(place); }

  private:
    CommitLog(const Link& link, std::string stream, std::string subject)
        : link_{&link}, stream_{std::move(stream)}, subject_{std::move(subject)} {}

    [[nodiscard]] Tried<void> make_stream() const;
    [[nodiscard]] Tried<void> read_on();
    void take(std::string_view text, std::uint64_t place);

    const Link* link_;
    std::string stream_;
    std::string subject_;
    std::uint64_t read_ = 0; ///< the place of its last message
    NumberSet done_;
    std::unordered_set<std::string> batches_;
};

/// A message of it: "ID PLACES".
[[nodiscard]] std::string commit_text(std::string_view id, const NumberSet& places);

} // namespace tw::bus
