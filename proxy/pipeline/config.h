#pragma once

#include "proxy/filter/expectation.h"
#include "proxy/filter/filter.h"
#include "proxy/inspect/session.h"
#include "proxy/pipeline/page_recordings.h"
#include "proxy/sink/console.h"
#include "proxy/sink/demo_sink.h"
#include "proxy/sink/file_queue.h"
#include "proxy/sink/flight_recorder.h"
#include "proxy/sink/json_lines.h"
#include "proxy/sink/output.h"
#include "proxy/web/board.h"
#include "proxy/web/feed.h"
#include "proxy/wire/message.h"
#include "proxy/wire/secrets.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tw::pipeline {

/// The snapshots that are written: each session's own, the merged worlds, or both.
enum class ViewChoice : std::uint8_t { sessions, world, both };

/// How traffic is inspected, and what is written about it. The command line fills it; every part of
/// a run reads its own members.
struct Config {
    /// The mod's objects and messages; must outlive the run.
    const wire::ModDescription* mod = &wire::ModDescription::standard();
    inspect::Options inspect{};          ///< without the mod's tables, which inspection() adds
    wire::CommandNames shown_commands{}; ///< chat commands whose arguments are not secret
    /// Limit for sessions and maps.
    std::size_t memory_bytes = inspect::MemoryBudget::kDefaultBytes;
    bool stats = false; ///< count every byte of traffic by message and item type
    sink::JsonOptions json{};
    /// Limit of message records per session and second; 0: unlimited.
    std::uint64_t message_bytes = 0;
    bool limits_findings = false;                   ///< limit repeated findings (FindingLimit)
    std::optional<filter::Filter> filter{};         ///< for written records
    std::optional<filter::Filter> console_filter{}; ///< for the console
    /// Selects datagrams of the capture by their records.
    std::optional<filter::Filter> capture_filter{};
    std::vector<filter::Expectation> expectations{};
    std::string pseudonym_key{}; ///< empty: client addresses are written unchanged
    ViewChoice views = ViewChoice::sessions;
    std::optional<sink::DemoOptions> demos{};
    std::optional<sink::FlightOptions> flight{};
    std::optional<PageRecordingOptions> page_recordings{};

    [[nodiscard]] bool makes_worlds() const { return views != ViewChoice::sessions; }

    /// The options of an inspector, with the mod's tables. The configuration must outlive it.
    [[nodiscard]] inspect::Options inspection(const inspect::Observers& observers) const {
        inspect::Options options = inspect;
        options.objects = &mod->objects;
        options.described = &mod->messages;
        options.shown_commands = &shown_commands;
        options.observers = &observers;
        return options;
    }
};

class WorldRun;

/// The open outputs of a run; null: there is none. They must outlive the workers.
struct Outputs {
    unsigned workers = 1; ///< the number of workers that share them
    sink::Output* records = nullptr;
    sink::Output* capture = nullptr;           ///< datagrams
    sink::FileQueue* files = nullptr;          ///< demos
    sink::FileQueue* flight = nullptr;         ///< files of the flight recorder
    PageRecordings* page_recordings = nullptr; ///< recordings that the page switches on
    sink::Console* console = nullptr;
    record::RecordSink* findings = nullptr; ///< findings of sessions and worlds as text
    record::RecordSink* sessions = nullptr; ///< gets all records of sessions, whatever `views` is
    web::StatusBoard* board = nullptr;      ///< state for the live page
    web::PageFeed* feed = nullptr;          ///< data for the page's viewers
    WorldRun* worlds = nullptr;             ///< makes merged worlds
    /// Requests a full snapshot for a session; returns false on failure.
    std::function<bool(std::uint32_t session)> resync{};
};

} // namespace tw::pipeline
