#pragma once

#include "proxy/sink/file_queue.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace tw::bus {

/// Appends batches to files. Each batch is appended completely or not at all, even if the process is
/// killed: until a batch is confirmed, a journal holds the sizes that the files had before it.
class CollectedFiles {
  public:
    /// The journal is a hidden file in this folder. Only one process at a time may use it.
    /// Errors: throws std::system_error, also if another process uses the journal.
    explicit CollectedFiles(std::filesystem::path folder, sink::Disk& disk = sink::system_disk());
    ~CollectedFiles();
    CollectedFiles(const CollectedFiles&) = delete;
    CollectedFiles& operator=(const CollectedFiles&) = delete;

    /// The unconfirmed batch of an earlier process; empty if there is none.
    [[nodiscard]] const std::string& unconfirmed_batch() const { return batch_; }

    /// Appends the texts to the files with these names and creates missing folders. Returns 0 or
    /// errno. After an error, either nothing was changed or the batch is left unconfirmed.
    [[nodiscard]] int append(const std::string& batch,
                             const std::map<std::string, std::string>& texts);

    /// Confirms the batch, so that it stays in the files.
    void confirm_batch();
    /// Removes the batch from the files. Returns 0 or errno. After an error, parts of the batch may
    /// remain, and it stays unconfirmed.
    [[nodiscard]] int roll_back_batch();

  private:
    void read_journal();
    [[nodiscard]] int write_journal();
    [[nodiscard]] int write(const std::string& name, std::string_view text);
    [[nodiscard]] int truncate_file(const std::string& name, std::uint64_t size);

    std::filesystem::path folder_;
    sink::Disk* disk_;
    int journal_ = -1; ///< descriptor of the journal file, which is locked
    std::string batch_;
    std::map<std::string, std::uint64_t> sizes_; ///< size of each file before the batch
};

} // namespace tw::bus
