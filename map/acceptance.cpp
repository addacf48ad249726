#include "map/acceptance.h"

namespace tw::map {
namespace {

std::string rejects(std::string_view why) {
    return "rejects:" + std::string{why};
}

} // namespace

Acceptance judge(const Map& map) {
    Warnings warnings = map.warnings();
    const auto physics = map.physics(&warnings);
    return judge(warnings, physics);
}

Acceptance judge(const Warnings& warnings, const Result<Physics>& physics) {
    if (!physics) {
        return judge(physics.error());
    }
    const auto strict = warnings.first_strict();
    return {strict ? rejects(warning_info(*strict).name) : "accepts", "accepts"};
}

Acceptance judge(const MapError& error) {
    const std::string acceptance = rejects(error_info(error.code).name);
    return {acceptance, acceptance};
}

} // namespace tw::map
