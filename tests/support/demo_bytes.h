#pragma once

#include "proxy/sink/demo_encoder.h"
#include "tests/support/snapshot_messages.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <stdlib.h>

namespace tw::test {

[[nodiscard]] inline Bytes bytes_of(std::initializer_list<int> values) {
    Bytes bytes;
    for (const int value : values) {
        bytes.push_back(static_cast<std::byte>(value));
    }
    return bytes;
}

inline void append(Bytes& bytes, const Bytes& more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
}

[[nodiscard]] inline sink::demo::Header demo_header(int version = 6) {
    sink::demo::Header header{.version = version,
                              .map_name = "dm1",
                              .map_crc = 0x01020304,
                              .length = 3,
                              .timestamp = "2026-11-21_16-15-30"};
    if (version == sink::demo::kSha256Version) {
        header.sha256.emplace().fill(7);
    }
    return header;
}

/// Returns the bytes of a demo with these snapshots.
[[nodiscard]] inline Bytes demo_of(int version,
                                   const std::vector<std::pair<snapshot::Tick, Items>>& snapshots,
                                   const Bytes& map = {}) {
    Bytes demo = sink::DemoEncoder::encode_start(demo_header(version), map);
    sink::DemoEncoder encoder{version, snapshot::Dialect::six};
    for (const auto& [tick, items] : snapshots) {
        static_cast<void>(encoder.append_snapshot(tick, to_snapshot(items).view(), demo));
    }
    encoder.finish(demo);
    return demo;
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
