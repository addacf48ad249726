#include "proxy/cli/batch_output.h"

#include "proxy/bus/subjects.h"
#include "proxy/filter/line_record.h"
#include "proxy/record/terminal_text.h"
#include "proxy/sink/zstd_frames.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace tw::cli {

namespace {

constexpr std::string_view kHour = "dddd-dd-ddTdd";

bool is_hour(std::string_view text) {
    return text.size() == kHour.size() &&
           std::equal(text.begin(), text.end(), kHour.begin(), [](char got, char shape) {
               return shape == 'd' ? got >= '0' && got <= '9' : got == shape;
           });
}

std::string compress(std::string_view text) {
    sink::FrameWriter frames;
    std::string out;
    frames.add(text, out);
    frames.end(out);
    return out;
}

} // namespace

std::string collected_file_name(const bus::Collected& record) {
    const auto head = filter::read_head(record.line);
    const std::string_view hour = head ? head->time.substr(0, kHour.size()) : std::string_view{};
    return fmt::format("{}/{}.jsonl.zst",
                       bus::is_subject_token(record.server) ? record.server : "other",
                       is_hour(hour) ? fmt::format("{}Z", hour) : "other");
}

BatchOutput::BatchOutput(const std::string& output, std::optional<filter::Filter> filter,
                         LineChecks& checks)
    : filter_{std::move(filter)}, checks_{&checks} {
    if (output.empty()) {
        return;
    }
    std::error_code ignored;
    const std::filesystem::path path{output};
    folder_ = output.ends_with('/') || std::filesystem::is_directory(path, ignored);
    const bool special = std::filesystem::exists(path, ignored) && !folder_ &&
                         !std::filesystem::is_regular_file(path, ignored);
    try {
        if (output == "-" || special) {
            stream_ = std::make_unique<sink::FileOutput>(output);
            return;
        }
        if (folder_) {
            files_ = std::make_unique<bus::CollectedFiles>(path);
            return;
        }
        file_ = path.filename().string();
        compressed_ = output.ends_with(kCompressed);
        files_ = std::make_unique<bus::CollectedFiles>(
            path.has_parent_path() ? path.parent_path() : std::filesystem::path{"."});
    } catch (const std::system_error& error) {
        if (error.code().value() == EBUSY) {
            throw UsageError{fmt::format(
                "--output {}: another collector is writing to this folder; give each its own",
                output)};
        }
        throw cannot_open("--output", output, error);
    }
}

std::string BatchOutput::unfinished() const {
    return batch_.empty() && files_ ? files_->unfinished() : batch_;
}

std::string BatchOutput::name_of(const bus::Collected& record) const {
    return folder_ ? collected_file_name(record) : file_;
}

int BatchOutput::write(const std::string& batch, const std::vector<bus::Collected>& records) {
    pending_.clear();
    std::map<std::string, std::string> texts;
    strangers_ = 0;
    for (const bus::Collected& collected : records) {
        if (!filter::is_sound_record(collected.line)) {
            ++strangers_;
            continue;
        }
        if (filter_ && !filter::matches_line(*filter_, collected.line)) {
            continue;
        }
        std::string& line = pending_.emplace_back();
        record::append_terminal_json(collected.line, line); // somebody else may have written it
        if (files_) {
            texts[name_of(collected)].append(line).push_back('\n');
        }
    }
    batch_ = batch;
    if (!files_ || texts.empty()) {
        return 0;
    }
    if (folder_ || compressed_) {
        for (auto& [name, text] : texts) {
            text = compress(text);
        }
    }
    const int error = files_->append(batch, texts);
    if (error != 0) {
        pending_.clear();
        batch_.clear(); // what of it is in the files they know
    }
    return error;
}

/// Nothing can be taken back from who reads standard output: it gets what counts.
void BatchOutput::keep() {
    if (files_) {
        files_->keep();
    }
    std::string block;
    for (const std::string& line : pending_) {
        checks_->look_at(line);
        if (stream_) {
            block.append(line).push_back('\n');
        }
    }
    if (stream_) {
        stream_->write(block);
    }
    pending_.clear();
    batch_.clear();
    if (strangers_ != 0) {
        spdlog::warn(
            "skipped {} messages that are not records: something else publishes to this stream",
            strangers_);
    }
}

int BatchOutput::take_back() {
    const int error = files_ ? files_->take_back() : 0;
    if (error == 0) {
        pending_.clear();
        batch_.clear();
    }
    return error;
}

} // namespace tw::cli
