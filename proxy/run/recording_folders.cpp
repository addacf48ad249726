#include "proxy/run/recording_folders.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <system_error>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

namespace tw::run {

namespace {

/// As recorders name their files: nothing that leads anywhere else.
bool is_recording(std::string_view name) {
    constexpr std::size_t kLongest = 255;
    const auto is_safe = [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
    };
    return name.size() <= kLongest && !name.starts_with('.') &&
           (name.ends_with(".pcapng") || name.ends_with(".demo")) &&
           std::all_of(name.begin(), name.end(), is_safe);
}

relay::UniqueFd open_folder(const std::filesystem::path& folder) {
    return relay::UniqueFd{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
}

struct CloseFolder {
    void operator()(DIR* folder) const { ::closedir(folder); }
};

/// `use` is called with the name and status of each recording.
template <typename Use>
void each_recording(const std::filesystem::path& folder, const Use& use) {
    relay::UniqueFd at = open_folder(folder);
    const int descriptor = at.get();
    const std::unique_ptr<DIR, CloseFolder> listing{at.valid() ? ::fdopendir(descriptor) : nullptr};
    if (listing == nullptr) {
        return;
    }
    std::ignore = at.release(); // the listing closes it
    for (std::size_t entries = 0; entries < RecordingFolders::kMaxEntries; ++entries) {
        // NOLINTNEXTLINE(concurrency-mt-unsafe): of one listing, by one thread
        const dirent* const entry = ::readdir(listing.get());
        if (entry == nullptr) {
            return;
        }

        struct stat found {};

        const std::string_view name{static_cast<const char*>(entry->d_name)};
        if (is_recording(name) &&
            ::fstatat(descriptor, name.data(), &found, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(found.st_mode)) {
            use(name, found);
        }
    }
}

} // namespace

RecordingFolders::RecordingFolders(const std::vector<std::filesystem::path>& folders) {
    for (const auto& folder : folders) {
        const bool known = std::ranges::any_of(folders_, [&](const auto& other) {
            std::error_code ignored;
            return std::filesystem::equivalent(folder, other, ignored);
        });
        if (!known) {
            folders_.push_back(folder);
        }
    }
}

std::vector<admin::RecordedFile> RecordingFolders::list() const {
    constexpr std::int64_t kMs = 1000;
    constexpr std::int64_t kNanoseconds = 1'000'000;
    std::vector<admin::RecordedFile> files;
    for (const auto& folder : folders_) {
        each_recording(folder, [&](std::string_view name, const struct stat& found) {
            files.push_back(
                {.name = std::string{name},
                 .bytes = static_cast<std::uint64_t>(found.st_size),
                 .time_ms = found.st_mtim.tv_sec * kMs + found.st_mtim.tv_nsec / kNanoseconds});
        });
    }
    std::ranges::sort(files, [](const auto& left, const auto& right) {
        return std::tie(right.time_ms, left.name) < std::tie(left.time_ms, right.name);
    });
    files.resize(std::min(files.size(), kMaxListed));
    return files;
}

std::shared_ptr<const admin::ServedFile> RecordingFolders::open(std::string_view name) const {
    if (!is_recording(name)) {
        return nullptr;
    }
    for (const auto& folder : folders_) {
        const relay::UniqueFd at = open_folder(folder);
        if (!at.valid()) {
            continue;
        }
        relay::UniqueFd file{::openat(at.get(), std::string{name}.c_str(),
                                      O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};

        struct stat found {};

        if (file.valid() && ::fstat(file.get(), &found) == 0 && S_ISREG(found.st_mode)) {
            return std::make_shared<admin::ServedFile>(admin::ServedFile{
                .file = std::move(file), .bytes = static_cast<std::uint64_t>(found.st_size)});
        }
    }
    return nullptr;
}

std::uint64_t recorded_bytes(const std::filesystem::path& folder) {
    std::uint64_t bytes = 0;
    each_recording(folder, [&](std::string_view /*name*/, const struct stat& found) {
        bytes += static_cast<std::uint64_t>(found.st_size);
    });
    return bytes;
}

} // namespace tw::run
