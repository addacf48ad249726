#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tw::inspect {

/// What programs refuse in packets that others take. Only what matters to an observer is here.
struct ReceiverRules {
    std::string_view program;
    bool refuses_compressed_control = false;
    bool refuses_control_with_chunks = false;
    bool refuses_header_token_bit = false; ///< of packets that are not 0.6.5's
};

/// `version`: what a DDNet client announced (major * 1000 + minor * 10 + patch), nothing for a
/// server or while it is not known. Who is not known is taken for today's DDNet: it refuses most,
/// and what it refuses no honest peer sends.
[[nodiscard]] const ReceiverRules& receiver_rules(bool header_token,
                                                  std::optional<std::int32_t> version);

} // namespace tw::inspect
