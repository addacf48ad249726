#pragma once

#include "proxy/bus/link.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tw::bus {

/// A set of numbers, stored as ranges.
class NumberSet {
  public:
    void insert(std::uint64_t first, std::uint64_t last);

    void insert(std::uint64_t number) { insert(number, number); }

    void insert(const NumberSet& other);

    [[nodiscard]] bool contains(std::uint64_t number) const;

    [[nodiscard]] bool empty() const { return ranges_.empty(); }

    /// Number of elements from `first` to `last`.
    [[nodiscard]] std::uint64_t count(std::uint64_t first, std::uint64_t last) const;

    /// The largest number; 0 if the set is empty.
    [[nodiscard]] std::uint64_t last() const { return empty() ? 0 : ranges_.rbegin()->second; }

    /// Removes numbers below `number`.
    void forget_before(std::uint64_t number);

    /// Returns the set as a text such as "1-5,7".
    [[nodiscard]] std::string text() const;
    /// Parses the result of text(); nullopt if the text is invalid.
    [[nodiscard]] static std::optional<NumberSet> read(std::string_view text);

    friend bool operator==(const NumberSet&, const NumberSet&) = default;

  private:
    std::map<std::uint64_t, std::uint64_t> ranges_; ///< first and last number of each range
};

/// An entry of a commit log: one batch.
struct CommitEntry {
    std::string batch{};
    std::int64_t created = 0; ///< creation time of the stream that held the batch's records
    NumberSet places{};

    friend bool operator==(const CommitEntry&, const CommitEntry&) = default;
};

/// Returns an entry as a text. Layout: "BATCH CREATED PLACES".
[[nodiscard]] std::string commit_text(const CommitEntry& commit);
/// Parses the result of commit_text(); nullopt if the text is invalid.
[[nodiscard]] std::optional<CommitEntry> read_commit(std::string_view text);

/// What a commit log says about one stream. A stream that was created again under the same name
/// numbers its messages from 1, so commits about the earlier stream do not apply.
class CommittedPlaces {
  public:
    /// `created`: the stream's creation time. `sought`: a batch whose presence found() reports.
    CommittedPlaces(std::int64_t created, std::string sought)
        : created_{created}, sought_{std::move(sought)} {}

    void add_entry(std::string_view text);

    [[nodiscard]] std::int64_t created() const { return created_; }

    [[nodiscard]] bool contains(std::uint64_t place) const { return places_.contains(place); }

    /// True if the log contains the sought batch, whatever stream it is about.
    [[nodiscard]] bool found() const { return found_; }

    /// The highest committed sequence number.
    [[nodiscard]] std::uint64_t last() const { return places_.last(); }

    /// The number of uncommitted sequence numbers from `first` to `last`.
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

/// The log of the batches that the collectors of one consumer have written permanently: a stream on
/// the bus with one message for each batch. A collector can add a batch only if it has read the whole
/// log. So if two collectors received the same record, the second one notices this and takes its own
/// batch back.
class CommitLog {
  public:
    struct Options {
        std::string stream{};
        std::string consumer{};
        std::int64_t created = 0; ///< see CommittedPlaces
        std::string sought{};
    };

    /// Creates the log's stream if it does not exist, and reads all of it.
    [[nodiscard]] static BusResult<CommitLog> open(const BusConnection& link, Options options);

    [[nodiscard]] const CommittedPlaces& committed() const { return committed_; }

    /// Adds a batch, unless other collectors have added batches since this log was last read: then it
    /// returns false, and committed() contains theirs, so that the caller can check its own again. It is
    /// an error if messages were deleted from the log, which must then be reopened.
    [[nodiscard]] BusResult<bool> add(const std::string& batch, const NumberSet& places);

    /// Reads the batches that other collectors have added since the last call.
    [[nodiscard]] BusResult<void> read_on();

    /// Makes the log reject messages that a collector sent before it ended and that have not arrived
    /// yet.
    [[nodiscard]] BusResult<void> reject_late_messages();

    /// Forgets committed sequence numbers below `place`, which are no longer needed.
    void forget_before(std::uint64_t place) { committed_.forget_before(place); }

  private:
    CommitLog(const BusConnection& link, std::string stream, std::string subject,
              CommittedPlaces committed)
        : link_{&link}, stream_{std::move(stream)}, subject_{std::move(subject)},
          committed_{std::move(committed)} {}

    [[nodiscard]] BusResult<std::int64_t> make_stream() const;
    [[nodiscard]] BusResult<void> read_new_entries();

    const BusConnection* link_;
    std::string stream_;
    std::string subject_;
    std::int64_t made_ = 0;  ///< creation time of the log's own stream
    std::uint64_t read_ = 0; ///< sequence number of the last message read
    CommittedPlaces committed_;
};

} // namespace tw::bus
