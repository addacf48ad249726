#pragma once

#include "proxy/analyze/outcome.h"
#include "proxy/bus/collector.h"
#include "proxy/cli/settings.h"
#include "proxy/filter/expectation.h"
#include "proxy/filter/filter.h"
#include "proxy/record/stats.h"
#include "proxy/sink/file_output.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace tw::cli {

/// What the name of a compressed file ends in.
inline constexpr std::string_view kCompressed = ".zst";

/// Whether a file of this name is written compressed. Errors: UsageError for a name that promises another
/// compression.
[[nodiscard]] bool is_compressed(const std::string& flag, std::string_view path);

/// Of what is written at once, and not as it happens, a frame holds this much: a disk that becomes full costs the last
/// one. Smaller ones would compress less well.
inline constexpr std::uint64_t kOfflineFrameText = std::uint64_t{4} << 20U;

/// Opens the file that a flag names ("-": standard output); nothing when the flag was not given.
/// Errors: UsageError that names the flag.
void open_output_file(const std::string& flag, const std::string& path,
                      std::optional<sink::FileOutput>& file);

/// The same for a file of any kind, whose text goes there as it is.
[[nodiscard]] std::unique_ptr<sink::OutputFile>
open_plain_output(const std::string& flag, const std::string& path,
                  const sink::Framing& units = sink::record_lines());

/// The same for records; a name that ends in .zst is compressed. What was in the file is gone.
[[nodiscard]] std::unique_ptr<sink::OutputFile> open_records_output(const std::string& flag,
                                                                    const std::string& path);

/// Writes what is held back, and says on standard error how many "records" are missing. Returns whether all is there.
[[nodiscard]] bool finish_records(const std::string& flag, sink::OutputFile& file,
                                  std::string_view what = "records");

/// The complaint about a file that cannot be opened.
[[nodiscard]] UsageError cannot_open(const std::string& flag, const std::string& path,
                                     const std::system_error& error);

/// A file that a flag names.
struct NamedOutput {
    std::string_view flag;
    const std::string& path; ///< empty: the flag was not given
};

/// To be called before any of them is opened, which empties it. Folders, pipes and devices may be named twice.
/// Errors: UsageError for what is also read, or written by another flag.
void keep_apart(const std::vector<std::string>& read, const std::vector<NamedOutput>& written);

/// The same. Errors: UsageError also for what cannot be written.
void check_outputs(const std::vector<std::string>& read, const std::vector<NamedOutput>& written);

/// What a run of written records is held against: expectations and findings.
class LineChecks {
  public:
    explicit LineChecks(std::vector<filter::Expectation> expectations)
        : expectations_{std::move(expectations)} {}

    void look_at(std::string_view line);

    [[nodiscard]] analyze::Outcome outcome(const analyze::FailOn& fail_on, double seconds) const;

  private:
    void count(std::string_view line);

    std::vector<filter::Expectation> expectations_;
    record::SessionStats totals_;
    std::uint32_t sessions_ = 0;
};

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
