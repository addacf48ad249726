#pragma once

#include "proxy/bus/nats_objects.h"
#include "proxy/bus/options.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

namespace tw::bus {

/// What went wrong, in one line for people.
template <typename Value>
using Tried = tl::expected<Value, std::string>;

/// What a stream is just now.
struct StreamFacts {
    std::uint64_t first = 0;  ///< the place of its first message, or of the next one
    std::uint64_t last = 0;   ///< the place of its last message
    std::int64_t created = 0; ///< when it was made, by its server's clock: one made anew is another
    StreamLimits limits{};
    bool mixed = false; ///< takes subjects besides NAME.>, too
};

/// One connection to a bus. It does not mend itself: who has it knows at any time what was under way
/// when it broke, and opens another one.
class Link {
  public:
    /// Waits seconds at most. `name`: how the server lists us.
    [[nodiscard]] static Tried<std::unique_ptr<Link>> open(const Access& access,
                                                           const std::string& name);

    [[nodiscard]] natsConnection* connection() const { return connection_.get(); }

    [[nodiscard]] jsCtx* stream_api() const { return stream_api_.get(); }

    [[nodiscard]] bool broken() const { return natsConnection_IsClosed(connection_.get()); }

    /// What the server complained about last; empty: nothing.
    [[nodiscard]] std::string complaint() const;

    /// The status in words, with what the server complained about last.
    [[nodiscard]] std::string describe(natsStatus status) const;

    /// Nothing: there is none of this name.
    [[nodiscard]] Tried<std::optional<StreamFacts>> find_stream(const std::string& stream) const;

    /// Of all streams but the logs of collectors; empty: there are none, or we may not ask.
    [[nodiscard]] std::vector<std::string> stream_names() const;

    /// Makes the stream with these limits when it is not there.
    [[nodiscard]] Tried<StreamFacts> need_stream(const std::string& stream,
                                                 const StreamLimits& limits) const;

  private:
    Link() = default;
    [[nodiscard]] Tried<void> make_stream(const std::string& stream,
                                          const StreamLimits& limits) const;

    NatsOptions options_;
    NatsConnection connection_;
    JetStream stream_api_; ///< goes before the connection
};

} // namespace tw::bus
