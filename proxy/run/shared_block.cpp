#include "proxy/run/shared_block.h"

#include <new>
#include <stdexcept>
#include <utility>

namespace tw::run {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kBlockBytes = (sizeof(SharedBlock) + kPage - 1) / kPage * kPage;

} // namespace

SharedRun::SharedRun(unsigned threads, std::size_t ring_bytes)
    : memory_{relay::SharedMemory::create(kBlockBytes +
                                          threads * relay::Ring::shared_bytes(ring_bytes))},
      block_{new (memory_.bytes().data()) SharedBlock}, threads_{threads} {
    block_->facts.threads = threads;
    block_->facts.started = relay::now_utc();
}

SharedRun::SharedRun(relay::UniqueFd memory)
    : memory_{relay::SharedMemory::attach(std::move(memory))},
      // The other process made it one; both are the same program.
      block_{std::launder(reinterpret_cast<SharedBlock*>(memory_.bytes().data()))},
      threads_{memory_.bytes().size() > kBlockBytes ? block_->facts.threads : 0} {
    if (threads_ == 0 || threads_ > relay::kMaxThreads) {
        throw std::runtime_error{"the memory shared with the relay is invalid"};
    }
}

std::span<std::byte> SharedRun::ring(unsigned thread) const noexcept {
    const std::size_t bytes = (memory_.bytes().size() - kBlockBytes) / threads_;
    return memory_.bytes().subspan(kBlockBytes + thread * bytes, bytes);
}

} // namespace tw::run
