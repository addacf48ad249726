#pragma once

#include "proxy/admin/recordings.h"

#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace tw::run {

/// The folders that recordings are made in, as the page sees them: captures and demos by their names
/// alone. What else lies there, and where a link leads, is not shown.
class RecordingFolders {
  public:
    /// What is read of a folder: who has more files than that looks elsewhere.
    static constexpr std::size_t kMaxEntries = 10'000;
    static constexpr std::size_t kMaxListed = 500;

    /// One that is named twice counts once.
    explicit RecordingFolders(const std::vector<std::filesystem::path>& folders);

    [[nodiscard]] bool empty() const { return folders_.empty(); }

    /// The newest first.
    [[nodiscard]] std::vector<admin::RecordedFile> list() const;
    /// Null: there is none of that name.
    [[nodiscard]] std::shared_ptr<const admin::ServedFile> open(std::string_view name) const;

  private:
    std::vector<std::filesystem::path> folders_;
};

/// What recordings in this folder take, in bytes.
[[nodiscard]] std::uint64_t recorded_bytes(const std::filesystem::path& folder);

} // namespace tw::run
