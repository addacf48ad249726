#pragma once

#include "proxy/bus/collected_files.h"
#include "proxy/bus/collector.h"
#include "proxy/cli/line_checks.h"
#include "proxy/cli/output_file.h"
#include "proxy/filter/filter.h"
#include "proxy/sink/file_output.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tw::cli {

/// Where collected records go: to files of servers and hours in a folder, to one file, to standard
/// output, and to what they are held against.
class BatchOutput final : public bus::BatchSink {
  public:
    /// `output` empty: nowhere. `checks` has to outlive it. Errors: UsageError.
    BatchOutput(const std::string& output, std::optional<filter::Filter> filter,
                LineChecks& checks);

    [[nodiscard]] std::string unfinished() const override;
    [[nodiscard]] int write(const std::string& batch,
                            const std::vector<bus::Collected>& records) override;
    void keep() override;
    [[nodiscard]] int take_back() override;

    /// What reads standard output is gone.
    [[nodiscard]] bool failed() const { return stream_ && stream_->failed(); }

    /// Says on standard error what who reads did not get. Returns whether all is there.
    [[nodiscard]] bool finish() { return !stream_ || finish_records("--output", *stream_); }

  private:
    [[nodiscard]] std::string name_of(const bus::Collected& record) const;

    std::optional<filter::Filter> filter_;
    LineChecks* checks_;
    bool folder_ = false; ///< a file for each server and hour
    std::string file_;    ///< the one file's name in its folder
    bool compressed_ = false;
    std::unique_ptr<bus::CollectedFiles> files_;
    std::unique_ptr<sink::FileOutput> stream_;
    std::string batch_;                ///< of this process, which does not count yet; empty: none
    std::vector<std::string> pending_; ///< its lines
    std::uint64_t strangers_ = 0;      ///< of it, what is no record
};

/// The file of a record in a folder: SERVER/2026-11-22T18Z.jsonl.zst, by its time. What has neither server
/// nor time has "other" there.
[[nodiscard]] std::string collected_file_name(const bus::Collected& record);

} // namespace tw::cli
