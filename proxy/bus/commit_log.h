#pragma once

#include "proxy/bus/link.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tw::bus {

/// Numbers, most of which follow each other.
class NumberSet {
  public:
    void insert(std::uint64_t first, std::uint64_t last);

    void insert(std::uint64_t number) { insert(number, number); }

    void insert(const NumberSet& other);

    [[nodiscard]] bool contains(std::uint64_t number) const;

    [[nodiscard]] bool empty() const { return ranges_.empty(); }

    /// How many of those from `first` to `last` are there.
    [[nodiscard]] std::uint64_t count(std::uint64_t first, std::uint64_t last) const;

    /// The largest; 0: it is empty.
    [[nodiscard]] std::uint64_t last() const { return empty() ? 0 : ranges_.rbegin()->second; }

    /// Forgets those before.
    void forget_before(std::uint64_t number);

    /// "1-5,7"
    [[nodiscard]] std::string text() const;
    /// Nothing: it is no such text.
    [[nodiscard]] static std::optional<NumberSet> read(std::string_view text);

    friend bool operator==(const NumberSet&, const NumberSet&) = default;

  private:
    std::map<std::uint64_t, std::uint64_t> ranges_; ///< first to last
};

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
