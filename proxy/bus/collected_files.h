#pragma once

#include "proxy/base/descriptors.h"
#include "proxy/store/file_queue.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace tw::bus {

/// Appends batches of texts to files. Each batch is appended completely or not at all, even if the
/// process is killed. To make this possible, a journal stores the sizes that the files had before
/// the batch, until the batch is confirmed.
class CollectedFiles {
  public:
    /// Opens the journal, a hidden file in `folder`. Only one process at a time may use the
    /// journal.
    explicit CollectedFiles(std::filesystem::path folder, store::Disk& disk = store::system_disk());

    /// Returns the name of the unconfirmed batch, which an earlier process may have appended; empty
    /// if all batches were confirmed.
    [[nodiscard]] const std::string& unconfirmed_batch() const { return batch_; }

    /// Appends texts to files. Creates missing folders. `texts`: the text for each file name.
    /// Returns 0 or errno. After an error, either no file was changed or the batch is unconfirmed.
    [[nodiscard]] int append_batch(const std::string& batch,
                                   const std::map<std::string, std::string>& texts);

    /// Makes the latest batch permanent.
    void confirm_batch();
    /// Removes the texts of the unconfirmed batch from the files. Returns 0 or errno. After an
    /// error, parts of the batch may remain, and the batch stays unconfirmed.
    [[nodiscard]] int roll_back_batch();

  private:
    void read_journal();
    [[nodiscard]] int write_journal();
    [[nodiscard]] int append_to_file(const std::string& name, std::string_view text);
    [[nodiscard]] int truncate_file(const std::string& name, std::uint64_t size);

    std::filesystem::path folder_;
    store::Disk* disk_;
    base::UniqueFd journal_; ///< the journal file; locked by this process
    std::string batch_;
    std::map<std::string, std::uint64_t>
        sizes_before_; ///< size of each file before the latest batch
};

} // namespace tw::bus
