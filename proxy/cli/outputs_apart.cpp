#include "proxy/cli/outputs_apart.h"

#include "proxy/cli/output_file.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

namespace tw::cli {

namespace {

namespace fs = std::filesystem;

/// Whether writing to one of the names changes what stands under the other.
bool same_file(const std::string& a, const std::string& b) {
    if (a.empty() || b.empty() || a == "-" || b == "-" || a.back() == '/' || b.back() == '/') {
        return false;
    }
    std::error_code ignored;
    const fs::file_status state = fs::status(a, ignored);
    if (fs::exists(state)) {
        return fs::is_regular_file(state) && fs::equivalent(a, b, ignored);
    }
    const auto full_name = [&ignored](const std::string& path) { // a new file's stays relative
        return fs::weakly_canonical(fs::absolute(path, ignored), ignored);
    };
    return full_name(a) == full_name(b);
}

/// Errors: UsageError for what cannot be made, or may not be written.
void check_writable(const NamedOutput& output) {
    if (output.path.empty() || output.path == "-") {
        return;
    }
    std::error_code ignored;
    const bool there = fs::exists(output.path, ignored);
    const fs::path folder = fs::path{output.path}.parent_path();
    const std::string needed = there ? output.path : folder.empty() ? "." : folder.string();
    if (::access(needed.c_str(), W_OK) != 0) {
        throw cannot_open(std::string{output.flag}, output.path,
                          std::system_error{errno, std::generic_category()});
    }
}

} // namespace

void keep_apart(const std::vector<std::string>& read, const std::vector<NamedOutput>& written) {
    for (auto each = written.begin(); each != written.end(); ++each) {
        for (const std::string& path : read) {
            if (same_file(each->path, path)) {
                throw UsageError{fmt::format("{} {}: is also an input; name another file",
                                             each->flag, each->path)};
            }
        }
        for (auto other = written.begin(); other != each; ++other) {
            if (same_file(each->path, other->path)) {
                throw UsageError{fmt::format("{} {}: {} also writes to it; name another file",
                                             each->flag, each->path, other->flag)};
            }
        }
    }
}

void check_outputs(const std::vector<std::string>& read, const std::vector<NamedOutput>& written) {
    keep_apart(read, written);
    for (const NamedOutput& output : written) {
        check_writable(output);
    }
}

} // namespace tw::cli
