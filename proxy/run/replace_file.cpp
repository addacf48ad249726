#include "proxy/run/replace_file.h"

#include "proxy/sink/file_output.h"

#include <string>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

namespace tw::run {

namespace {

std::error_code write_file(const std::string& path, std::span<const std::byte> bytes) {
    try {
        sink::FileOutput file{path};
        file.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
        return {file.error(), std::generic_category()};
    } catch (const std::system_error& error) {
        return error.code();
    }
}

} // namespace

std::error_code replace_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
    auto aside = path;
    aside += fmt::format(".{}.tmp", ::getpid());
    std::error_code error = write_file(aside.string(), bytes);
    if (!error) {
        std::filesystem::rename(aside, path, error);
    }
    if (error) {
        std::error_code ignored;
        std::filesystem::remove(aside, ignored);
    }
    return error;
}

} // namespace tw::run
