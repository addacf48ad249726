#include "proxy/cli/output_file.h"

#include "proxy/cli/settings.h"

#include <system_error>

#include <fmt/format.h>

namespace tw::cli {

void open_output_file(const std::string& flag, const std::string& path,
                      std::optional<sink::FileOutput>& file, sink::FileOutput::Begin begin) {
    if (path.empty()) {
        return;
    }
    try {
        file.emplace(path, begin);
    } catch (const std::system_error& error) {
        throw UsageError{fmt::format("{} {}: {}; name a file in a folder that exists and may be "
                                     "written",
                                     flag, path, error.code().message())};
    }
}

} // namespace tw::cli
