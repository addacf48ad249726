#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tw::bus {

/// What a spool knows of one run besides its lines.
struct SpoolState {
    std::uint64_t settled = 0;          ///< all up to here is in the stream or lost
    std::optional<std::uint64_t> place; ///< see Backlog; nothing: nothing was ever published
    std::string server;                 ///< as a part of subjects
    std::string stream; ///< that it is for; empty: a version before this one wrote it

    /// Whether what waits may go to this stream.
    [[nodiscard]] bool is_for(std::string_view other) const {
        return stream.empty() || stream == other;
    }

    friend bool operator==(const SpoolState&, const SpoolState&) = default;
};

/// As a file holds it: one line of a length that does not change.
/// Layout: "settled=NUMBER place=NUMBER server=NAME stream=NAME\n", numbers with 20 digits; place - for nothing.
[[nodiscard]] std::string spool_state_text(const SpoolState& state);

/// Nothing: it is no such text.
[[nodiscard]] std::optional<SpoolState> read_spool_state(std::string_view text);

/// The name of a file of lines: RUN-NUMBER.jsonl, after its first line.
[[nodiscard]] std::string spool_file_name(std::string_view run, std::uint64_t first);

/// Whose lines a file holds, and from where on.
struct SpoolFile {
    std::string run;
    std::uint64_t first = 0;

    friend bool operator==(const SpoolFile&, const SpoolFile&) = default;
};

[[nodiscard]] std::optional<SpoolFile> read_spool_file_name(std::string_view name);

/// What a state's file is called.
[[nodiscard]] std::string spool_state_name(std::string_view run);
/// Nothing: another file.
[[nodiscard]] std::optional<std::string> run_of_state_name(std::string_view name);

} // namespace tw::bus
