#include "proxy/inspect/receiver_rules.h"

namespace tw::inspect {

namespace {

/// Protocol sheet, section 1.2, "What receivers refuse, beyond size".
constexpr ReceiverRules kVanilla{.program = "vanilla 0.6"};
/// CNetBase::UnpackPacket since 10.3.
constexpr ReceiverRules kDdnetBefore194{.program = "DDNet 10.3 to 19.3",
                                        .refuses_compressed_control = true};
/// CNetBase::IsValidConnectionOrientedPacket since 19.4.
constexpr ReceiverRules kDdnet{.program = "DDNet since 19.4",
                               .refuses_compressed_control = true,
                               .refuses_control_with_chunks = true,
                               .refuses_header_token_bit = true};

constexpr std::int32_t kStrictSince = 19040;
/// Before DDNet 11 version numbers followed another scheme, with all of them below this.
constexpr std::int32_t kFirstOfScheme = 11000;

} // namespace

const ReceiverRules& receiver_rules(bool header_token, std::optional<std::int32_t> version) {
    if (header_token) {
        return kVanilla;
    }
    const bool older = version && *version >= kFirstOfScheme && *version < kStrictSince;
    return older ? kDdnetBefore194 : kDdnet;
}

} // namespace tw::inspect
