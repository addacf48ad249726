#include "proxy/pipeline/page_recordings.h"

#include "proxy/base/clock.h"
#include "proxy/base/log.h"
#include "proxy/capture/pcapng.h"
#include "proxy/filter/filter.h"
#include "proxy/filter/line_record.h"
#include "proxy/record/json.h"
#include "proxy/record/terminal_text.h"
#include "proxy/sink/json_lines.h"

#include <algorithm>
#include <cctype>
#include <ctime>
#include <system_error>
#include <variant>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

namespace tw::pipeline {

namespace {

/// Returns whether a file with this name can be a recording. Such a name contains no path.
bool is_recording_file_name(std::string_view name) {
    constexpr std::size_t kLongest = 255;
    const auto is_safe = [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
    };
    return name.size() <= kLongest && !name.starts_with('.') &&
           (name.ends_with(".pcapng") || name.ends_with(".demo")) &&
           std::ranges::all_of(name, is_safe);
}

/// Calls `use` with the name and status of each recording.
template <typename Use>
void for_each_recording(const std::filesystem::path& folder, const Use& use) {
    std::error_code error;
    std::filesystem::directory_iterator entry{folder, error};
    for (std::size_t entries = 0; !error && entry != std::filesystem::directory_iterator{} &&
                                  entries < RecordingFolders::kMaxEntries;
         ++entries) {
        struct stat found {};

        const std::string name = entry->path().filename();
        if (is_recording_file_name(name) && ::lstat(entry->path().c_str(), &found) == 0 &&
            S_ISREG(found.st_mode)) {
            use(name, found);
        }
        entry.increment(error);
    }
}

} // namespace

RecordingFolders::RecordingFolders(const std::vector<std::filesystem::path>& folders) {
    for (const auto& folder : folders) {
        const bool known = std::ranges::any_of(folders_, [&](const auto& other) {
            std::error_code ignored;
            return std::filesystem::equivalent(folder, other, ignored);
        });
        if (!known) {
            folders_.push_back(folder);
        }
    }
}

std::vector<web::RecordedFile> RecordingFolders::list_recordings() const {
    constexpr std::int64_t kMsPerSecond = 1000;
    constexpr std::int64_t kNanosecondsPerMs = 1'000'000;
    std::vector<web::RecordedFile> files;
    for (const auto& folder : folders_) {
        for_each_recording(folder, [&](std::string_view name, const struct stat& found) {
            files.push_back({.name = std::string{name},
                             .bytes = static_cast<std::uint64_t>(found.st_size),
                             .time_ms = found.st_mtim.tv_sec * kMsPerSecond +
                                        found.st_mtim.tv_nsec / kNanosecondsPerMs});
        });
    }
    std::ranges::sort(files, [](const auto& left, const auto& right) {
        return std::tie(right.time_ms, left.name) < std::tie(left.time_ms, right.name);
    });
    files.resize(std::min(files.size(), kMaxListedRecordings));
    return files;
}

std::shared_ptr<const web::ServedFile>
RecordingFolders::open_recording(std::string_view name) const {
    if (!is_recording_file_name(name)) {
        return nullptr;
    }
    for (const auto& folder : folders_) {
        base::UniqueFd file{
            ::open((folder / name).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};

        struct stat found {};

        if (file.valid() && ::fstat(file.get(), &found) == 0 && S_ISREG(found.st_mode)) {
            return std::make_shared<web::ServedFile>(web::ServedFile{
                .file = std::move(file), .bytes = static_cast<std::uint64_t>(found.st_size)});
        }
    }
    return nullptr;
}

std::uint64_t recording_folder_bytes(const std::filesystem::path& folder) {
    std::uint64_t bytes = 0;
    for_each_recording(folder, [&](std::string_view /*name*/, const struct stat& found) {
        bytes += static_cast<std::uint64_t>(found.st_size);
    });
    return bytes;
}

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kMillisecond = 1'000'000;

std::string capture_file_name(record::Timestamp now) {
    return fmt::format("capture-{}.pcapng",
                       base::format_utc(now / kSecond, base::kFileNameTimeFormat));
}

} // namespace

PageRecordings::PageRecordings(PageRecordingOptions options, std::uint64_t max_bytes,
                               std::atomic<std::uint64_t>* progress)
    : options_{std::move(options)},
      max_bytes_{max_bytes}, files_{store::FileQueue::FullQueuePolicy::refuse,
                                    store::FileQueue::kMaxQueueBytes, progress} {}

std::optional<std::string> PageRecordings::refusal_reason(web::RecordingKind kind) const {
    if (kind == web::RecordingKind::capture && !options_.allows_captures) {
        return "a capture contains passwords and whispers, and this run may not show secrets";
    }
    if (recording_folder_bytes(options_.demos.folder) >= max_bytes_) {
        return fmt::format("the recordings in {} take {} MiB or more; move some away first",
                           options_.demos.folder.string(), max_bytes_ >> 20U);
    }
    return std::nullopt;
}

tl::expected<void, std::string> PageRecordings::switch_recording(web::RecordingKind kind, bool on) {
    const std::lock_guard lock{mutex_};
    const bool is_on = kind == web::RecordingKind::capture ? capture_since_ms_.has_value()
                                                           : demos_since_ms_.has_value();
    if (is_on == on) {
        return {};
    }
    if (auto reason = on ? refusal_reason(kind) : std::nullopt) {
        return tl::unexpected{*std::move(reason)};
    }
    if (on) {
        stop_reason_.clear();
    }
    if (kind == web::RecordingKind::demos) {
        switch_demos(on);
    } else {
        switch_capture(on);
        if (on && !capture_since_ms_) {
            return tl::unexpected{std::string{"the disk is too slow; try again"}};
        }
    }
    return {};
}

void PageRecordings::switch_demos(bool on) {
    demos_since_ms_ = on ? std::optional{base::now_utc() / kMillisecond} : std::nullopt;
    log::info("demos from the page: {}", on ? "on" : "off");
}

void PageRecordings::switch_capture(bool on) {
    if (on) {
        const auto now = base::now_utc();
        const auto file = files_.create(options_.demos.folder / capture_file_name(now),
                                        capture::CaptureEncoder::encode_start("from the page"),
                                        store::FileQueue::AllowedReaders::owner);
        if (!file) {
            return;
        }
        capture_ = std::make_shared<const Capture>(files_, *file);
        capture_since_ms_ = now / kMillisecond;
    } else {
        capture_.reset();
        capture_since_ms_.reset();
    }
    log::info("capture from the page: {}", on ? "on" : "off");
}

web::PageRecordingState PageRecordings::state() const {
    const std::lock_guard lock{mutex_};
    return {.allows_captures = options_.allows_captures,
            .capture_since_ms = capture_since_ms_,
            .demos_since_ms = demos_since_ms_,
            .lost = lost_blocks_.load(std::memory_order_relaxed) + files_.num_lost_blocks(),
            .stop_reason = stop_reason_};
}

void PageRecordings::stop_all_recordings(std::string reason) {
    if (!capture_since_ms_ && !demos_since_ms_) {
        return;
    }
    if (capture_since_ms_) {
        switch_capture(false);
    }
    if (demos_since_ms_) {
        switch_demos(false);
    }
    stop_reason_ = std::move(reason);
    log::error("recording from the page stopped: {}; forwarding continues", stop_reason_);
}

void PageRecordings::stop_after_write_error() {
    const std::lock_guard lock{mutex_};
    while (auto complaint = files_.take_error_text()) {
        log::error("not written: {}; forwarding continues", *complaint);
        stop_all_recordings(*std::move(complaint));
    }
}

void PageRecordings::stop_if_failed_or_full() {
    stop_after_write_error();
    const std::lock_guard lock{mutex_};
    if ((capture_since_ms_ || demos_since_ms_) &&
        recording_folder_bytes(options_.demos.folder) >= max_bytes_) {
        stop_all_recordings(fmt::format("the recordings in {} take {} MiB",
                                        options_.demos.folder.string(), max_bytes_ >> 20U));
    }
}

PageRecordings::ActiveRecordings PageRecordings::active_recordings() const {
    const std::lock_guard lock{mutex_};
    return {.capture = capture_, .records_demos = demos_since_ms_.has_value()};
}

void PageRecordings::write_queued_data() {
    capture_.reset();
    files_.finish_writing();
    while (const auto complaint = files_.take_error_text()) {
        log::error("not written: {}", *complaint);
    }
    if (const auto lost = state().lost; lost != 0) {
        log::warn("recordings from the page lack {}",
                  record::count_with_noun(lost, "datagram[s], snapshot[s] [or|and] block[s]"));
    }
}

PageRecorder::PageRecorder(PageRecordings& recordings)
    : recordings_{&recordings}, demos_{recordings.options().demos, recordings.file_queue()},
      block_buffer_{[this](std::span<const std::byte> blocks) {
          return recordings_->file_queue().append(capture_->file, {blocks.begin(), blocks.end()});
      }} {
    demos_.set_enabled(false);
}

void PageRecorder::on_record(const record::Record& record) {
    demos_.on_record(record);
    if (capture_ || std::holds_alternative<const record::SessionRecord*>(record)) {
        block_buffer_.encoder().on_record(record);
    }
}

void PageRecorder::on_datagram_end() {
    if (capture_) {
        block_buffer_.end_datagram();
    }
}

void PageRecorder::end_capture(record::Timestamp now) {
    block_buffer_.flush_with_comments(now);
    capture_.reset();
}

void PageRecorder::update_recordings(record::Timestamp now) {
    const PageRecordings::ActiveRecordings active = recordings_->active_recordings();
    if (active.records_demos != is_recording_demos_) {
        is_recording_demos_ = active.records_demos;
        demos_.set_enabled(is_recording_demos_);
    }
    if (capture_ && active.capture != capture_) {
        end_capture(now);
    }
    if (active.capture && !capture_) {
        capture_ = active.capture;
        block_buffer_.discard_comments(); // drops comments from before this capture
        block_buffer_.encoder().on_new_file();
    }
    if (capture_) {
        block_buffer_.flush();
    }
    const std::uint64_t unwritten = demos_.losses().num_unwritten_chunks();
    const std::uint64_t lost = block_buffer_.take_lost_count() + unwritten -
                               std::exchange(counted_demo_losses_, unwritten);
    if (lost != 0) {
        recordings_->count_lost_blocks(lost);
    }
}

void PageRecorder::end_recordings(record::Timestamp now) {
    update_recordings(now);
    demos_.end_demos();
    if (capture_) {
        end_capture(now);
    }
}

namespace json = boost::json;

namespace {

/// Returns the possible values of each key that has a fixed set of values.
json::object key_values_json(filter::KeyScope scope, filter::ModTypes described) {
    json::object words;
    for (const std::string& name : filter::all_keys(scope, described)) {
        const auto key = filter::find_key(scope, name, described);
        const auto known =
            key ? filter::possible_words(*key, described) : std::vector<std::string_view>{};
        if (!known.empty()) {
            words[name] = json::array(known.begin(), known.end());
        }
    }
    return words;
}

} // namespace

tl::expected<web::LineFilter, web::InputError>
RecordPageData::make_filter(const std::string& text) const {
    auto filter = filter::LineFilter::parse(text, {.described = filter::types_of_mod(*mod_)});
    if (!filter) {
        return tl::unexpected{web::InputError{.message = std::move(filter.error().message),
                                              .offset = filter.error().offset}};
    }
    return [filter = std::make_shared<filter::LineFilter>(*std::move(filter))](
               std::string_view line) { return filter->matches(line); };
}

std::string RecordPageData::filter_keys_json() const {
    const filter::ModTypes own = filter::types_of_mod(*mod_);
    const auto records = filter::all_keys(filter::KeyScope::record, own);
    const auto items = filter::all_keys(filter::KeyScope::item, own);
    const auto types = filter::item_type_names(own);
    return record::json_text(
               json::object{{"v", 1},
                            {"keys", json::array(records.begin(), records.end())},
                            {"item_keys", json::array(items.begin(), items.end())},
                            {"item_types", json::array(types.begin(), types.end())},
                            {"words", key_values_json(filter::KeyScope::record, own)},
                            {"item_words", key_values_json(filter::KeyScope::item, own)}}) +
           '\n';
}

std::string RecordPageData::snapshot_line(const web::InspectedSnapshot& seen,
                                          const snapshot::SnapshotView& items) const {
    auto physics = map_of_session(seen.session).physics;
    record::ItemTypes types{objects()};
    types.learn_types(items);
    const bool has_map = physics != nullptr;
    const record::TileMap tile_map{std::move(physics)};
    const record::SnapshotRecord record{
        .head = {.time = seen.time, .session = seen.session, .direction = wire::Direction::s2c},
        .tick = seen.tick,
        .delta_tick = seen.delta_tick,
        .crc_wanted = seen.crc_wanted,
        .crc_got = seen.crc_got,
        .bytes = seen.bytes,
        .parts = seen.parts,
        .rebuilt = seen.rebuilt,
        .items = items,
        .types = &types,
        .tile_map = has_map ? &tile_map : nullptr};
    return sink::json_line(&record, {.items = sink::ItemChoice::all, .objects = &objects()});
}

} // namespace tw::pipeline
