#pragma once

#include "proxy/demo/demo_encoder.h"
#include "proxy/record/records.h"
#include "proxy/record/roster.h"
#include "proxy/store/file_queue.h"
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

/// Writes demos, on request for vanilla Teeworlds 0.6, too. Vanilla uses the client ids of a demo
/// as array indices without checking them.
namespace tw::demo {

inline constexpr std::int32_t kMaxVanillaClients = 16;

/// Copies the items that vanilla Teeworlds can play to `out`. Leaves out items of UUID types, and
/// items of clients with an id of kMaxVanillaClients or more. A field that refers to such a client
/// (hooked, watched, flag carrier) becomes -1.
void copy_vanilla_items(const snapshot::SnapshotView& items, snapshot::Snapshot& out);

/// Returns whether vanilla Teeworlds knows the message and all clients in it.
[[nodiscard]] bool is_vanilla_message(const record::MessageRecord& message);

/// Makes the items that 0.7 clients add to each snapshot of a demo: players, game info and tuning.
/// Servers send this data as messages, which demo players skip when the viewer seeks.
class SevenDemoItems {
  public:
    /// The type of the item de_client_info.
    static constexpr std::uint16_t kDeClientInfoType = 13;
    /// The size of a de_client_info without its key and offset.
    static constexpr std::size_t kClientInfoBytes =
        snapshot::kSevenAgreedSizes[kDeClientInfoType] * sizeof(std::int32_t);

    /// Forgets all data. Must be called when a new map or a new connection begins.
    void clear() { *this = {}; }

    void on_message(const record::MessageRecord& record);

    /// Copies the items of a snapshot to `out`, and adds the items about players, game info and
    /// tuning. These replace items of the same types in the snapshot. `roster`: the source of
    /// players that no message described; may be null.
    void copy_with_demo_items(const snapshot::SnapshotView& items, const record::Roster* roster,
                              snapshot::Snapshot& out) const;

    /// Returns whether a snapshot already contains items about players, game info or tuning. Only
    /// snapshots of demos contain them; servers do not send them.
    [[nodiscard]] static bool has_demo_items(const snapshot::SnapshotView& items);

    /// Returns how many de_client_info items copy_with_demo_items() adds if no message described a
    /// player.
    [[nodiscard]] static std::size_t count_added_items(const record::Roster* roster);

  private:
    /// The types of the items de_game_info and de_tune_params.
    static constexpr std::uint16_t kDeGameInfoType = 14;
    static constexpr std::uint16_t kDeTuneParamsType = 15;
    static constexpr std::size_t kTeamIndex = 1; ///< index of the team in de_client_info
    static constexpr std::size_t kNameIndex = 2;
    static constexpr std::size_t kCountryIndex = 9;
    static constexpr std::size_t kSkinPartNamesIndex = 10;
    static constexpr std::size_t kSkinPartInts = 6; ///< number of ints of each skin part
    static constexpr std::size_t kSkinParts = 6;

    using ClientInfo = std::array<std::int32_t, snapshot::kSevenAgreedSizes[kDeClientInfoType]>;
    using GameInfo = std::array<std::int32_t, snapshot::kSevenAgreedSizes[kDeGameInfoType]>;
    using TuneParams = std::array<std::int32_t, snapshot::kSevenAgreedSizes[kDeTuneParamsType]>;

    /// Returns a de_client_info for a client about which nothing is known.
    [[nodiscard]] static ClientInfo make_unknown_client();
    void append_demo_items(const record::Roster* roster, snapshot::Snapshot& out) const;

    std::map<std::uint16_t, ClientInfo> clients_; ///< by client id below Roster::kMaxClients
    std::optional<GameInfo> game_;
    std::optional<TuneParams> tuning_;
};

/// Counts of data that is missing from demos.
struct DemoLosses {
    std::uint64_t late_snapshots = 0;  ///< snapshots that arrived after a snapshot of a later tick
    std::uint64_t large_snapshots = 0; ///< snapshots that were too large
    /// Snapshots that were dropped because the write queue was full.
    std::uint64_t unwritten_snapshots = 0;
    std::uint64_t large_messages = 0; ///< messages that were too large
    /// Messages that were dropped, because too many came before the first snapshot.
    std::uint64_t early_messages = 0;
    std::uint64_t sessions_without_map =
        0; ///< sessions without a demo, because their map is unknown
    /// Demos that were not written, because clients cannot play a demo with a single snapshot.
    std::uint64_t single_snapshot_demos = 0;
    // The following losses occur only in demos of worlds.
    std::uint64_t items_over_limit = 0; ///< items beyond the limits of a snapshot
    std::uint64_t ticks_over_limit = 0; ///< ticks with items beyond these limits
    std::uint64_t items_without_id = 0; ///< items of players for whom no id was free
    std::uint64_t ticks_without_id = 0;
    /// Worlds of servers without a demo, because too many other servers had a demo at that time.
    std::uint64_t worlds_over_limit = 0;
    std::uint64_t messages_without_id = 0; ///< messages about players without an id
    std::uint64_t messages_over_limit = 0; ///< messages beyond the limit of messages per tick

    /// Returns the number of snapshots and messages that could not be written.
    [[nodiscard]] std::uint64_t num_unwritten_chunks() const {
        return large_snapshots + unwritten_snapshots + large_messages + early_messages;
    }

    void merge(const DemoLosses& other);
};

/// Returns a sentence for users about each kind of loss whose count is not 0.
[[nodiscard]] std::vector<std::string> describe_losses(const DemoLosses& losses);

struct DemoOptions {
    std::filesystem::path folder;
    /// The format version: 6 for DDNet; 4 if vanilla Teeworlds must be able to play the demos, too.
    int version = kFirstVersionWithSha256;
    bool messages = true;      ///< include chat, kills, broadcasts and similar messages
    bool show_secrets = false; ///< include whispers and chat commands with codes (/timeout, /load)
    bool of_server = false; ///< write demos like those that servers record, without a player's view
};

/// Writes the snapshots that each session's client received as playable demos: one demo for each
/// session and map. The file is created at the second snapshot, so that no demo is empty. It is
/// valid at any time. A session whose map is unknown gets no demo, because no client would play it.
/// Demos of 0.7 connections always have the version kSevenDemoVersion.
class DemoSink final : public record::RecordSink {
  public:
    /// `files` must outlive the sink; several sinks may share it.
    DemoSink(DemoOptions options, store::FileQueue& files)
        : options_{std::move(options)}, files_{&files} {}

    void on_record(const record::Record& record) override;

    /// Turns writing on or off. Turning it off ends all demos. While writing is off, the sink still
    /// collects the data that a demo needs when it starts in the middle of a game.
    void set_enabled(bool on);

    void end_demos();

    [[nodiscard]] const DemoLosses& losses() const { return losses_; }

  private:
    /// The most bytes of messages, such as vote options, stored until a session's demo starts.
    static constexpr std::size_t kMaxPendingBytes = std::size_t{256} << 10U;
    /// Collected chunks are passed to the file after this many ticks or bytes.
    static constexpr snapshot::Tick kFlushTicks = 25;
    static constexpr std::size_t kFlushBytes = std::size_t{16} << 10U;
    /// After the queue or disk was full, no new demo is started for this many ticks.
    static constexpr snapshot::Tick kRestartDelayTicks = 250;

    using Bytes = std::vector<std::byte>;

    struct OpenDemo {
        DemoEncoder encoder;
        DemoHeader header;
        std::shared_ptr<const std::vector<std::byte>> map;
        std::string name;
        std::optional<store::FileQueue::File> file{}; ///< nullopt before the second snapshot
        Bytes unflushed_chunks{};
        snapshot::Tick last_flush_tick = 0;
        std::uint64_t unflushed_snapshots = 0; ///< number of snapshots in `unflushed_chunks`
    };

    /// The messages before a demo's first snapshot.
    struct PendingMessages {
        std::vector<Bytes> list{};
        std::size_t bytes = 0;
        bool has_tuning = false;
    };

    /// The demo of a session, and the data with which its next demo starts.
    struct SessionDemo {
        std::optional<OpenDemo> demo{};
        std::optional<snapshot::Tick> given_up_at{}; ///< tick at which the disk or queue was full
        std::string map_name{};
        std::uint32_t map_crc = 0;
        std::optional<std::array<std::uint8_t, 32>> map_sha256{};
        std::shared_ptr<const std::vector<std::byte>> map{};
        PendingMessages pending{};
        Bytes tuning{};        ///< the payload of the last tuning message
        bool is_seven = false; ///< true if the connection is 0.7
        /// True if the session was counted in DemoLosses::sessions_without_map.
        bool is_map_missing = false;
        SevenDemoItems seven_items{};
    };

    void handle_record(const record::SessionRecord& record);
    void handle_record(const record::MessageRecord& record);
    void handle_record(const record::MapRecord& record);
    void handle_record(const record::SnapshotRecord& record);
    void handle_record(const record::FindingRecord& record);

    void open_demo(SessionDemo& session_demo, const record::SnapshotRecord& record) const;
    void add_message(SessionDemo& session_demo, std::span<const std::byte> payload);
    void flush_chunks(OpenDemo& demo);
    /// Completes the header and closes the file. Precondition: the demo has a file.
    void close_file(OpenDemo& demo);
    void end_demo(SessionDemo& session_demo);

    DemoOptions options_;
    bool is_enabled_ = true;
    store::FileQueue* files_;
    std::unordered_map<std::uint32_t, SessionDemo> session_demos_;
    /// Returns a snapshot's items as the demo stores them, valid until the next call of
    /// demo_items().
    [[nodiscard]] snapshot::SnapshotView demo_items(const SessionDemo& session_demo,
                                                    const record::SnapshotRecord& record);

    snapshot::Snapshot demo_items_; ///< result of demo_items(); a member to reuse its memory
    DemoLosses losses_;
};

/// Returns a text that can be a part of a file name. Replaces all characters of `text` by
/// underscores, except letters, digits, dots and dashes.
[[nodiscard]] std::string safe_file_name(std::string_view text);

} // namespace tw::demo
