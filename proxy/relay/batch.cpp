#include "proxy/relay/batch.h"

#include <algorithm>
#include <cerrno>
#include <new>

#include <sys/mman.h>

namespace tw::relay {

namespace {

/// Buffers a power of two apart would all fall into the same few cache sets.
constexpr std::size_t kStride = Batch::kBufferBytes + std::size_t{2} * 1024 + 128;
constexpr std::size_t kMemory = kStride * Batch::kDatagrams;

} // namespace

Batch::Batch() {
    void* const memory = ::mmap(nullptr, kMemory, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        throw std::bad_alloc{};
    }
    memory_ = static_cast<std::byte*>(memory);
    for (std::size_t i = 0; i < kDatagrams; ++i) {
        vectors_[i] = {memory_ + i * kStride, kBufferBytes};
        messages_[i].msg_hdr.msg_iov = &vectors_[i];
        messages_[i].msg_hdr.msg_iovlen = 1;
    }
}

Batch::~Batch() {
    ::munmap(memory_, kMemory);
}

int Batch::receive(int socket, std::size_t at, std::size_t max, bool with_names,
                   bool with_control) noexcept {
    const std::size_t end = std::min(at + max, kDatagrams);
    for (std::size_t i = at; i < end; ++i) {
        vectors_[i].iov_len = kBufferBytes;
        msghdr& header = messages_[i].msg_hdr;
        header.msg_name = with_names ? &names_[i] : nullptr;
        header.msg_namelen = with_names ? sizeof names_[i] : 0;
        header.msg_control = with_control ? control_[i].data() : nullptr;
        header.msg_controllen = with_control ? control_[i].size() : 0;
    }
    const int received =
        ::recvmmsg(socket, &messages_[at], static_cast<unsigned>(end - at), MSG_DONTWAIT, nullptr);
    return received < 0 ? -errno : received;
}

} // namespace tw::relay
