#include "proxy/pipeline/worker_result.h"

#include "proxy/base/files.h"
#include "proxy/inspect/connection/session_checkpoint.h"

#include <array>
#include <cerrno>
#include <span>
#include <utility>

#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <unistd.h>

namespace tw::pipeline {

namespace {

/// The version of the file's layout; increase it with every change. inspect::SessionCheckpoint has
/// its own version.
constexpr std::uint32_t kVersion = 4;

bool read_all(int file, std::span<std::byte> bytes, off_t& at) {
    while (!bytes.empty()) {
        const ssize_t got = ::pread(file, bytes.data(), bytes.size(), at);
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return false;
        }
        at += got < 0 ? 0 : got;
        bytes = bytes.subspan(got < 0 ? 0 : static_cast<std::size_t>(got));
    }
    return true;
}

bool read_number(int file, std::uint32_t& number, off_t& at) {
    return read_all(file, std::as_writable_bytes(std::span{&number, 1}), at);
}

} // namespace

base::UniqueFd create_checkpoint_file() {
    return base::UniqueFd{::memfd_create("twscope-checkpoints", MFD_CLOEXEC)};
}

std::size_t write_checkpoints(int file, const SessionCheckpoints& checkpoints) {
    std::size_t written = 0;
    std::size_t total = 0;
    if (base::write_all(file, std::as_bytes(std::span{&kVersion, 1}))) {
        return 0;
    }
    for (const auto& [number, checkpoint] : checkpoints) {
        const std::vector<std::byte> bytes = inspect::encode_checkpoint(checkpoint);
        const std::array<std::uint32_t, 2> head{number, static_cast<std::uint32_t>(bytes.size())};
        total += sizeof(head) + bytes.size();
        if (total > kMaxCheckpointBytes || base::write_all(file, std::as_bytes(std::span{head})) ||
            base::write_all(file, bytes)) {
            break;
        }
        ++written;
    }
    return written;
}

void save_checkpoints(const base::UniqueFd& file, const SessionCheckpoints& checkpoints) {
    if (!file.valid()) {
        return;
    }
    const std::size_t all = checkpoints.size();
    const std::size_t left = write_checkpoints(file.get(), checkpoints);
    if (left != all) {
        spdlog::warn("{} of {} sessions are joined midway: there is too much to hand over",
                     all - left, all);
    }
}

SessionCheckpoints read_checkpoints(int file) {
    SessionCheckpoints checkpoints;
    off_t at = 0;
    std::uint32_t version = 0;
    if (!read_number(file, version, at) || version != kVersion) {
        return checkpoints;
    }
    std::vector<std::byte> bytes;
    std::uint32_t number = 0;
    std::uint32_t size = 0;
    while (read_number(file, number, at) && read_number(file, size, at) &&
           size <= inspect::kMaxEncodedCheckpoint) {
        bytes.resize(size);
        if (!read_all(file, bytes, at)) {
            break;
        }
        if (auto checkpoint = inspect::decode_checkpoint(bytes)) {
            checkpoints.insert_or_assign(number, *std::move(checkpoint));
        }
    }
    return checkpoints;
}

} // namespace tw::pipeline
