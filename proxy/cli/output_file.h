#pragma once

#include "proxy/sink/file_output.h"

#include <optional>
#include <string>

namespace tw::cli {

/// Opens the file that a flag names ("-": standard output); nothing when the flag was not given.
/// Errors: UsageError that names the flag.
void open_output_file(const std::string& flag, const std::string& path,
                      std::optional<sink::FileOutput>& file,
                      sink::FileOutput::Begin begin = sink::FileOutput::Begin::empty);

} // namespace tw::cli
