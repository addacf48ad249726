#pragma once

#include "tests/support/capture_writer.h"
#include "tests/support/program.h"
#include "tests/support/session_script.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tw::test {

using Arguments = std::vector<std::string>;

/// Runs the program that was built with the tests.
[[nodiscard]] ProgramResult twscope(const Arguments& arguments, const Arguments& more = {});

[[nodiscard]] Arguments join_arguments(Arguments arguments, const Arguments& more);

/// Runs the program, which must succeed, and returns what it prints.
[[nodiscard]] std::string output_of(const Arguments& arguments, const Arguments& more = {});

/// Runs a line of shell, in which "$twscope" is that program.
[[nodiscard]] ProgramResult run_in_shell(const std::string& line);

/// Waits until `twscope proxy -l 127.0.0.1:0` forwards datagrams. Returns the port that it listens on.
[[nodiscard]] std::uint16_t await_listening_port(const Program& proxy);

/// Checks for a usage error: one line on standard error that contains the text, nothing on standard
/// output, exit code 2.
void check_usage_error(const Arguments& arguments, std::string_view what);

/// Arguments, and a part of the error that they give.
struct InvalidArguments {
    Arguments arguments;
    std::string what;
};

/// Calls check_usage_error() with `start` and the arguments of each row.
void check_usage_errors(const Arguments& start, const std::vector<InvalidArguments>& rows);

struct CaptureClient {
    std::uint32_t address = 0;
    std::uint16_t port = 0;
};

inline constexpr CaptureClient kAnn{0xc6336417, 50000}; ///< 198.51.100.23

/// Builds a capture of clients of one server.
class TestCapture {
  public:
    /// Adds a datagram between the client and the server.
    void add_datagram(const CaptureClient& client, wire::Direction direction,
                      std::span<const std::byte> payload);
    /// Adds a session in which the client joins and gets two snapshots, then leaves.
    void add_session(const CaptureClient& client, const Items& items, std::string_view map = "dm1",
                     std::uint32_t crc = 1, std::size_t size = 100);
    void save(const std::string& path) const;

  private:
    std::vector<PcapFrame> frames_;
    std::uint32_t microseconds_ = 0;
};

/// Writes a capture in which a client sees these items, and returns its path.
std::string save_game(const std::string& path, const Items& items, std::string_view map = "dm1",
                      std::uint32_t crc = 1);

/// A snapshot with one tee, of client 3.
[[nodiscard]] Items tee_at(std::int32_t x, std::int32_t y);

/// A map of 8 x 6 tiles with a wall around it and a finish tile at (2, 2).
[[nodiscard]] std::vector<std::byte> small_map();

/// Writes a map, and returns its path.
std::string save_map(const std::string& path, const std::vector<std::byte>& bytes = small_map());

} // namespace tw::test
