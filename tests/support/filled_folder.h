#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include <stdlib.h>

namespace tw::test {

[[nodiscard]] inline std::string file_text(const std::filesystem::path& path) {
    std::ifstream file{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
}

/// A temporary folder for the files of a test.
class FilledFolder {
  public:
    FilledFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "twscope-XXXXXX").string();
        path_ = ::mkdtemp(name.data());
    }

    ~FilledFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    FilledFolder(const FilledFolder&) = delete;
    FilledFolder& operator=(const FilledFolder&) = delete;

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

    /// The files in the folder, sorted by name.
    [[nodiscard]] std::vector<std::filesystem::path> files() const {
        std::vector<std::filesystem::path> files;
        for (const auto& entry : std::filesystem::directory_iterator{path_}) {
            files.push_back(entry.path());
        }
        std::ranges::sort(files);
        return files;
    }

  private:
    std::filesystem::path path_;
};

} // namespace tw::test
