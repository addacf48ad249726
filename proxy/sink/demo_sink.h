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

/// What vanilla Teeworlds 0.6 takes of a demo. It checks little: a client's number beyond its own
/// limit is an index into its memory.
namespace tw::sink {

inline constexpr std::int32_t kVanillaClients = 16;

/// Copies the items that vanilla knows: none that go by a UUID, and none of clients it has no room
/// for. A field that names such a client (who is hooked, watched, or carries a flag) says -1.
void keep_vanilla_items(const snapshot::SnapshotView& items, snapshot::Snapshot& out);

/// Whether vanilla knows the message, and every client it names.
[[nodiscard]] bool is_vanilla_message(const record::MessageRecord& message);

/// What items take of a snapshot.
struct DemoRoom {
    std::size_t items = 0;
    std::size_t bytes = 0;
};

/// What clients of 0.7 put into each snapshot of a demo: who plays, how the game goes and how it is
/// tuned. They are told by messages, and a player that seeks would miss these.
class SevenDemoItems {
  public:
    /// Another map, or another connection.
    void clear() { *this = {}; }

    void on_message(const record::MessageRecord& record);

    /// Whether such items of a snapshot count: those of a demo do, and no server sends them.
    enum class Theirs : bool { left_out, taken };

    /// The items of a snapshot with them. `roster`: null, or who plays, where no message told more.
    void add(const snapshot::SnapshotView& items, const record::Roster* roster,
             snapshot::Snapshot& out, Theirs theirs = Theirs::left_out) const;

    /// What they take where no message told of anybody.
    [[nodiscard]] static DemoRoom room_of(const record::Roster* roster);

  private:
    static constexpr std::uint16_t kClientInfo = 13; ///< de_client_info, and so on
    static constexpr std::uint16_t kGameInfo = 14;
    static constexpr std::uint16_t kTuneParams = 15;
    static constexpr std::size_t kTeam = 1; ///< in a de_client_info
    static constexpr std::size_t kName = 2;
    static constexpr std::size_t kCountry = 9;
    static constexpr std::size_t kSkinPartNames = 10;
    static constexpr std::size_t kSkinPartInts = 6; ///< of each
    static constexpr std::size_t kSkinParts = 6;

    using ClientInfo = std::array<std::int32_t, snapshot::kSevenAgreedSizes[kClientInfo]>;
    using GameInfo = std::array<std::int32_t, snapshot::kSevenAgreedSizes[kGameInfo]>;
    using TuneParams = std::array<std::int32_t, snapshot::kSevenAgreedSizes[kTuneParams]>;

    /// What a demo that is read says of the game, where no message told it.
    void take_from(const snapshot::ItemView& item);
    /// One of whom nothing is told.
    [[nodiscard]] static ClientInfo unknown_client();
    void add_own(const record::Roster* roster, snapshot::Snapshot& out) const;

    std::map<std::uint16_t, ClientInfo> clients_; ///< by client id, below Roster::kMaxClients
    std::optional<GameInfo> game_;
    std::optional<TuneParams> tuning_;
};

/// What demos could not hold.
struct DemoLosses {
    std::uint64_t snapshots = 0;       ///< too large, or no room where they wait to be written
    std::uint64_t large_snapshots = 0; ///< those that were too large
    std::uint64_t late = 0;            ///< snapshots that came behind a younger one
    std::uint64_t messages = 0;        ///< too large, or too many before the first snapshot
    std::uint64_t large_messages = 0;  ///< those that were too large
    std::uint64_t mapless = 0;         ///< sessions of which nobody said what map they are on
    std::uint64_t single = 0; ///< stays on a map with one snapshot: no client plays such a demo

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

/// What demos of worlds could not hold. What the demo's protocol has no place for is not missing.
struct WorldDemoLosses {
    std::uint64_t items_over_limit = 0; ///< beyond what a snapshot can be
    std::uint64_t ticks_over_limit = 0; ///< that lack some of those
    std::uint64_t items_without_id = 0; ///< of players for whom no id is free
    std::uint64_t ticks_without_id = 0;
    std::uint64_t worlds = 0; ///< of servers beyond those that may have demos at one time
    std::uint64_t messages_without_id = 0; ///< about such players
    std::uint64_t messages_over_limit = 0; ///< too many at once
    DemoLosses demos{};
};

/// A sentence for people about each kind of loss that there was.
[[nodiscard]] std::vector<std::string> sentences_of(const DemoLosses& losses);
/// Without those of `demos`.
[[nodiscard]] std::vector<std::string> sentences_of(const WorldDemoLosses& losses);

struct DemoOptions {
    std::filesystem::path folder;
    int version = demo::kSha256Version; ///< 6 for DDNet, 4 for vanilla, too
    bool messages = true;               ///< chat, kills, broadcasts and the like
    bool show_secrets = false;          ///< messages with whispers and codes, too
    bool of_server = false;             ///< as servers record them: nobody's view
};

/// Writes what each session's client was shown as demos that the game plays: one for each session
/// and map. A demo begins with its second snapshot, so that none is empty, and is whole at any time.
/// Where nobody said which map it is, there is none: no client would play it.
/// Those of connections of 0.7 are of the version that its client plays, whatever is asked for.
class DemoSink final : public record::RecordSink {
  public:
    /// `files` has to outlive it, and may serve several.
    DemoSink(DemoOptions options, FileQueue& files)
        : options_{std::move(options)}, files_{&files} {}

    void on_record(const record::Record& record) override;

    /// Off, it ends every demo, writes none, and keeps in mind what one takes that begins in the middle
    /// of a game.
    void set_on(bool on);

    /// Ends every demo.
    void finish();

    [[nodiscard]] const DemoLosses& losses() const { return losses_; }

  private:
    /// What came before the first snapshot is kept up to here: vote options, settings, what was
    /// said.
    static constexpr std::size_t kMaxPendingBytes = std::size_t{256} << 10U;
    /// What is gathered goes to the file after so many ticks, or bytes.
    static constexpr snapshot::Tick kFlushTicks = 25;
    static constexpr std::size_t kFlushBytes = std::size_t{16} << 10U;
    /// A queue or a disk that is full is not asked again before: the next demo begins then.
    static constexpr snapshot::Tick kPause = 250;

    using Bytes = std::vector<std::byte>;

    /// A demo being written.
    struct Recording {
        DemoEncoder encoder;
        demo::Header header;
        std::shared_ptr<const std::vector<std::byte>> map;
        std::string name;
        std::optional<FileQueue::File> file{}; ///< none before its second snapshot
        Bytes gathered{};
        snapshot::Tick flushed = 0;
        std::uint64_t waiting = 0; ///< snapshots in `gathered`
    };

    /// A session's.
    struct Tape {
        std::optional<Recording> recording{};
        std::optional<snapshot::Tick> paused{}; ///< since then
        std::string map_name{};
        std::uint32_t map_crc = 0;
        std::optional<std::array<std::uint8_t, 32>> map_sha256{};
        std::shared_ptr<const std::vector<std::byte>> map{};
        std::vector<Bytes> pending{}; ///< messages before the first snapshot
        std::size_t pending_bytes = 0;
        bool pending_tuning = false; ///< one of them is
        Bytes tuning{};              ///< the last one
        bool seven = false;          ///< of a connection of 0.7
        bool mapless = false;        ///< and counted as such
        SevenDemoItems seven_items{};
    };

    void take(const record::SessionRecord& record);
    void take(const record::MessageRecord& record);
    void take(const record::MapRecord& record);
    void take(const record::SnapshotRecord& record);
    void take(const record::FindingRecord& record);

    void begin(Tape& tape, const record::SnapshotRecord& record) const;
    void add_message(Tape& tape, std::span<const std::byte> payload);
    void flush(Recording& recording);
    /// Precondition: it has a file.
    void close(Recording& recording);
    void end(Tape& tape);

    DemoOptions options_;
    bool on_ = true;
    FileQueue* files_;
    std::unordered_map<std::uint32_t, Tape> tapes_;
    /// The items of a snapshot as a demo has them; live until the next call.
    [[nodiscard]] snapshot::SnapshotView items_for(const Tape& tape,
                                                   const record::SnapshotRecord& record);

    snapshot::Snapshot changed_; ///< kept for its memory
    DemoLosses losses_;
};

/// A text as part of a file's name: of letters, digits, dots, dashes and underscores.
[[nodiscard]] std::string safe_file_name(std::string_view text);

} // namespace tw::sink
