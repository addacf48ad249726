#include "proxy/base/descriptors.h"
#include "proxy/bus/bus_output.h"
#include "proxy/filter/json_line.h"
#include "tests/support/full_disk.h"
#include "tests/support/program.h"

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <sstream>
#include <string>

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace {

using tw::bus::BusOutput;
using tw::bus::PublishOptions;

/// A server that accepts connections and never sends anything.
class SilentServer {
  public:
    SilentServer() {
        sockaddr_in here{};
        here.sin_family = AF_INET;
        here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof here;
        auto* const address = reinterpret_cast<sockaddr*>(&here);
        REQUIRE(::bind(socket_.get(), address, size) == 0);
        REQUIRE(::listen(socket_.get(), 1) == 0);
        REQUIRE(::getsockname(socket_.get(), address, &size) == 0);
        port_ = ntohs(here.sin_port);
    }

    [[nodiscard]] std::string url() const { return fmt::format("nats://127.0.0.1:{}", port_); }

  private:
    tw::base::UniqueFd socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    std::uint16_t port_ = 0;
};

constexpr tw::bus::BusTimeouts kZeroTimeouts{.write = std::chrono::milliseconds{0},
                                             .finish_writing = std::chrono::milliseconds{0}};

PublishOptions spool_options(const SilentServer& server, const tw::test::TemporaryFolder& where) {
    return {.access = {.urls = {server.url()}},
            .server = "one",
            .spool = where.path(),
            .spool_bytes = tw::bus::SpoolFolder::kMinSpoolBytes};
}

/// Returns all lines in the files of a spool, in order.
std::string read_spool_lines(const tw::test::TemporaryFolder& where) {
    std::string text;
    for (const auto& path : where.files()) {
        if (path.extension() == ".jsonl") {
            text += tw::test::read_text(path);
        }
    }
    return text;
}

TEST_CASE("a bus that never answers does not keep a run from ending") {
    using namespace std::chrono_literals;
    const SilentServer server;
    BusOutput output{PublishOptions{.access = {.urls = {server.url()}}, .server = "one"},
                     {.write = 0ms, .finish_writing = 0ms}};
    output.write("{\"type\":\"a\"}\n{\"type\":\"b\"}\n");
    const auto begun = std::chrono::steady_clock::now();
    output.finish_writing();
    CHECK(std::chrono::steady_clock::now() - begun < 3s); // the library's timeout
    CHECK(output.num_lost_entries() == 2);
}

TEST_CASE("after a full disk has room again, records are stored, with or without do_due_work()") {
    const SilentServer server;
    const tw::test::TemporaryFolder where;
    {
        BusOutput output{spool_options(server, where), kZeroTimeouts};
        {
            const tw::test::FullDisk full;
            output.write("{\"type\":\"a\"}\n");
            CHECK_FALSE(output.accepts_data());
        }
        output.write("{\"type\":\"b\"}\n");
        CHECK(output.accepts_data());
        output.finish_writing();
        CHECK(output.num_lost_entries() == 0);
    }
    CHECK(read_spool_lines(where) == "{\"type\":\"a\"}\n{\"type\":\"b\"}\n");
}

TEST_CASE("dropped lines of a spool are reported, with or without do_due_work()") {
    const SilentServer server;
    const tw::test::TemporaryFolder where;
    BusOutput output{spool_options(server, where), kZeroTimeouts};
    const std::string line = fmt::format("{{\"type\":\"a\",\"pad\":\"{:01000}\"}}\n", 0);
    for (std::size_t bytes = 0; bytes < 2 * tw::bus::SpoolFolder::kMinSpoolBytes;
         bytes += line.size()) {
        output.write(line);
    }
    output.finish_writing();
    CHECK(output.num_lost_entries() > 500);
    const std::string left = read_spool_lines(where);
    CHECK(left.find(fmt::format(R"("type":"records_lost","session":0,"lost":{})",
                                output.num_lost_entries())) != std::string::npos);
}

TEST_CASE("records that are written after the spool was removed are lost and counted") {
    const SilentServer server;
    const tw::test::TemporaryFolder where;
    BusOutput output{spool_options(server, where), kZeroTimeouts};
    output.write("{\"type\":\"a\"}\n");
    std::filesystem::remove_all(where.path());
    const std::string block = fmt::format("{{\"type\":\"{:040000}\"}}\n", 0);
    output.write(block); // is still written to the open file
    CHECK(output.num_lost_entries() == 0);
    for (std::uint64_t i = 0; i < 5; ++i) {
        output.write(block);
    }
    CHECK(output.num_lost_entries() == 5);
    CHECK(output.totals().dropped == 5);
    CHECK(output.accepts_data()); // callers need not keep lines for it
    CHECK(output.error() == ENOENT);
}

TEST_CASE("a dropped line that reported a loss is reported again with that loss") {
    const SilentServer server;
    const tw::test::TemporaryFolder where;
    BusOutput output{spool_options(server, where), kZeroTimeouts};
    const std::string line = fmt::format("{{\"type\":\"a\",\"pad\":\"{:01000}\"}}\n", 0);
    auto now = std::chrono::steady_clock::now();
    for (int i = 0; i < 5'000; ++i) {
        output.write(line);
        if (i % 50 == 0) {
            output.do_due_work(now += std::chrono::seconds{2});
        }
    }
    output.finish_writing();
    std::istringstream left{read_spool_lines(where)};
    std::uint64_t kept = 0;
    std::uint64_t tells = 0;
    std::uint64_t reported = 0;
    for (std::string each; std::getline(left, each);) {
        const bool loss = each.find(R"("type":"records_lost")") != std::string::npos;
        kept += loss ? 0 : 1;
        tells += loss ? 1 : 0;
        reported += loss ? tw::filter::JsonLine{each}.object().find_count("lost") : 0;
    }
    CHECK(tells > 1);
    CHECK(reported == output.num_lost_entries());
    CHECK(output.num_lost_entries() > 5'000 - kept); // lines that reported losses are counted, too
}

} // namespace
