#pragma once

#include "proxy/sink/line_reader.h"
#include "proxy/sink/segment_names.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tw::cli {

/// Says on standard error what of a file could not be read, and how much could. Returns false for one that is
/// damaged: one that is cut short, as by a crash, is as whole as it can be.
[[nodiscard]] bool all_was_read(const std::string& path, const sink::LineReader& reader);

/// Says on standard error that the last of the lines has no end, and how many have.
void report_cut_line(const std::string& path, std::uint64_t lines);

/// Says on standard error how many lines of a file were left out because they are no records. Returns
/// whether there were none.
bool report_no_records(const std::string& path, std::uint64_t lines);

/// The files that recordings are read from: as they are named, and of a folder its segments in the
/// order in which they were begun.
class RecordsFiles {
  public:
    /// `from`: of a folder, segments that ended before this time are left out; empty: none are.
    /// Errors: UsageError for what is not there.
    explicit RecordsFiles(const std::vector<std::string>& paths, std::string_view from = {});

    [[nodiscard]] const std::vector<std::string>& files() const { return files_; }

    struct Use {
        std::function<void(const std::string& path)> begin;
        std::function<void(std::string_view line)> line;
        std::function<void(const sink::LineReader& reader)> end;
        std::function<void()> pause; ///< when there is nothing more for now
        /// Asked before each line: whether nobody wants the rest. The file at hand has no end then.
        std::function<bool()> enough = [] { return false; };
    };

    /// Reads all of them to their ends. Errors: UsageError for a file that cannot be opened.
    void read(const Use& use);
    /// Then waits for more: in the last file, in another one under its name, and in further segments of the same
    /// recording in a folder. Until `stopped`.
    void follow(const Use& use, const std::function<bool()>& stopped);

  private:
    void open(const std::string& path, const Use& use);
    void read_on(const Use& use);
    void close(const Use& use);
    [[nodiscard]] std::string next_file(const std::vector<sink::Segment>& segments) const;
    [[nodiscard]] bool replaced() const;
    void report_unfollowed(const std::vector<sink::Segment>& segments);

    std::vector<std::string> files_;
    std::string folder_;          ///< the last path, where it is one
    std::set<std::string> names_; ///< of the recordings in it
    std::string current_;
    std::unique_ptr<sink::LineReader> reader_;
};

/// Reads all lines of a recording, or of a folder with its segments, and says on standard error what of
/// it could not be read. Returns whether that was nothing. Errors: UsageError, as RecordsFiles.
[[nodiscard]] bool read_records(const std::string& path,
                                const std::function<void(std::string_view line)>& use);

} // namespace tw::cli
