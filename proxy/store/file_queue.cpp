#include "proxy/store/file_queue.h"

#include "proxy/base/descriptors.h"
#include "proxy/base/files.h"

#include <cerrno>
#include <ctime>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace tw::store {

namespace {

FileStatus file_status_of(const struct stat& found) {
    return {.device = found.st_dev,
            .inode = found.st_ino,
            .size = static_cast<std::uint64_t>(found.st_size),
            .modified_at = found.st_mtim.tv_sec,
            .is_regular = S_ISREG(found.st_mode),
            .has_name = found.st_nlink != 0};
}

} // namespace

int Disk::open(const std::string& path, OpenMode how, AllowedReaders readers) {
    const int extra = how == OpenMode::empty ? O_TRUNC : how == OpenMode::create ? O_EXCL : 0;
    return ::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | extra,
                  permissions_of(readers));
}

ssize_t Disk::write(int file, std::string_view bytes) {
    return ::write(file, bytes.data(), bytes.size());
}

bool Disk::truncate(int file, std::uint64_t size) {
    return ::ftruncate(file, static_cast<off_t>(size)) == 0;
}

bool Disk::sync(int file) {
    return ::fdatasync(file) == 0;
}

bool Disk::remove(const std::string& path) {
    return ::unlink(path.c_str()) == 0;
}

void Disk::close(int file) {
    ::close(file);
}

std::optional<FileStatus> Disk::file_status(int file) {
    struct stat found {};

    return ::fstat(file, &found) == 0 ? std::optional{file_status_of(found)} : std::nullopt;
}

std::optional<FileStatus> Disk::file_status(const std::string& path) {
    struct stat found {};

    return ::stat(path.c_str(), &found) == 0 ? std::optional{file_status_of(found)} : std::nullopt;
}

std::uint64_t Disk::free_bytes(const std::string& path) {
    struct statvfs found {};

    return ::statvfs(path.c_str(), &found) == 0
               ? std::uint64_t{found.f_bavail} * std::uint64_t{found.f_frsize}
               : UINT64_MAX;
}

std::int64_t Disk::utc_seconds() {
    return std::time(nullptr);
}

bool write_all(Disk& disk, int file, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t done = disk.write(file, bytes);
        if (done > 0) {
            bytes.remove_prefix(static_cast<std::size_t>(done));
        } else if (done == 0 || errno != EINTR) {
            errno = done == 0 ? EIO : errno;
            return false;
        }
    }
    return true;
}

Disk& system_disk() {
    static Disk disk;
    return disk;
}

namespace {

/// The maximum number of stored error texts, and of stored paths of written files. Further texts
/// are dropped, because users would not read them all.
constexpr std::size_t kMaxWaitingTexts = 16;

/// Removes and returns the first text. Returns nullopt if `texts` is empty.
std::optional<std::string> take_first_text(std::vector<std::string>& texts) {
    if (texts.empty()) {
        return std::nullopt;
    }
    std::string first = std::move(texts.front());
    texts.erase(texts.begin());
    return first;
}

} // namespace

struct FileQueue::OpenFile {
    std::filesystem::path path{};
    base::UniqueFd descriptor{};          ///< used only by the queue's thread
    bool is_closed = false;               ///< used only by the queue's thread
    std::atomic<bool> has_failed = false; ///< true if no data can be appended after an error
};

FileQueue::FileQueue(FullQueuePolicy full, std::size_t max_bytes,
                     std::atomic<std::uint64_t>* progress)
    : full_queue_policy_{full}, max_bytes_{max_bytes}, progress_{progress}, thread_{[this] {
          run_tasks();
      }} {}

FileQueue::~FileQueue() {
    finish_writing();
}

void FileQueue::finish_writing() {
    if (!thread_.joinable()) {
        return;
    }
    {
        const std::lock_guard lock{mutex_};
        is_stopping_ = true;
    }
    task_added_.notify_one();
    thread_.join();
}

bool FileQueue::push_task(Task task, bool may_be_refused) {
    {
        std::unique_lock lock{mutex_};
        const std::size_t size = task.bytes.size();
        // A task that is larger than the limit is accepted if the queue is empty.
        const auto has_room = [&] { return size == 0 || has_room_for(size); };
        if (full_queue_policy_ == FullQueuePolicy::wait) {
            room_freed_.wait(lock, has_room);
        } else if (may_be_refused && !has_room()) {
            ++lost_blocks_;
            return false;
        }
        queued_bytes_ += size;
        queue_.push_back(std::move(task));
    }
    task_added_.notify_one();
    return true;
}

std::optional<FileQueue::File> FileQueue::create(std::filesystem::path path, Bytes bytes,
                                                 AllowedReaders readers) {
    const auto file = std::make_shared<OpenFile>();
    file->path = std::move(path);
    const auto run = [this, readers](OpenFile& each, auto data) {
        create_file(each, data, readers);
    };
    return push_task({file, std::move(bytes), run}) ? std::optional{file} : std::nullopt;
}

bool FileQueue::append(const File& file, Bytes bytes) {
    if (file->has_failed) {
        ++lost_blocks_;
        return false;
    }
    const auto run = [this](OpenFile& each, auto data) { write(each, data, {}); };
    return push_task({file, std::move(bytes), run});
}

void FileQueue::overwrite_bytes(const File& file, std::size_t at, Bytes bytes) {
    const auto run = [this, at](OpenFile& each, auto data) { write(each, data, at); };
    static_cast<void>(push_task({file, std::move(bytes), run}, false));
}

void FileQueue::close(const File& file) {
    const auto run = [this](OpenFile& each, auto /*data*/) {
        each.descriptor = base::UniqueFd{};
        each.is_closed = true;
        const std::lock_guard lock{mutex_};
        if (!each.has_failed && written_paths_.size() < kMaxWaitingTexts) {
            written_paths_.push_back(each.path.string());
        }
    };
    static_cast<void>(push_task({file, {}, run}));
}

bool FileQueue::wait_for_room(std::size_t bytes, std::chrono::milliseconds timeout) {
    std::unique_lock lock{mutex_};
    while (!has_room_for(bytes)) {
        const std::size_t before = queued_bytes_;
        if (!room_freed_.wait_for(lock, timeout,
                                  [&] { return has_room_for(bytes) || queued_bytes_ != before; })) {
            return false;
        }
    }
    return true;
}

std::optional<std::string> FileQueue::take_error_text() {
    const std::lock_guard lock{mutex_};
    return take_first_text(error_texts_);
}

std::optional<std::string> FileQueue::take_written_path() {
    const std::lock_guard lock{mutex_};
    return take_first_text(written_paths_);
}

void FileQueue::run_tasks() {
    std::unique_lock lock{mutex_};
    while (true) {
        task_added_.wait(lock, [this] { return is_stopping_ || !queue_.empty(); });
        if (queue_.empty()) {
            return;
        }
        // The task stays in the queue while it runs, so that its bytes count as queued.
        const Task& task = queue_.front();
        lock.unlock();
        task.run(*task.file, task.bytes);
        lock.lock();
        queued_bytes_ -= task.bytes.size();
        if (progress_ != nullptr) {
            progress_->fetch_add(task.bytes.size(), std::memory_order_relaxed);
        }
        queue_.pop_front();
        room_freed_.notify_all();
    }
}

void FileQueue::create_file(OpenFile& file, std::span<const std::byte> bytes,
                            AllowedReaders readers) {
    const std::filesystem::path wanted = file.path;
    constexpr int kMaxSameName = 1000;
    for (int number = 2; number <= kMaxSameName; ++number) {
        file.descriptor = base::UniqueFd{::open(
            file.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, permissions_of(readers))};
        if (file.descriptor.valid() || errno != EEXIST) {
            break;
        }
        file.path = wanted.parent_path() / fmt::format("{}-{}{}", wanted.stem().string(), number,
                                                       wanted.extension().string());
    }
    if (!file.descriptor.valid()) {
        mark_failed(file, {errno, std::generic_category()});
        return;
    }
    write(file, bytes, {});
    if (file.has_failed) {
        ::unlink(file.path.c_str()); // removes the incomplete file
        file.descriptor = base::UniqueFd{};
    } else {
        ++created_files_;
    }
}

/// Appends bytes, or overwrites bytes starting at the offset `at` if it is set.
void FileQueue::write(OpenFile& file, std::span<const std::byte> bytes,
                      std::optional<std::size_t> at) {
    if (file.is_closed) {
        return;
    }
    if (!file.descriptor.valid() || (file.has_failed && !at)) {
        ++lost_blocks_;
        return;
    }
    const int descriptor = file.descriptor.get();
    const off_t end = ::lseek(descriptor, 0, SEEK_CUR);
    if (at) {
        ::lseek(descriptor, static_cast<off_t>(*at), SEEK_SET);
    }
    const std::error_code error = base::write_all(descriptor, bytes);
    if (at || (error && ::ftruncate(descriptor, end) == 0)) {
        ::lseek(descriptor, end, SEEK_SET); // later data is appended here
    }
    if (error) {
        mark_failed(file, error);
    }
}

void FileQueue::mark_failed(OpenFile& file, const std::error_code& error) {
    file.has_failed = true;
    ++lost_blocks_;
    const std::lock_guard lock{mutex_};
    if (error_texts_.size() < kMaxWaitingTexts) {
        error_texts_.push_back(fmt::format("{}: {}", file.path.string(), error.message()));
    }
}

} // namespace tw::store
