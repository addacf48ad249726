#pragma once

#include "proxy/record/records.h"
#include "proxy/sink/demo_encoder.h"
#include "proxy/sink/demo_losses.h"
#include "proxy/sink/demo_seven.h"
#include "proxy/sink/file_queue.h"
#include "snapshot/snapshot.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace tw::sink {

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
