#include "proxy/cli/record_feed.h"

#include "proxy/capture/capture_file.h"
#include "proxy/capture/capture_run.h"
#include "proxy/capture/demo_header.h"
#include "proxy/cli/capture_flags.h"
#include "proxy/cli/records_files.h"
#include "proxy/inspect/inspector.h"
#include "proxy/inspect/memory_budget.h"
#include "proxy/run/map_folders.h"
#include "proxy/sink/json_lines.h"
#include "proxy/sink/segment_names.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

namespace tw::cli {

namespace {

/// Cuts blocks into lines.
class Lines final : public sink::Output {
  public:
    explicit Lines(const std::function<void(std::string_view line)>& use) : use_{&use} {}

    void write(std::string_view block) override {
        while (!block.empty()) {
            const std::size_t end = block.find('\n');
            (*use_)(block.substr(0, end));
            block.remove_prefix(end == std::string_view::npos ? block.size() : end + 1);
        }
    }

  private:
    const std::function<void(std::string_view line)>* use_;
};

bool read_capture(const RecordsOrigin& origin, bool quiet,
                  const std::function<void(std::string_view line)>& use) {
    inspect::MemoryBudget memory{origin.memory_bytes};
    run::MapFolders maps{{}, {.memory = &memory}};
    CaptureFlags named;
    named.paths = {origin.path};
    capture::CaptureRun captures{named.files(), origin.servers};
    captures.set_quiet(quiet);
    Lines lines{use};
    sink::JsonLines json{{.raw = true, .objects = origin.objects}, lines};
    std::atomic<std::uint32_t> numbers{0};
    inspect::Inspector inspector{
        {.objects = origin.objects, .messages = false, .memory = &memory}, maps, json, numbers};
    captures.read(inspector);
    json.flush();
    return !captures.damaged();
}

bool read_recording(const RecordsOrigin& origin, bool quiet,
                    const std::function<void(std::string_view line)>& use) {
    bool whole = true;
    std::string current;
    RecordsFiles files{{origin.path}};
    files.read({.begin = [&](const std::string& path) { current = path; },
                .line = use,
                .end =
                    [&](const sink::LineReader& reader) {
                        whole = (quiet || all_was_read(current, reader)) && whole;
                    },
                .pause = [] {}});
    return whole;
}

} // namespace

sink::FileBegin look_at_begin(const std::string& path) {
    return {path, std::max(capture::kCaptureMagicSize, sink::demo::kMagic.size())};
}

bool holds_records(const std::string& path, const sink::FileBegin& begin) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) {
        const auto segments = sink::segments_in(path);
        return segments.empty() ||
               std::any_of(segments.begin(), segments.end(),
                           [](const sink::Segment& segment) { return !segment.is_capture(); });
    }
    const auto bytes = std::as_bytes(std::span{begin.bytes()});
    return !capture::looks_like_capture(bytes) && !capture::looks_like_demo(bytes);
}

bool read_lines(const RecordsOrigin& origin, bool quiet,
                const std::function<void(std::string_view line)>& use) {
    return holds_records(origin.path, look_at_begin(origin.path))
               ? read_recording(origin, quiet, use)
               : read_capture(origin, quiet, use);
}

RecordFeed::RecordFeed(RecordsOrigin origin)
    : origin_{std::move(origin)}, thread_{[this] { run(); }} {}

RecordFeed::~RecordFeed() {
    {
        const std::lock_guard lock{mutex_};
        unwanted_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void RecordFeed::run() {
    std::exception_ptr failure;
    bool whole = true;
    try {
        whole = read_lines(origin_, false, [this](std::string_view line) {
            gathered_.append(line);
            gathered_.push_back('\n');
            if (gathered_.size() >= kBlockBytes) {
                hand_over();
            }
        });
        hand_over();
    } catch (...) {
        failure = std::current_exception();
    }
    const std::lock_guard lock{mutex_};
    whole_ = whole;
    failure_ = failure;
    done_ = true;
    changed_.notify_all();
}

void RecordFeed::hand_over() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [this] { return blocks_.size() < kBlocks || unwanted_; });
    if (!unwanted_ && !gathered_.empty()) {
        blocks_.push_back(std::move(gathered_));
    }
    gathered_.clear();
    changed_.notify_all();
}

bool RecordFeed::fetch() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [this] { return !blocks_.empty() || done_; });
    if (blocks_.empty()) {
        if (failure_) {
            std::rethrow_exception(failure_);
        }
        return false;
    }
    block_ = std::move(blocks_.front());
    blocks_.pop_front();
    at_ = 0;
    changed_.notify_all();
    return true;
}

std::optional<std::string_view> RecordFeed::next() {
    if (at_ >= block_.size() && !fetch()) {
        return std::nullopt;
    }
    const std::size_t begin = at_;
    const std::size_t end = block_.find('\n', begin); // each line has one
    at_ = end + 1;
    return std::string_view{block_}.substr(begin, end - begin);
}

} // namespace tw::cli
