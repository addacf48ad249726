#include "proxy/base/log.h"

#include <spdlog/spdlog.h>

namespace tw::log {

void write_line(Level level, std::string_view line) {
    spdlog::log(static_cast<spdlog::level::level_enum>(level), line);
}

void set_level(const std::string& name) {
    spdlog::set_level(spdlog::level::from_str(name));
}

} // namespace tw::log
