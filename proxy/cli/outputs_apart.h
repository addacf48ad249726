#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tw::cli {

/// A file that a flag names.
struct NamedOutput {
    std::string_view flag;
    const std::string& path; ///< empty: the flag was not given
};

/// To be called before any of them is opened, which empties it. Folders, pipes and devices may be named twice.
/// Errors: UsageError for what is also read, or written by another flag.
void keep_apart(const std::vector<std::string>& read, const std::vector<NamedOutput>& written);

/// The same. Errors: UsageError also for what cannot be written.
void check_outputs(const std::vector<std::string>& read, const std::vector<NamedOutput>& written);

} // namespace tw::cli
