#include "proxy/base/clock.h"

#include <iomanip>
#include <sstream>
#include <utility>

namespace tw::base {

std::string format_time(const std::tm& time, const char* format) {
    std::ostringstream text;
    text << std::put_time(&time, format);
    return std::move(text).str();
}

std::string format_utc(std::int64_t seconds, const char* format) {
    std::tm time{};
    const std::time_t moment{seconds};
    return ::gmtime_r(&moment, &time) == nullptr ? std::string{} : format_time(time, format);
}

std::tm local_time(Timestamp time) {
    std::tm local{};
    const auto seconds = std::chrono::floor<std::chrono::seconds>(std::chrono::nanoseconds{time});
    const std::time_t moment{seconds.count()};
    ::localtime_r(&moment, &local);
    return local;
}

} // namespace tw::base
