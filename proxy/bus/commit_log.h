#pragma once

#include "proxy/bus/link.h"
#include "proxy/bus/number_set.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tw::bus {

/// An entry of a commit log: one batch.
struct Commit {
    std::string batch{};
    std::int64_t created = 0; ///< of the stream in which its records stand
    NumberSet places{};

    friend bool operator==(const Commit&, const Commit&) = default;
};

/// Layout: "BATCH CREATED PLACES".
[[nodiscard]] std::string commit_text(const Commit& commit);
/// Nothing: it is no such text.
[[nodiscard]] std::optional<Commit> read_commit(std::string_view text);

/// What a commit log says of one stream. One that was made anew under the same name counts its places
/// from 1 again: what was written down of the one before says nothing of it.
class Committed {
  public:
    /// `created`: of the stream; `sought`: a batch of which it is to be told whether it is there.
    Committed(std::int64_t created, std::string sought)
        : created_{created}, sought_{std::move(sought)} {}

    void take(std::string_view text);

    [[nodiscard]] std::int64_t created() const { return created_; }

    [[nodiscard]] bool contains(std::uint64_t place) const { return places_.contains(place); }

    /// Of whichever stream it was.
    [[nodiscard]] bool found() const { return found_; }

    /// The last place.
    [[nodiscard]] std::uint64_t last() const { return places_.last(); }

    /// How many of the places from `first` to `last` nobody has written down.
    [[nodiscard]] std::uint64_t missing(std::uint64_t first, std::uint64_t last) const {
        return first > last ? 0 : last - first + 1 - places_.count(first, last);
    }

    void forget_before(std::uint64_t place) { places_.forget_before(place); }

  private:
    std::int64_t created_;
    std::string sought_;
    NumberSet places_;
    bool found_ = false;
};

/// What the collectors of one consumer have written down for good: a stream of its own on the bus, one
/// message a batch. Who adds one has to have read all that are there; so of two that were handed the
/// same record one is told, and takes its own back.
class CommitLog {
  public:
    struct Options {
        std::string stream{};
        std::string consumer{};
        std::int64_t created = 0; ///< see Committed
        std::string sought{};
    };

    /// Makes the stream of the log when it is not there, and reads all of it.
    [[nodiscard]] static Tried<CommitLog> open(const Link& link, Options options);

    [[nodiscard]] const Committed& committed() const { return committed_; }

    /// Adds a batch. False: others added something in between, which is known now: look again. An error
    /// is also that something was taken out of the log: it has to be opened again.
    [[nodiscard]] Tried<bool> add(const std::string& batch, const NumberSet& places);

    /// Reads what others added.
    [[nodiscard]] Tried<void> read_on();

    /// Whatever was on its way here when a collector ended comes too late from now on.
    [[nodiscard]] Tried<void> fence();

    /// Places before this one are not asked for any more.
    void forget_before(std::uint64_t place) { committed_.forget_before(place); }

  private:
    CommitLog(const Link& link, std::string stream, std::string subject, Committed committed)
        : link_{&link}, stream_{std::move(stream)}, subject_{std::move(subject)},
          committed_{std::move(committed)} {}

    [[nodiscard]] Tried<std::int64_t> make_stream() const;
    [[nodiscard]] Tried<void> read_further();

    const Link* link_;
    std::string stream_;
    std::string subject_;
    std::int64_t made_ = 0;  ///< when the stream of the log was
    std::uint64_t read_ = 0; ///< the place of its last message
    Committed committed_;
};

} // namespace tw::bus
