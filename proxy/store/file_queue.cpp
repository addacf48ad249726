#include "proxy/store/file_queue.h"

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

FileFacts facts_of(const struct stat& found) {
    return {.device = found.st_dev,
            .inode = found.st_ino,
            .size = static_cast<std::uint64_t>(found.st_size),
            .written = found.st_mtim.tv_sec,
            .regular = S_ISREG(found.st_mode)};
}

} // namespace

int Disk::open(const std::string& path, OpenMode how, Readers readers) {
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

std::optional<FileFacts> Disk::facts(int file) {
    struct stat found {};

    return ::fstat(file, &found) == 0 ? std::optional{facts_of(found)} : std::nullopt;
}

std::optional<FileFacts> Disk::facts(const std::string& path) {
    struct stat found {};

    return ::stat(path.c_str(), &found) == 0 ? std::optional{facts_of(found)} : std::nullopt;
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

/// The most texts that wait for take_error_text(), and for take_written_path(). Further texts are
/// dropped: users would not read them all.
constexpr std::size_t kMaxTexts = 16;

/// Removes and returns the first of these texts; nullopt if there is none.
std::optional<std::string> take_first(std::vector<std::string>& texts) {
    if (texts.empty()) {
        return std::nullopt;
    }
    std::string first = std::move(texts.front());
    texts.erase(texts.begin());
    return first;
}

} // namespace

FileQueue::FileQueue(FullQueuePolicy full, std::size_t max_bytes,
                     std::atomic<std::uint64_t>* progress)
    : full_{full}, max_bytes_{max_bytes}, progress_{progress}, thread_{[this] { run_queue(); }} {}

FileQueue::~FileQueue() {
    finish();
}

void FileQueue::finish() {
    if (!thread_.joinable()) {
        return;
    }
    {
        const std::lock_guard lock{mutex_};
        stop_ = true;
    }
    wake_.notify_one();
    thread_.join();
    open_.clear();
}

bool FileQueue::push_command(Command command) {
    {
        std::unique_lock lock{mutex_};
        const std::size_t size = command.bytes.size();
        if (command.kind == Command::Kind::append && dead_.contains(command.file)) {
            ++lost_;
            return false;
        }
        // A command that is larger than the limit is accepted if the queue is empty.
        const auto fits = [&] { return queued_bytes_ == 0 || queued_bytes_ + size <= max_bytes_; };
        if (size != 0 && full_ == FullQueuePolicy::wait) {
            room_.wait(lock, fits);
        } else if (size != 0 && command.kind != Command::Kind::patch && !fits()) {
            ++lost_;
            return false;
        }
        queued_bytes_ += size;
        queue_.push_back(std::move(command));
    }
    wake_.notify_one();
    return true;
}

std::optional<FileQueue::File> FileQueue::create(std::filesystem::path path,
                                                 std::vector<std::byte> bytes, Readers readers) {
    const File file = next_++;
    const bool pushed = push_command({.kind = Command::Kind::create,
                                      .file = file,
                                      .bytes = std::move(bytes),
                                      .path = std::move(path),
                                      .readers = readers});
    return pushed ? std::optional{file} : std::nullopt;
}

bool FileQueue::append(File file, std::vector<std::byte> bytes) {
    return push_command({.kind = Command::Kind::append, .file = file, .bytes = std::move(bytes)});
}

void FileQueue::patch(File file, std::size_t at, std::vector<std::byte> bytes) {
    static_cast<void>(push_command(
        {.kind = Command::Kind::patch, .file = file, .bytes = std::move(bytes), .at = at}));
}

void FileQueue::close(File file) {
    static_cast<void>(push_command({.kind = Command::Kind::close, .file = file}));
}

bool FileQueue::wait_for_room(std::size_t bytes, std::chrono::milliseconds patience) {
    std::unique_lock lock{mutex_};
    const auto fits = [&] { return queued_bytes_ == 0 || queued_bytes_ + bytes <= max_bytes_; };
    while (!fits()) {
        const std::size_t before = queued_bytes_;
        if (!room_.wait_for(lock, patience, [&] { return fits() || queued_bytes_ != before; })) {
            return false;
        }
    }
    return true;
}

std::optional<std::string> FileQueue::take_error_text() {
    const std::lock_guard lock{mutex_};
    return take_first(complaints_);
}

std::optional<std::string> FileQueue::take_written_path() {
    const std::lock_guard lock{mutex_};
    return take_first(written_);
}

void FileQueue::run_queue() {
    std::unique_lock lock{mutex_};
    while (true) {
        wake_.wait(lock, [this] { return stop_ || !queue_.empty(); });
        if (queue_.empty()) {
            return;
        }
        // The command stays in the queue while it is executed, so that its bytes count as queued.
        Command& command = queue_.front();
        lock.unlock();
        execute_command(command);
        lock.lock();
        queued_bytes_ -= command.bytes.size();
        if (progress_ != nullptr) {
            progress_->fetch_add(command.bytes.size(), std::memory_order_relaxed);
        }
        queue_.pop_front();
        room_.notify_all();
    }
}

void FileQueue::execute_command(Command& command) {
    if (command.kind == Command::Kind::create) {
        create_file(command);
        return;
    }
    const auto found = open_.find(command.file);
    if (found == open_.end()) {
        return;
    }
    if (command.kind != Command::Kind::close) {
        write(found->second, command);
        return;
    }
    const std::lock_guard lock{mutex_};
    if (!found->second.dead && written_.size() < kMaxTexts) {
        written_.push_back(found->second.path.string());
    }
    open_.erase(found);
    dead_.erase(command.file);
}

void FileQueue::create_file(const Command& command) {
    OpenFile& open = open_[command.file];
    open.path = command.path;
    const mode_t mode = permissions_of(command.readers);
    constexpr int kMaxSameName = 1000;
    for (int number = 2; number <= kMaxSameName; ++number) {
        open.descriptor = base::UniqueFd{
            ::open(open.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)};
        if (open.descriptor.valid() || errno != EEXIST) {
            break;
        }
        open.path =
            command.path.parent_path() / fmt::format("{}-{}{}", command.path.stem().string(),
                                                     number, command.path.extension().string());
    }
    if (!open.descriptor.valid()) {
        mark_failed(open, command.file, {errno, std::generic_category()});
        return;
    }
    write(open, command);
    if (open.dead) {
        ::unlink(open.path.c_str()); // the file would be incomplete
        open.descriptor = base::UniqueFd{};
    } else {
        ++created_;
    }
}

void FileQueue::write(OpenFile& open, const Command& command) {
    const bool is_patch = command.kind == Command::Kind::patch;
    if (!open.descriptor.valid() || (open.dead && !is_patch)) {
        ++lost_;
        return;
    }
    const int file = open.descriptor.get();
    const off_t end = ::lseek(file, 0, SEEK_CUR);
    if (is_patch) {
        ::lseek(file, static_cast<off_t>(command.at), SEEK_SET);
    }
    const std::error_code error = base::write_all(file, command.bytes);
    const bool cut = error && !is_patch && ::ftruncate(file, end) == 0;
    if (is_patch || cut) {
        ::lseek(file, end, SEEK_SET); // the next data is appended after the last complete data
    }
    if (error) {
        mark_failed(open, command.file, error);
    }
}

void FileQueue::mark_failed(OpenFile& open, File file, const std::error_code& error) {
    open.dead = true;
    const std::lock_guard lock{mutex_};
    dead_.insert(file);
    ++lost_;
    if (complaints_.size() < kMaxTexts) {
        complaints_.push_back(fmt::format("{}: {}", open.path.string(), error.message()));
    }
}

} // namespace tw::store
