#include "proxy/channel/shared_run_memory.h"

#include <new>
#include <stdexcept>

#include <fmt/format.h>

namespace tw::channel {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kDataBytes = (sizeof(SharedProcessData) + kPage - 1) / kPage * kPage;

} // namespace

SharedRunMemory::SharedRunMemory(unsigned threads, std::size_t ring_bytes)
    : memory_{base::SharedMemory::create(kDataBytes +
                                         threads * relay::Ring::shared_memory_size(ring_bytes))},
      data_{new (memory_.bytes().data()) SharedProcessData}, threads_{threads} {
    data_->facts.threads = threads;
    data_->facts.started = base::now_utc();
}

SharedRunMemory::SharedRunMemory(base::UniqueFd memory)
    : memory_{base::SharedMemory::attach(std::move(memory))},
      // The relay's process, which is the same program, constructed the SharedProcessData here.
      data_{std::launder(reinterpret_cast<SharedProcessData*>(memory_.bytes().data()))},
      threads_{memory_.bytes().size() > kDataBytes ? data_->facts.threads : 0} {
    if (threads_ == 0 || threads_ > relay::kMaxThreads) {
        throw std::runtime_error{"the memory shared with the relay is invalid"};
    }
}

std::span<std::byte> SharedRunMemory::ring_memory(unsigned thread) const noexcept {
    const std::size_t bytes = (memory_.bytes().size() - kDataBytes) / threads_;
    return memory_.bytes().subspan(kDataBytes + thread * bytes, bytes);
}

std::string RelayFacts::server_address(relay::ServerIndex server) const {
    return is_tap() ? tap_description.data() : base::to_string(servers[server].address());
}

std::string RelayFacts::server_name_and_address(relay::ServerIndex server) const {
    const std::string_view name = servers[server].name_view();
    return name.empty() ? server_address(server)
                        : fmt::format("{} ({})", name, server_address(server));
}

} // namespace tw::channel
