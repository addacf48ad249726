#include "proxy/bus/collected_files.h"

#include "proxy/base/files.h"

#include <cerrno>
#include <sstream>
#include <system_error>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace tw::bus {

namespace {

constexpr const char* kJournalFileName = ".collect-journal";
constexpr mode_t kReadableByAll = 0644;
constexpr std::string_view kJournalEnd = "end\n";
constexpr std::size_t kMaxJournalBytes = std::size_t{1} << 20U;

} // namespace

CollectedFiles::CollectedFiles(std::filesystem::path folder, store::Disk& disk)
    : folder_{std::move(folder)}, disk_{&disk} {
    std::filesystem::create_directory(folder_);
    journal_ = base::UniqueFd{
        ::open((folder_ / kJournalFileName).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kReadableByAll)};
    if (!journal_.valid() || !base::lock_file(journal_.get())) {
        throw std::system_error{journal_.valid() ? EBUSY : errno, std::generic_category(),
                                folder_.string()};
    }
    read_journal();
}

/// Reads the journal.
/// Layout: the batch's id on a line, then a line "SIZE NAME" for each file, then "end".
void CollectedFiles::read_journal() {
    std::string text(kMaxJournalBytes, '\0');
    const ssize_t got = ::pread(journal_.get(), text.data(), text.size(), 0);
    text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    if (!text.ends_with(kJournalEnd)) {
        // The journal is incomplete: the process ended before it appended the batch to any file.
        return;
    }
    std::istringstream lines{text};
    std::getline(lines, batch_);
    std::string name;
    for (std::uint64_t size = 0;
         lines >> size && lines.get() == ' ' && std::getline(lines, name);) {
        sizes_before_[name] = size;
    }
}

int CollectedFiles::write_journal() {
    std::string text = batch_ + '\n';
    for (const auto& [name, size] : sizes_before_) {
        text += fmt::format("{} {}\n", size, name);
    }
    text += kJournalEnd;
    if (text.size() > kMaxJournalBytes) {
        return EFBIG;
    }
    if (::ftruncate(journal_.get(), 0) != 0) {
        return errno;
    }
    const ssize_t written = ::pwrite(journal_.get(), text.data(), text.size(), 0);
    return written == static_cast<ssize_t>(text.size()) ? 0 : written < 0 ? errno : ENOSPC;
}

int CollectedFiles::append_to_file(const std::string& name, std::string_view text) {
    const int file = disk_->open((folder_ / name).string(), store::Disk::OpenMode::append);
    if (file < 0) {
        return errno;
    }
    const int error = store::write_all(*disk_, file, text) ? 0 : errno;
    disk_->close(file);
    return error;
}

int CollectedFiles::append_batch(const std::string& batch,
                                 const std::map<std::string, std::string>& texts) {
    batch_ = batch;
    sizes_before_.clear();
    for (const auto& [name, text] : texts) {
        const auto path = folder_ / name;
        std::error_code error;
        std::filesystem::create_directories(path.parent_path(), error);
        const auto status = disk_->file_status(path.string());
        sizes_before_[name] = status ? status->size : 0;
    }
    int error = write_journal();
    for (auto each = texts.begin(); each != texts.end() && error == 0; ++each) {
        error = append_to_file(each->first, each->second);
    }
    if (error != 0) {
        std::ignore = roll_back_batch(); // after an error, the batch stays unconfirmed
    }
    return error;
}

void CollectedFiles::confirm_batch() {
    batch_.clear();
    sizes_before_.clear();
    std::ignore = ::ftruncate(journal_.get(), 0);
}

/// Truncates a file to this size. Size 0 removes the file, because the batch created it.
int CollectedFiles::truncate_file(const std::string& name, std::uint64_t size) {
    const std::string path = (folder_ / name).string();
    errno = 0;
    const auto status = disk_->file_status(path);
    if (!status || status->size <= size) {
        return status || errno == ENOENT || errno == ENOTDIR ? 0 : errno;
    }
    if (size == 0) {
        return disk_->remove(path) ? 0 : errno;
    }
    const int file = disk_->open(path, store::Disk::OpenMode::append);
    if (file < 0) {
        return errno;
    }
    const int error = disk_->truncate(file, size) ? 0 : errno;
    disk_->close(file);
    return error;
}

int CollectedFiles::roll_back_batch() {
    int error = 0;
    for (const auto& [name, size] : sizes_before_) {
        const int failed = truncate_file(name, size);
        error = error == 0 ? failed : error;
    }
    if (error == 0) {
        confirm_batch();
    }
    return error;
}

} // namespace tw::bus
