#pragma once

#include "proxy/cli/settings.h"
#include "proxy/sink/file_output.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace tw::cli {

/// What the name of a compressed file ends in.
inline constexpr std::string_view kCompressed = ".zst";

/// Whether a file of this name is written compressed. Errors: UsageError for a name that promises another
/// compression.
[[nodiscard]] bool is_compressed(const std::string& flag, std::string_view path);

/// Of what is written at once, and not as it happens, a frame holds this much: a disk that becomes full costs the last
/// one. Smaller ones would compress less well.
inline constexpr std::uint64_t kOfflineFrameText = std::uint64_t{4} << 20U;

/// Opens the file that a flag names ("-": standard output); nothing when the flag was not given.
/// Errors: UsageError that names the flag.
void open_output_file(const std::string& flag, const std::string& path,
                      std::optional<sink::FileOutput>& file);

/// The same for a file of any kind, whose text goes there as it is.
[[nodiscard]] std::unique_ptr<sink::RecordTarget>
open_plain_output(const std::string& flag, const std::string& path,
                  const sink::Units& units = sink::record_lines());

/// The same for records; a name that ends in .zst is compressed. What was in the file is gone.
[[nodiscard]] std::unique_ptr<sink::RecordTarget> open_records_output(const std::string& flag,
                                                                      const std::string& path);

/// Writes what is held back, and says on standard error how many "records" are missing. Returns whether all is there.
[[nodiscard]] bool finish_records(const std::string& flag, sink::RecordTarget& file,
                                  std::string_view what = "records");

/// The complaint about a file that cannot be opened.
[[nodiscard]] UsageError cannot_open(const std::string& flag, const std::string& path,
                                     const std::system_error& error);

} // namespace tw::cli
