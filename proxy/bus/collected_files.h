#pragma once

#include "proxy/sink/disk.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace tw::bus {

/// Files that batches are appended to, each batch whole or not at all, whatever ends the process: what
/// a batch begins with stands in a journal before anything is written, and until the batch counts.
class CollectedFiles {
  public:
    /// The journal is a hidden file in this folder. One process at a time.
    /// Errors: throws std::system_error, also when another one is there.
    explicit CollectedFiles(std::filesystem::path folder, sink::Disk& disk = sink::system_disk());
    ~CollectedFiles();
    CollectedFiles(const CollectedFiles&) = delete;
    CollectedFiles& operator=(const CollectedFiles&) = delete;
    CollectedFiles(CollectedFiles&&) = delete;
    CollectedFiles& operator=(CollectedFiles&&) = delete;

    /// The batch that was not finished when the process before this one ended; empty: none.
    [[nodiscard]] const std::string& unfinished() const { return batch_; }

    /// Appends these texts to the files of these names in the folder; folders are made. Returns 0, or
    /// errno: then nothing is changed, or the batch is unfinished.
    [[nodiscard]] int append(const std::string& batch,
                             const std::map<std::string, std::string>& texts);

    /// The batch counts.
    void keep();
    /// It does not: takes it back. Returns 0, or errno: then something of it is there still, and it stays
    /// unfinished.
    [[nodiscard]] int take_back();

  private:
    void read_journal();
    [[nodiscard]] int write_journal();
    [[nodiscard]] int write(const std::string& name, std::string_view text);
    [[nodiscard]] int cut(const std::string& name, std::uint64_t size);

    std::filesystem::path folder_;
    sink::Disk* disk_;
    int journal_ = -1; ///< locked
    std::string batch_;
    std::map<std::string, std::uint64_t> sizes_; ///< of the files before the batch
};

} // namespace tw::bus
