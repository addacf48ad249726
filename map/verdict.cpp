#include "map/verdict.h"

namespace tw::map {
namespace {

std::string rejects(std::string_view why) {
    return "rejects:" + std::string{why};
}

} // namespace

Verdict judge(const Map& map) {
    Oddities oddities = map.oddities();
    const auto physics = map.physics(&oddities);
    return judge(oddities, physics);
}

Verdict judge(const Oddities& oddities, const Result<Physics>& physics) {
    if (!physics) {
        return judge(physics.error());
    }
    const auto strict = oddities.first_strict();
    return {strict ? rejects(oddity_info(*strict).name) : "accepts", "accepts"};
}

Verdict judge(const MapError& error) {
    const std::string verdict = rejects(error_info(error.code).name);
    return {verdict, verdict};
}

} // namespace tw::map
