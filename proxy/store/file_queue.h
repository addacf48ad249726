#pragma once

#include "proxy/record/interface.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include <sys/types.h>

namespace tw::store {

/// The properties of a file, as fstat() returns them.
struct FileStatus {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::uint64_t size = 0;
    /// Time of the last modification, in seconds since 1970-01-01 UTC.
    std::int64_t modified_at = 0;
    bool is_regular = false; ///< true if it is a regular file, not a pipe or device
    bool has_name = false;   ///< false if the file was removed and is only open

    [[nodiscard]] bool is_same_file(const FileStatus& other) const {
        return device == other.device && inode == other.inode;
    }
};

/// Who may read a file: only its owner, or its owner and its group. Other users may never read it,
/// because records contain chat and addresses.
enum class AllowedReaders : std::uint8_t { group, owner };

/// Returns the permissions of a new file with these readers.
[[nodiscard]] constexpr mode_t permissions_of(AllowedReaders readers) {
    return readers == AllowedReaders::group ? 0640 : 0600;
}

/// The system calls that access the files of recordings. They set errno on failure. Tests use a
/// subclass that fails on command.
class Disk : public record::InterfaceBase {
  public:
    enum class OpenMode : std::uint8_t {
        append, ///< write after the existing data; create the file if it does not exist
        empty,  ///< empty the file, or create it
        create, ///< create the file; it must not exist
    };

    /// Opens a file for reading and appending. Returns a negative value if that fails. `readers`
    /// applies only to a file that is created.
    [[nodiscard]] virtual int open(const std::string& path, OpenMode how,
                                   AllowedReaders readers = AllowedReaders::group);
    [[nodiscard]] virtual ssize_t write(int file, std::string_view bytes);
    [[nodiscard]] virtual bool truncate(int file, std::uint64_t size);
    [[nodiscard]] virtual bool sync(int file);
    [[nodiscard]] virtual bool remove(const std::string& path);
    virtual void close(int file);
    [[nodiscard]] virtual std::optional<FileStatus> file_status(int file);
    [[nodiscard]] virtual std::optional<FileStatus> file_status(const std::string& path);
    /// Returns the number of free bytes on the disk of a file or folder; UINT64_MAX if unknown.
    [[nodiscard]] virtual std::uint64_t free_bytes(const std::string& path);
    /// Returns the wall-clock time in seconds since 1970-01-01 UTC.
    [[nodiscard]] virtual std::int64_t utc_seconds();
};

/// Writes all bytes, with several calls if necessary. Returns false and sets errno on failure. Some
/// of the bytes may have been written then.
[[nodiscard]] bool write_all(Disk& disk, int file, std::string_view bytes);

/// Returns the Disk that makes real system calls.
[[nodiscard]] Disk& system_disk();

/// Writes any number of files on a separate thread, so that callers do not wait for a disk. The
/// queue is bounded; data that does not fit is rejected. Any thread may call the functions.
class FileQueue {
  public:
    /// The maximum number of queued bytes: half a minute of a full server's demos and captures.
    static constexpr std::size_t kMaxQueueBytes = std::size_t{64} << 20U;

    enum class FullQueuePolicy : std::uint8_t {
        refuse, ///< reject further data, so that live traffic does not wait
        wait,   ///< wait for room, so that no data is lost when captures are read
    };

    using AllowedReaders = store::AllowedReaders;

    struct OpenFile;
    using File = std::shared_ptr<OpenFile>;
    using Bytes = std::vector<std::byte>;

    /// `progress` counts the bytes written; it may be null.
    explicit FileQueue(FullQueuePolicy full = FullQueuePolicy::refuse,
                       std::size_t max_bytes = kMaxQueueBytes,
                       std::atomic<std::uint64_t>* progress = nullptr);
    ~FileQueue();
    FileQueue(const FileQueue&) = delete;
    FileQueue& operator=(const FileQueue&) = delete;

    /// Creates a file with these bytes. If a file of this name exists, adds a number to the name:
    /// NAME-2.demo. Returns nullopt if the queue is full.
    [[nodiscard]] std::optional<File> create(std::filesystem::path path, Bytes bytes,
                                             AllowedReaders readers = AllowedReaders::group);

    /// Appends bytes to a file. Appends nothing and returns false if the queue is full, or if an
    /// earlier write to the file failed. The file therefore has no gap.
    [[nodiscard]] bool append(const File& file, Bytes bytes);
    /// Overwrites bytes of a file, starting at the offset `at`.
    void overwrite_bytes(const File& file, std::size_t at, Bytes bytes);
    /// Closes the file. No further call for the file is allowed.
    void close(const File& file);

    /// Waits for room in the queue. Returns false if no data was written for the time `timeout`.
    [[nodiscard]] bool wait_for_room(std::size_t bytes, std::chrono::milliseconds timeout);

    /// Writes all queued data, then ends the thread. No other function may be called afterwards.
    void finish_writing();

    /// Removes and returns the oldest error text about a file that could not be created or written;
    /// nullopt if there is no such text.
    [[nodiscard]] std::optional<std::string> take_error_text();
    /// Removes and returns the oldest path of a complete file; nullopt if there is none. Only a few
    /// paths are stored at a time; further paths are dropped.
    [[nodiscard]] std::optional<std::string> take_written_path();

    [[nodiscard]] std::size_t queued_bytes() const { return queued_bytes_; }

    /// Returns the number of blocks that were rejected or could not be written.
    [[nodiscard]] std::uint64_t num_lost_blocks() const { return lost_blocks_; }

    [[nodiscard]] std::uint64_t num_created_files() const { return created_files_; }

  private:
    /// A queued operation, which creates a file, writes to it, or closes it.
    struct Task {
        File file;
        Bytes bytes;
        std::function<void(OpenFile& file, std::span<const std::byte> bytes)> run;
    };

    [[nodiscard]] bool has_room_for(std::size_t bytes) const {
        return queued_bytes_ == 0 || queued_bytes_ + bytes <= max_bytes_;
    }

    [[nodiscard]] bool push_task(Task task, bool may_be_refused = true);
    void run_tasks();
    void create_file(OpenFile& file, std::span<const std::byte> bytes, AllowedReaders readers);
    void write(OpenFile& file, std::span<const std::byte> bytes, std::optional<std::size_t> at);
    void mark_failed(OpenFile& file, const std::error_code& error);

    FullQueuePolicy full_queue_policy_;
    std::size_t max_bytes_;
    std::atomic<std::uint64_t>* progress_;
    std::mutex mutex_;
    std::condition_variable task_added_;
    std::condition_variable room_freed_;
    std::deque<Task> queue_;
    std::atomic<std::size_t> queued_bytes_{0};
    std::vector<std::string> error_texts_;
    std::vector<std::string> written_paths_; ///< paths of complete files
    std::atomic<std::uint64_t> lost_blocks_{0};
    std::atomic<std::uint64_t> created_files_{0};
    bool is_stopping_ = false;
    std::thread thread_;
};

} // namespace tw::store
