#pragma once

#include "proxy/record/records.h"
#include "proxy/sink/pcapng.h"
#include "proxy/sink/session_state.h"
#include "proxy/sink/udp_frame.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tw::sink {

/// Of the first interface of every capture; whoever reads one knows ours by it.
inline constexpr std::string_view kClientsDescription = "between clients and twscope";

/// Makes the blocks of a capture: each datagram once, on the leg it came in by and between the
/// addresses of client and server; what was found in it stands in its comment. To be told of every
/// record, and of every datagram before it is looked at and after that.
class CaptureBlocks {
  public:
    using Bytes = std::vector<std::byte>;

    /// What a capture begins with. `comment`: about all of it; empty: none.
    [[nodiscard]] static Bytes head(std::string_view comment = {});

    void on_record(const record::Record& record);

    /// Where the state of the session comes from whose datagram is handed over; it stands before the
    /// first one of each session, and again after `every` nanoseconds; 0: never. Where that would be
    /// too much beside the traffic, it stands before a later one.
    void repeat_states(StateSource states, record::Timestamp every = 0);

    void on_datagram(const record::RecordHead& head, std::span<const std::byte> datagram);

    /// Stands with the datagram at hand, or the next one.
    void say(std::string text) { say(0, std::move(text), false); }

    /// What was said since the last datagram stands with the next one of its own session.
    void put_aside();
    /// The datagram at hand is not written: what was found in it is forgotten, what became of its
    /// session stands with that session's next one.
    void skip_datagram();

    /// Each session is described once more, with its next datagram and its state: a new file begins.
    void introduce_again() { ++introduction_; }

    /// Appends the datagram's block. False: it is too long for one.
    [[nodiscard]] bool end_datagram(Bytes& out);
    /// Appends what was said since the last datagram, if anything was.
    void finish(record::Timestamp time, Bytes& out);

    /// Of the datagram at hand.
    [[nodiscard]] const record::RecordHead& at() const { return head_; }

    /// What is known of a session: "session 3: 127.0.0.1:50000 to 127.0.0.1:8303"; empty: nothing.
    [[nodiscard]] std::string describe(std::uint32_t session) const;

  private:
    /// Of those before, the oldest are forgotten, those that are closed first: what they still send
    /// gets an address for tests.
    static constexpr std::size_t kMaxSessions = 65'536;
    /// More would be said of no honest packet.
    static constexpr std::size_t kMaxComments = 16;
    /// A session that is established, closed, and found silent in between.
    static constexpr std::size_t kMaxAside = 4;

    struct Ends {
        FrameEndpoint client;
        FrameEndpoint server;
        std::string told;                          ///< of its beginning
        std::uint32_t opened = 0;                  ///< in which introduction
        std::optional<std::uint32_t> introduced{}; ///< in which one last
        std::vector<std::string> aside{};          ///< stands with its next datagram
        std::optional<std::uint32_t> stated{};     ///< in which one its state was written last
        record::Timestamp stated_at = 0;
    };

    struct Comment {
        std::uint32_t session = 0; ///< 0: of none
        bool of_session = false;   ///< not of one datagram of it
        std::string text{};
    };

    void take(const record::SessionRecord& record);
    void take(const record::FindingRecord& record);
    void forget_one_too_many();
    void say(std::uint32_t session, std::string text, bool of_session);
    /// What stands with a datagram of this session; null: of an unknown one.
    [[nodiscard]] std::vector<std::string> take_comments(Ends* ends);
    [[nodiscard]] bool wants_state(const Ends& ends) const;
    void put_state(Bytes& out) const;

    PcapngEncoder encoder_;
    StateSource states_;
    record::Timestamp states_every_ = 0;
    StateAllowance states_left_;
    std::map<std::uint32_t, Ends> sessions_;
    std::set<std::uint32_t> closed_;      ///< of these
    std::uint32_t introduction_ = 0;      ///< which one is due
    record::RecordHead head_;             ///< of the datagram at hand
    std::span<const std::byte> datagram_; ///< valid until its end
    Ends* ends_ = nullptr;                ///< its session's; null: nothing is known
    Bytes state_;                         ///< stands before it; empty: none does
    std::vector<Comment> comments_;       ///< of the datagram at hand, or the next one
    std::uint64_t unsaid_ = 0;            ///< comments beyond kMaxComments
    Bytes frame_;                         ///< kept for its memory
};

/// How many bytes of a pcapng file are whole blocks; behind them is what was never finished. 0 for
/// what cannot be read, and for no such file.
[[nodiscard]] std::uint64_t whole_capture_bytes(int descriptor);

} // namespace tw::sink
