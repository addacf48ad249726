#pragma once

#include "proxy/capture/flight_recorder.h"
#include "proxy/demo/demo_sink.h"
#include "proxy/filter/expectation.h"
#include "proxy/filter/filter.h"
#include "proxy/inspect/session.h"
#include "proxy/pipeline/page_recordings.h"
#include "proxy/sink/console.h"
#include "proxy/sink/json_lines.h"
#include "proxy/sink/output.h"
#include "proxy/store/file_queue.h"
#include "proxy/web/page_feed.h"
#include "proxy/web/status_view.h"
#include "proxy/wire/message.h"
#include "proxy/wire/secrets.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tw::pipeline {

/// The snapshots that are written: the snapshots of each session, merged snapshots of all sessions
/// of a server ("worlds"), or both.
enum class ViewChoice : std::uint8_t { sessions, world, both };

/// Settings for inspecting traffic and writing records, from the command line.
struct Config {
    /// The mod's objects and messages; must outlive this object and its copies.
    const wire::ModDescription* mod = &wire::ModDescription::standard();
    inspect::Options inspect{}; ///< without the mod's tables, which make_inspect_options() adds
    wire::CommandNames shown_commands{}; ///< chat commands whose arguments are not secret
    /// Memory limit for sessions and maps.
    std::size_t memory_bytes = inspect::MemoryBudget::kDefaultBytes;
    bool counts_traffic = false; ///< true if traffic is counted by message and item type
    sink::JsonOptions json{};
    /// Limit of message records in bytes per session and second; 0: unlimited.
    std::uint64_t max_message_bytes = 0;
    bool limits_findings = false; ///< true if repeated findings are limited (FindingRateLimiter)
    std::optional<filter::Filter> filter{};         ///< selects the written records
    std::optional<filter::Filter> console_filter{}; ///< selects the records on the console
    /// Selects records. Only the datagrams of these records are written to the capture.
    std::optional<filter::Filter> capture_filter{};
    std::vector<filter::Expectation> expectations{};
    /// Key for pseudonyms of client addresses; empty: addresses are written unchanged.
    std::string pseudonym_key{};
    ViewChoice views = ViewChoice::sessions;
    std::optional<demo::DemoOptions> demos{};
    std::optional<capture::FlightRecorderOptions> flight{};
    std::optional<PageRecordingOptions> page_recordings{};

    [[nodiscard]] bool writes_worlds() const { return views != ViewChoice::sessions; }

    /// Returns the options for an inspector, with the mod's tables. This object must outlive the
    /// inspector.
    [[nodiscard]] inspect::Options make_inspect_options(const inspect::Observers& observers) const {
        inspect::Options options = inspect;
        options.objects = &mod->objects;
        options.described_messages = &mod->messages;
        options.shown_commands = &shown_commands;
        options.observers = &observers;
        return options;
    }
};

class WorldThread;

/// The outputs to which all workers write. An unused output is null. Outputs must outlive workers.
struct WorkerOutputs {
    unsigned num_workers = 1; ///< number of workers that share the outputs
    sink::Output* records = nullptr;
    sink::Output* capture = nullptr;           ///< receives datagrams
    store::FileQueue* files = nullptr;         ///< receives demos
    store::FileQueue* flight = nullptr;        ///< receives the files of the flight recorder
    PageRecordings* page_recordings = nullptr; ///< recordings that viewers of the page switch on
    sink::Console* console = nullptr;
    record::RecordSink* findings = nullptr; ///< receives all findings, to print them as text
    /// Receives the records of all sessions, whatever Config::views is.
    record::RecordSink* sessions = nullptr;
    web::PageFeed* feed = nullptr; ///< receives the data of the live page
    WorldThread* worlds = nullptr; ///< merges the sessions' snapshots
    /// Requests a full snapshot for a session. Returns false on failure.
    std::function<bool(std::uint32_t session)> request_full_snapshot{};
};

} // namespace tw::pipeline
