#include "proxy/cli/log.h"

#include <memory>
#include <utility>

#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

namespace tw::cli {

sink::PromptStream& log_stream() {
    static sink::PromptStream stream{STDERR_FILENO};
    return stream;
}

void open_log(const std::string& level) {
    const auto colours =
        log_stream().is_terminal() ? spdlog::color_mode::always : spdlog::color_mode::never;
    auto logger = std::make_shared<spdlog::logger>(
        "twscope", std::make_shared<spdlog::sinks::ansicolor_sink<spdlog::details::console_mutex>>(
                       log_stream().file(), colours));
    logger->set_pattern("%H:%M:%S %^%l%$ %v");
    logger->set_level(spdlog::level::from_str(level));
    spdlog::set_default_logger(std::move(logger));
}

} // namespace tw::cli
