#include "proxy/run/name_search.h"

#include <atomic>
#include <exception>
#include <system_error>
#include <thread>
#include <utility>

namespace tw::run {

struct NameSearch::Result {
    std::vector<Endpoint> found;
    std::atomic<bool> done{false}; ///< from then on `found` is its owner's
};

std::optional<NameSearch> NameSearch::begin(Lookup lookup) {
    auto result = std::make_shared<Result>();
    try {
        std::thread{[result, lookup = std::move(lookup)] {
            try {
                result->found = lookup();
            } catch (const std::exception&) {
                result->found.clear(); // as if nobody knew it
            }
            result->done.store(true, std::memory_order_release);
        }}.detach();
    } catch (const std::system_error&) {
        return std::nullopt;
    }
    return NameSearch{std::move(result)};
}

bool NameSearch::done() const {
    return result_->done.load(std::memory_order_acquire);
}

const std::vector<NameSearch::Endpoint>& NameSearch::found() const {
    return result_->found;
}

} // namespace tw::run
