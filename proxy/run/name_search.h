#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <boost/asio/ip/udp.hpp>

namespace tw::run {

/// A name is looked up, on a thread of its own that nobody waits for: a resolver may take as long as it
/// likes.
class NameSearch {
  public:
    using Endpoint = boost::asio::ip::udp::endpoint;
    /// The addresses it has now, the best first; none: nobody knows. Called on another thread, also
    /// when its owner is gone.
    using Lookup = std::function<std::vector<Endpoint>()>;

    /// Nothing where there is no thread to be had.
    [[nodiscard]] static std::optional<NameSearch> begin(Lookup lookup);

    /// From then on its result stands.
    [[nodiscard]] bool done() const;

    /// Precondition: done(). None: nobody knows.
    [[nodiscard]] const std::vector<Endpoint>& found() const;

  private:
    struct Result;

    explicit NameSearch(std::shared_ptr<Result> result) : result_{std::move(result)} {}

    std::shared_ptr<Result> result_;
};

} // namespace tw::run
