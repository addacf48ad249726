#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/types.h>

namespace tw::sink {

/// What a file is, as far as a recording needs to know.
struct FileFacts {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::uint64_t size = 0;
    std::int64_t written = 0; ///< when last, in seconds since 1970-01-01 UTC
    bool regular = false;     ///< a file on a disk, no pipe or device

    [[nodiscard]] bool same_file(const FileFacts& other) const {
        return device == other.device && inode == other.inode;
    }
};

/// Who may read a file.
enum class Readers : std::uint8_t { all, owner };

/// The permissions of a new file for these readers: a file for its owner alone holds passwords.
[[nodiscard]] constexpr mode_t mode_of(Readers readers) {
    return readers == Readers::all ? 0644 : 0600;
}

/// The calls by which a recording reaches its files. They are the system's, and set errno; a test has
/// a disk of its own that fails when it is told to.
class Disk {
  public:
    enum class How : std::uint8_t {
        append, ///< behind what is there; made when it is not there
        empty,  ///< what was in it is gone
        create, ///< it must not be there yet
    };

    Disk() = default;
    Disk(const Disk&) = delete;
    Disk& operator=(const Disk&) = delete;
    Disk(Disk&&) = delete;
    Disk& operator=(Disk&&) = delete;
    virtual ~Disk() = default;

    /// Always for reading, too, and always written at its end. Negative when it cannot be opened.
    /// `readers`: of one that is made.
    [[nodiscard]] virtual int open(const std::string& path, How how,
                                   Readers readers = Readers::all);
    [[nodiscard]] virtual ssize_t write(int file, std::string_view bytes);
    [[nodiscard]] virtual bool truncate(int file, std::uint64_t size);
    /// Writes over a few bytes that are there; all of them or none.
    [[nodiscard]] virtual bool patch(int file, std::uint64_t at, std::string_view bytes);
    [[nodiscard]] virtual bool sync(int file);
    [[nodiscard]] virtual bool remove(const std::string& path);
    virtual void close(int file);
    [[nodiscard]] virtual std::optional<FileFacts> facts(int file);
    [[nodiscard]] virtual std::optional<FileFacts> facts(const std::string& path);
    /// Bytes that still fit on the disk of a file or folder; as many as there can be where nobody knows.
    [[nodiscard]] virtual std::uint64_t free_bytes(const std::string& path);
    /// Seconds since 1970-01-01 UTC.
    [[nodiscard]] virtual std::int64_t utc();
};

/// The machine's.
[[nodiscard]] Disk& system_disk();

/// Writes any number of files on a thread of its own, so that nobody waits for a disk. What waits to
/// be written is bounded: beyond that it is refused, and whoever asked goes without. From any thread.
class FileQueue {
  public:
    /// Half a minute of a full server's demos and captures, with a map among them.
    static constexpr std::size_t kMaxQueueBytes = std::size_t{64} << 20U;

    enum class Full : std::uint8_t {
        refuse, ///< live: the game goes on
        wait,   ///< of a file that is decoded: nothing runs away
    };

    using Readers = sink::Readers;

    using File = std::uint32_t;

    /// `progress` counts bytes written; null: nobody wants to know.
    explicit FileQueue(Full full = Full::refuse, std::size_t max_bytes = kMaxQueueBytes,
                       std::atomic<std::uint64_t>* progress = nullptr);
    /// As finish.
    ~FileQueue();
    FileQueue(const FileQueue&) = delete;
    FileQueue& operator=(const FileQueue&) = delete;
    FileQueue(FileQueue&&) = delete;
    FileQueue& operator=(FileQueue&&) = delete;

    /// A file that was not there before, with these bytes in it. Where there is one of this name it
    /// gets a number behind it: NAME-2.demo. Nothing: refused.
    [[nodiscard]] std::optional<File> create(std::filesystem::path path,
                                             std::vector<std::byte> bytes,
                                             Readers readers = Readers::all);
    /// A file that is open already; it is taken over.
    [[nodiscard]] File adopt(int descriptor, std::filesystem::path path);

    /// False: refused, as by a file that could not be written before: nothing is appended to that any
    /// more, so that it stays whole up to there. All of it is written, or nothing.
    [[nodiscard]] bool append(File file, std::vector<std::byte> bytes);
    /// Writes over what is there.
    void patch(File file, std::size_t at, std::vector<std::byte> bytes);
    /// Nothing follows.
    void close(File file);

    /// Waits until there is room for so many bytes. False: nothing was written for so long.
    [[nodiscard]] bool wait_for_room(std::size_t bytes, std::chrono::milliseconds patience);

    /// Writes what is queued, then ends the thread; nothing may follow.
    void finish();

    /// A file that could not be made or written, and why; each is reported once.
    [[nodiscard]] std::optional<std::string> take_complaint();

    /// What waits to be written.
    [[nodiscard]] std::size_t queued_bytes() const;
    /// Blocks that were refused or could not be written.
    [[nodiscard]] std::uint64_t lost() const;
    /// Files that were made.
    [[nodiscard]] std::uint64_t created() const;

  private:
    struct Command {
        enum class Kind : std::uint8_t { create, adopt, append, patch, close };

        Kind kind = Kind::append;
        File file = 0;
        std::vector<std::byte> bytes{};
        std::size_t at = 0;           ///< of a patch
        int descriptor = -1;          ///< of what is adopted
        std::filesystem::path path{}; ///< of what is created or adopted
        Readers readers = Readers::all;
    };

    struct Open {
        int descriptor = -1; ///< negative: it could not be made
        std::filesystem::path path{};
        bool dead = false; ///< nothing more can be appended
    };

    [[nodiscard]] bool push(Command command);
    void run();
    void execute(Command& command);
    void create_file(const Command& command);
    void write(Open& open, const Command& command);
    void fail(Open& open, File file, int error);

    Full full_;
    std::size_t max_bytes_;
    std::atomic<std::uint64_t>* progress_;
    mutable std::mutex mutex_;
    std::condition_variable wake_;
    std::condition_variable room_;
    std::deque<Command> queue_;
    std::size_t queued_bytes_ = 0;
    File next_ = 1;
    std::vector<std::string> complaints_;
    std::uint64_t lost_ = 0;
    std::uint64_t created_ = 0;
    std::set<File> dead_; ///< of those that are not closed
    bool stop_ = false;
    std::map<File, Open> open_; ///< the thread's own
    std::thread thread_;
};

} // namespace tw::sink
