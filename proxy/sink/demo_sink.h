#pragma once

#include "proxy/record/records.h"
#include "proxy/record/roster.h"
#include "proxy/sink/demo_encoder.h"
#include "proxy/sink/file_queue.h"
#include "snapshot/objects.h"
#include "snapshot/snapshot.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

/// Demos that vanilla Teeworlds 0.6 can play. Vanilla checks little: it uses a client id from a
/// demo as an array index without checking its own limit.
namespace tw::sink {

inline constexpr std::int32_t kVanillaClients = 16;

/// Copies the items that vanilla knows, without items of UUID types and items of clients beyond
/// kVanillaClients. A field that refers to such a client (hooked, watched, flag carrier) becomes
/// -1.
void keep_vanilla_items(const snapshot::SnapshotView& items, snapshot::Snapshot& out);

/// True if vanilla knows the message and every client in it.
[[nodiscard]] bool is_vanilla_message(const record::MessageRecord& message);

/// The room that items take in a snapshot.
struct SnapshotRoom {
    std::size_t items = 0;
    std::size_t bytes = 0;
};

/// The items that 0.7 clients add to each snapshot of a demo: players, game info and tuning.
/// Servers send these as messages, which a player would miss when it seeks.
class SevenDemoItems {
  public:
    /// Forgets everything, for a new map or a new connection.
    void clear() { *this = {}; }

    void on_message(const record::MessageRecord& record);

    /// Whether add() uses items of this kind that a snapshot already contains. Snapshots of demos
    /// contain such items; no server sends them.
    enum class Theirs : bool { left_out, taken };

    /// Copies a snapshot's items to `out` and adds the items about players, game info and tuning.
    /// `roster` may be null; it names the players that no message described.
    void add(const snapshot::SnapshotView& items, const record::Roster* roster,
             snapshot::Snapshot& out, Theirs theirs = Theirs::left_out) const;

    /// The room that the added items take if no message described a player.
    [[nodiscard]] static SnapshotRoom room_of(const record::Roster* roster);

  private:
    /// Item types: de_client_info and the two after it.
    static constexpr std::uint16_t kClientInfo = 13;
    static constexpr std::uint16_t kGameInfo = 14;
    static constexpr std::uint16_t kTuneParams = 15;
    static constexpr std::size_t kTeam = 1; ///< offset in de_client_info
    static constexpr std::size_t kName = 2;
    static constexpr std::size_t kCountry = 9;
    static constexpr std::size_t kSkinPartNames = 10;
    static constexpr std::size_t kSkinPartInts = 6; ///< ints of each skin part
    static constexpr std::size_t kSkinParts = 6;

    using ClientInfo = std::array<std::int32_t, snapshot::kSevenAgreedSizes[kClientInfo]>;
    using GameInfo = std::array<std::int32_t, snapshot::kSevenAgreedSizes[kGameInfo]>;
    using TuneParams = std::array<std::int32_t, snapshot::kSevenAgreedSizes[kTuneParams]>;

    /// Uses an item of a demo as the value, because a demo contains no message that gives it.
    void take_from(const snapshot::ItemView& item);
    /// The item of a client about which nothing is known.
    [[nodiscard]] static ClientInfo unknown_client();
    void add_own(const record::Roster* roster, snapshot::Snapshot& out) const;

    std::map<std::uint16_t, ClientInfo> clients_; ///< by client id below Roster::kMaxClients
    std::optional<GameInfo> game_;
    std::optional<TuneParams> tuning_;
};

/// Counts of what was left out of demos.
struct DemoLosses {
    /// Snapshots that were too large, or came while the write queue was full.
    std::uint64_t snapshots = 0;
    std::uint64_t large_snapshots = 0; ///< snapshots that were too large
    std::uint64_t late = 0;            ///< snapshots that arrived after a newer one
    /// Messages that were too large, or too many before the first snapshot.
    std::uint64_t messages = 0;
    std::uint64_t large_messages = 0; ///< messages that were too large
    std::uint64_t mapless = 0;        ///< sessions whose map is unknown
    /// Map visits with a single snapshot. No client plays a demo of one snapshot.
    std::uint64_t single = 0;

    void merge(const DemoLosses& other) {
        snapshots += other.snapshots;
        large_snapshots += other.large_snapshots;
        late += other.late;
        messages += other.messages;
        large_messages += other.large_messages;
        mapless += other.mapless;
        single += other.single;
    }
};

/// Counts of what was left out of world demos. What the demo's protocol cannot express is not
/// counted.
struct WorldDemoLosses {
    std::uint64_t items_over_limit = 0; ///< items beyond the limits of a snapshot
    std::uint64_t ticks_over_limit = 0; ///< ticks that lack some of these items
    std::uint64_t items_without_id = 0; ///< items of players for whom no id was free
    std::uint64_t ticks_without_id = 0;
    std::uint64_t worlds = 0; ///< servers beyond the number that may have demos at the same time
    std::uint64_t messages_without_id = 0; ///< messages about players without an id
    std::uint64_t messages_over_limit = 0; ///< messages beyond the limit of one tick
    DemoLosses demos{};
};

/// Returns a sentence for users about each kind of loss that occurred.
[[nodiscard]] std::vector<std::string> sentences_of(const DemoLosses& losses);
/// Returns a sentence for users about each kind of loss in world demos, except for the losses in
/// `demos`.
[[nodiscard]] std::vector<std::string> sentences_of(const WorldDemoLosses& losses);

struct DemoOptions {
    std::filesystem::path folder;
    int version = demo::kSha256Version; ///< 6 for DDNet; 4 also for vanilla
    bool messages = true;               ///< includes chat, kills, broadcasts and the like
    bool show_secrets = false;          ///< includes messages with whispers and codes
    bool of_server = false;             ///< a demo as servers record it, without a player's view
};

/// Writes the snapshots that each session's client received as playable demos, one for each session
/// and map. A demo starts at its second snapshot, so none is empty, and is valid at any time. There
/// is no demo if the map is unknown: no client would play it. Demos of 0.7 connections always have
/// the version that the 0.7 client plays.
class DemoSink final : public record::RecordSink {
  public:
    /// `files` has to outlive the sink; several sinks may share it.
    DemoSink(DemoOptions options, FileQueue& files)
        : options_{std::move(options)}, files_{&files} {}

    void on_record(const record::Record& record) override;

    /// Turns writing on or off. Turning it off ends every demo. While off, the sink keeps what a
    /// demo that starts in the middle of a game needs.
    void set_on(bool on);

    /// Ends every demo.
    void finish();

    [[nodiscard]] const DemoLosses& losses() const { return losses_; }

  private:
    /// Limit for the messages kept before the first snapshot: vote options, settings, chat.
    static constexpr std::size_t kMaxPendingBytes = std::size_t{256} << 10U;
    /// Collected chunks are passed to the file after this many ticks or bytes.
    static constexpr snapshot::Tick kFlushTicks = 25;
    static constexpr std::size_t kFlushBytes = std::size_t{16} << 10U;
    /// Ticks without a new demo after the queue or disk was full.
    static constexpr snapshot::Tick kPause = 250;

    using Bytes = std::vector<std::byte>;

    /// A demo being written.
    struct Recording {
        DemoEncoder encoder;
        demo::Header header;
        std::shared_ptr<const std::vector<std::byte>> map;
        std::string name;
        std::optional<FileQueue::File> file{}; ///< nullopt before the second snapshot
        Bytes gathered{};
        snapshot::Tick flushed = 0;
        std::uint64_t waiting = 0; ///< snapshots in `gathered`
    };

    /// The recording state of a session.
    struct SessionDemo {
        std::optional<Recording> recording{};
        std::optional<snapshot::Tick> paused{}; ///< the tick at which recording paused
        std::string map_name{};
        std::uint32_t map_crc = 0;
        std::optional<std::array<std::uint8_t, 32>> map_sha256{};
        std::shared_ptr<const std::vector<std::byte>> map{};
        std::vector<Bytes> pending{}; ///< messages before the first snapshot
        std::size_t pending_bytes = 0;
        bool pending_tuning = false; ///< one of the pending messages is the tuning
        Bytes tuning{};              ///< the last tuning message
        bool seven = false;          ///< the connection is 0.7
        bool mapless = false;        ///< the map is unknown, and this was counted
        SevenDemoItems seven_items{};
    };

    void take(const record::SessionRecord& record);
    void take(const record::MessageRecord& record);
    void take(const record::MapRecord& record);
    void take(const record::SnapshotRecord& record);
    void take(const record::FindingRecord& record);

    void begin(SessionDemo& session_demo, const record::SnapshotRecord& record) const;
    void add_message(SessionDemo& session_demo, std::span<const std::byte> payload);
    void flush(Recording& recording);
    /// Precondition: the recording has a file.
    void close(Recording& recording);
    void end(SessionDemo& session_demo);

    DemoOptions options_;
    bool on_ = true;
    FileQueue* files_;
    std::unordered_map<std::uint32_t, SessionDemo> session_demos_;
    /// Returns the items of a snapshot as the demo stores them; valid until the next call.
    [[nodiscard]] snapshot::SnapshotView items_for(const SessionDemo& session_demo,
                                                   const record::SnapshotRecord& record);

    snapshot::Snapshot changed_; ///< kept to reuse its memory
    DemoLosses losses_;
};

/// Returns the text as part of a file name: letters, digits, dots, dashes and underscores only.
[[nodiscard]] std::string safe_file_name(std::string_view text);

} // namespace tw::sink
