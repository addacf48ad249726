#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tw::bus {

/// What JetStream answers to a published message.
struct PublishAnswer {
    std::uint64_t place = 0; ///< in the stream; 0: it was refused
    bool duplicate = false;  ///< the stream had it already
    bool too_long = false;   ///< this message will never be taken
    std::string complaint{};
};

/// Layout: {"stream":"twscope","seq":7,"duplicate":true} or {"error":{"err_code":10054,"description":"…"}}.
[[nodiscard]] PublishAnswer read_publish_answer(std::string_view json);

} // namespace tw::bus
