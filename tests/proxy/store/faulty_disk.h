#pragma once

#include "proxy/store/file_queue.h"

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

namespace tw::test {

/// The machine's disk, with faults and a clock of its own.
class FaultyDisk final : public store::Disk {
  public:
    std::uint64_t room = UINT64_MAX;    ///< bytes that still fit
    std::uint64_t at_once = UINT64_MAX; ///< bytes that one write takes at most
    int write_error = 0;                ///< of every write
    bool truncates = true;
    int open_error = 0;
    int sync_error = 0;
    int syncs = 0;
    int interrupted = 0;               ///< writes to come that a signal interrupts
    std::uint64_t free = UINT64_MAX;   ///< bytes that others may write
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
        if (interrupted > 0) {
            --interrupted;
            errno = EINTR;
            return -1;
        }
        if (write_error != 0 || room == 0) {
            errno = write_error != 0 ? write_error : ENOSPC;
            return -1;
        }
        const std::string_view some = bytes.substr(0, std::min(room, at_once));
        room -= some.size();
        return Disk::write(file, some);
    }

    [[nodiscard]] bool truncate(int file, std::uint64_t size) override {
        const auto before = file_facts(file);
        if (!truncates || !Disk::truncate(file, size)) {
            errno = EIO;
            return false;
        }
        if (room != UINT64_MAX && before) {
            room += before->size - size;
        }
        return true;
    }

    [[nodiscard]] bool sync(int file) override {
        ++syncs;
        errno = sync_error;
        return sync_error == 0 && Disk::sync(file);
    }

    [[nodiscard]] std::uint64_t free_bytes(const std::string& /*path*/) override { return free; }

    [[nodiscard]] std::int64_t utc_seconds() override { return time; }
};

} // namespace tw::test
