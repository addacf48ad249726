#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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

} // namespace tw::sink
