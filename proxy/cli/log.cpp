#include "proxy/cli/log.h"

#include "proxy/base/descriptors.h"

#include <array>
#include <cerrno>
#include <memory>
#include <system_error>
#include <tuple>

#include <fcntl.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>

namespace tw::cli {

namespace {

/// Writes the text of a log line, wrapped on a terminal. The time and the level stand before it.
class WrappedLogText final : public spdlog::custom_flag_formatter {
  public:
    void format(const spdlog::details::log_msg& message, const std::tm& /*time*/,
                spdlog::memory_buf_t& out) override {
        constexpr std::string_view kTime = "12:00:00";
        const std::size_t before =
            kTime.size() + spdlog::level::to_string_view(message.level).size() + 2;
        const std::string line =
            std::string(before, '-').append(message.payload.data(), message.payload.size());
        out.append(
            sink::wrap_words(line, sink::columns_for_wrapping(STDERR_FILENO)).substr(before));
    }

    [[nodiscard]] std::unique_ptr<custom_flag_formatter> clone() const override {
        return std::make_unique<WrappedLogText>();
    }
};

} // namespace

sink::BoundedWaitStream& log_stream() {
    static sink::BoundedWaitStream stream{STDERR_FILENO};
    return stream;
}

void open_log(const std::string& level) {
    const auto colours =
        log_stream().is_colored() ? spdlog::color_mode::always : spdlog::color_mode::never;
    auto logger = std::make_shared<spdlog::logger>(
        "twscope", std::make_shared<spdlog::sinks::ansicolor_sink<spdlog::details::console_mutex>>(
                       log_stream().file(), colours));
    // On a terminal a log line takes the place of the status line, which is written again below it.
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    formatter->add_flag<WrappedLogText>('*');
    formatter->set_pattern(
        (log_stream().can_redraw() ? std::string{sink::kEraseLine} : "") +
        (log_stream().log_lines_need_dates() ? "%Y-%m-%dT%H:%M:%S%z" : "%H:%M:%S") + " %^%l%$ %*");
    logger->set_formatter(std::move(formatter));
    logger->set_level(spdlog::level::from_str(level));
    spdlog::set_default_logger(std::move(logger));
}

void set_log_colors(sink::Colors colors) {
    log_stream().set_colors(colors);
    open_log(spdlog::level::to_string_view(spdlog::get_level()).data());
}

int run_in_background(const std::function<int(const std::function<void()>& started)>& work) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        throw std::system_error{errno, std::generic_category(), "pipe"};
    }
    base::UniqueFd heard{ends[0]};
    base::UniqueFd told{ends[1]};
    const pid_t child = ::fork();
    if (child < 0) {
        throw std::system_error{errno, std::generic_category(), "fork"};
    }
    if (child == 0) {
        heard = base::UniqueFd{};
        ::setsid();
        return work([&told] { std::ignore = ::write(told.get(), "1", 1); });
    }
    told = base::UniqueFd{};
    char byte = 0;
    ssize_t received = 0;
    do {
        received = ::read(heard.get(), &byte, 1);
    } while (received < 0 && errno == EINTR);
    if (received == 1) {
        return 0;
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    constexpr int kSignalled = 128; // the base of exit codes for signals, as in shells
    return WIFEXITED(status) ? WEXITSTATUS(status) : kSignalled + WTERMSIG(status);
}

} // namespace tw::cli
