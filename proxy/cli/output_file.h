#pragma once

#include "proxy/analyze/outcome.h"
#include "proxy/bus/collected_files.h"
#include "proxy/bus/collector.h"
#include "proxy/cli/flags.h"
#include "proxy/filter/expectation.h"
#include "proxy/filter/filter.h"
#include "proxy/record/stats.h"
#include "proxy/store/file_output.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace tw::cli {

inline constexpr std::string_view kCompressedSuffix = ".zst";

/// True if a file of this name is written compressed.
/// Errors: UsageError for the name of another compression format.
[[nodiscard]] bool is_compressed(const std::string& flag, std::string_view path);

/// Opens the file of any kind that a flag names, for uncompressed data ("-": standard output).
/// Returns null if the flag was not given. Errors: UsageError that names the flag.
[[nodiscard]] std::unique_ptr<store::OutputFile>
open_output_file(const std::string& flag, const std::string& path,
                 const store::RecordingFormat& format = store::record_line_format());

enum class FileType : std::uint8_t { capture, map, records, objects, picture, table, summary };

/// Checks that an existing file may be replaced: it must be empty, or begin like a file of this
/// type, compressed or not. A capture must be one by twscope, and a file of objects must be as
/// twscope wrote it, because people edit it.
/// Errors: UsageError that names the flag.
void check_replaceable(const std::string& flag, const std::string& path,
                       FileType type = FileType::records);

/// Returns the type of a regular file, compressed or not; nullopt if it is unknown.
[[nodiscard]] std::optional<FileType> find_file_type(const std::string& path);

/// Returns a text to append to an error, which says what a file is and which command reads it, such
/// as "; this is a capture; use 'twscope decode'". Empty if the type is unknown or is `wanted`.
[[nodiscard]] std::string file_type_hint(const std::string& path, FileType wanted);

/// Writes all buffered data, and prints on standard error how many records are missing. Returns
/// true if no record is missing. `what`: "record[s] [is|are]", or such words for other content.
[[nodiscard]] bool finish_output(const std::string& flag, store::OutputFile& file,
                                 std::string_view what = "record[s] [is|are]");

[[nodiscard]] UsageError make_open_error(const std::string& flag, const std::string& path,
                                         const std::system_error& error);

struct NamedOutput {
    std::string_view flag;
    const std::string& path; ///< empty if the flag was not given
};

/// Checks that no output is also an input or the output of another flag. Call this before opening
/// the outputs, because opening truncates them. Folders, pipes and devices may be named twice.
/// Errors: UsageError.
void check_distinct_files(const std::vector<std::string>& read,
                          const std::vector<NamedOutput>& written);

/// Like check_distinct_files(), and also checks that all outputs can be written.
/// Errors: UsageError.
void check_outputs(const std::vector<std::string>& read, const std::vector<NamedOutput>& written);

/// Checks that an output can be written. For a new file, tries to create a folder beside it, which
/// is removed again. Errors: UsageError.
void check_creatable(const NamedOutput& output);

/// Checks lines of records against --expect and --fail-on.
class RecordLineChecks {
  public:
    explicit RecordLineChecks(std::vector<filter::Expectation> expectations)
        : expectations_{std::move(expectations)} {}

    void check_line(std::string_view line);

    [[nodiscard]] analyze::Outcome outcome(const analyze::FindingsToFailOn& fail_on,
                                           double seconds) const;

  private:
    void count_record(std::string_view line);

    std::vector<filter::Expectation> expectations_;
    record::SessionStats totals_;
    std::uint32_t num_sessions_ = 0;
};

/// Writes collected records to files by server and hour in a folder, to one file, or to standard
/// output, and checks them.
class CollectedRecordOutput : public bus::BatchSink {
  public:
    /// If `output` is empty, records are only checked. `checks` has to outlive the object.
    /// Errors: UsageError.
    CollectedRecordOutput(const std::string& output, std::optional<filter::Filter> filter,
                          RecordLineChecks& checks);

    [[nodiscard]] std::string unconfirmed_batch() const override;
    [[nodiscard]] int write_batch(const std::string& batch,
                                  const std::vector<bus::CollectedRecord>& records) override;
    void confirm_batch() override;
    [[nodiscard]] int roll_back_batch() override;

    /// True if the reader of standard output is gone.
    [[nodiscard]] bool is_reader_gone() const { return stream_ && stream_->failed(); }

    /// Prints on standard error how many records the reader of standard output did not get. Returns
    /// true if no record is missing.
    [[nodiscard]] bool finish_stream() { return !stream_ || finish_output("--output", *stream_); }

  private:
    std::optional<filter::Filter> filter_;
    RecordLineChecks* checks_;
    bool has_folder_ = false; ///< writes a file for each server and hour
    std::string file_name_;   ///< name of the single file, without its folder
    bool is_compressed_ = false;
    std::unique_ptr<bus::CollectedFiles> files_;
    std::unique_ptr<store::FileOutput> stream_;  ///< standard output, a pipe or a device
    std::string batch_;                          ///< the unconfirmed batch; empty if none
    std::vector<std::string> unconfirmed_lines_; ///< lines of the unconfirmed batch
    std::uint64_t invalid_lines_ = 0; ///< lines of the unconfirmed batch that are not records
};

/// Returns the file name of a record: SERVER/2026-11-22T18Z.jsonl.zst, by its time. A missing
/// server or time becomes "other".
[[nodiscard]] std::string collected_file_name(const bus::CollectedRecord& record);

} // namespace tw::cli
