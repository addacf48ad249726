#include "proxy/sink/disk.h"

#include <ctime>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace tw::sink {

namespace {

FileFacts facts_of(const struct stat& found) {
    return {.device = found.st_dev,
            .inode = found.st_ino,
            .size = static_cast<std::uint64_t>(found.st_size),
            .written = found.st_mtim.tv_sec,
            .regular = S_ISREG(found.st_mode)};
}

} // namespace

int Disk::open(const std::string& path, How how, Readers readers) {
    const int extra = how == How::empty ? O_TRUNC : how == How::create ? O_EXCL : 0;
    return ::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | extra, mode_of(readers));
}

ssize_t Disk::write(int file, std::string_view bytes) {
    return ::write(file, bytes.data(), bytes.size());
}

bool Disk::truncate(int file, std::uint64_t size) {
    return ::ftruncate(file, static_cast<off_t>(size)) == 0;
}

/// Of a file that is always written at its end, pwrite takes no notice of the place.
bool Disk::patch(int file, std::uint64_t at, std::string_view bytes) {
    const int flags = ::fcntl(file, F_GETFL);
    if (flags < 0 || ::fcntl(file, F_SETFL, flags & ~O_APPEND) != 0) {
        return false;
    }
    const bool done = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(at)) ==
                      static_cast<ssize_t>(bytes.size());
    return ::fcntl(file, F_SETFL, flags) == 0 && done;
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

std::int64_t Disk::utc() {
    return std::time(nullptr);
}

Disk& system_disk() {
    static Disk disk;
    return disk;
}

} // namespace tw::sink
