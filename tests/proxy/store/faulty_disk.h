#pragma once

#include "proxy/store/file_queue.h"

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

namespace tw::test {

/// The real disk, but with faults and a clock that tests control.
class FaultyDisk final : public store::Disk {
  public:
    std::uint64_t room = UINT64_MAX;            ///< number of further bytes that fit on the disk
    std::uint64_t max_write_bytes = UINT64_MAX; ///< the most bytes that one call of write() writes
    int write_error = 0;                        ///< errno of every write; 0: no error
    bool can_truncate = true;
    int open_error = 0;
    int sync_error = 0;
    int sync_count = 0;
    int interrupted_writes = 0;        ///< number of next writes that fail with EINTR
    std::uint64_t free = UINT64_MAX;   ///< the result of free_bytes()
    std::int64_t time = 1'795'277'730; ///< 2026-11-21T16:15:30Z

    [[nodiscard]] int open(const std::string& path, OpenMode how,
                           store::AllowedReaders readers) override {
        if (open_error != 0) {
            errno = open_error;
            return -1;
        }
        return Disk::open(path, how, readers);
    }

    [[nodiscard]] ssize_t write(int file, std::string_view bytes) override {
        if (interrupted_writes > 0) {
            --interrupted_writes;
            errno = EINTR;
            return -1;
        }
        if (write_error != 0 || room == 0) {
            errno = write_error != 0 ? write_error : ENOSPC;
            return -1;
        }
        const std::string_view some = bytes.substr(0, std::min(room, max_write_bytes));
        room -= some.size();
        return Disk::write(file, some);
    }

    [[nodiscard]] bool truncate(int file, std::uint64_t size) override {
        const auto before = file_status(file);
        if (!can_truncate || !Disk::truncate(file, size)) {
            errno = EIO;
            return false;
        }
        if (room != UINT64_MAX && before) {
            room += before->size - size;
        }
        return true;
    }

    [[nodiscard]] bool sync(int file) override {
        ++sync_count;
        errno = sync_error;
        return sync_error == 0 && Disk::sync(file);
    }

    [[nodiscard]] std::uint64_t free_bytes(const std::string& /*path*/) override { return free; }

    [[nodiscard]] std::int64_t utc_seconds() override { return time; }
};

} // namespace tw::test
