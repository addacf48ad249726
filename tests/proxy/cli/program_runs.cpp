#include "tests/proxy/cli/program_runs.h"

#include "tests/map/map_builder.h"
#include "tests/map/writer.h"

#include <algorithm>
#include <chrono>

#include <doctest/doctest.h>

namespace tw::test {

using snapshot::kNoBase;

namespace {

constexpr std::uint32_t kServerAddress = 0x0a000001; ///< 10.0.0.1
constexpr std::uint16_t kServerPort = 8303;

} // namespace

ProgramResult twscope(const Arguments& arguments, const Arguments& more) {
    return run_program(TW_TWSCOPE, join_arguments(arguments, more));
}

Arguments join_arguments(Arguments arguments, const Arguments& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
}

std::string output_of(const Arguments& arguments, const Arguments& more) {
    const ProgramResult done = twscope(arguments, more);
    CAPTURE(done.err);
    CHECK(done.status == 0);
    return done.out;
}

ProgramResult run_in_shell(const std::string& line) {
    return run_program("/bin/sh", {"-c", "twscope='" TW_TWSCOPE "'; " + line});
}

std::uint16_t await_listening_port(const Program& proxy) {
    constexpr std::chrono::seconds kTimeout{20};
    constexpr std::string_view kBefore = "listening on 127.0.0.1:";
    std::string log;
    REQUIRE(becomes_true_within(kTimeout, [&] {
        log = proxy.err();
        return log.find(',', log.find(kBefore)) != std::string::npos;
    }));
    return static_cast<std::uint16_t>(std::stoi(log.substr(log.find(kBefore) + kBefore.size())));
}

void check_usage_error(const Arguments& arguments, std::string_view what) {
    const ProgramResult done = twscope(arguments);
    CAPTURE(done.err);
    CHECK(done.status == 2);
    CHECK(done.out.empty());
    CHECK(std::count(done.err.begin(), done.err.end(), '\n') == 1);
    CHECK(contains(done.err, what));
}

void check_usage_errors(const Arguments& start, const std::vector<InvalidArguments>& rows) {
    for (const InvalidArguments& row : rows) {
        CAPTURE(row.arguments.empty() ? row.what : row.arguments.back());
        check_usage_error(join_arguments(start, row.arguments), row.what);
    }
}

void TestCapture::add_datagram(const CaptureClient& client, wire::Direction direction,
                               std::span<const std::byte> payload) {
    const CaptureClient server{kServerAddress, kServerPort};
    const CaptureClient& from = direction == kC2s ? client : server;
    const CaptureClient& to = direction == kC2s ? server : client;
    CaptureBytes frame;
    frame.zeros(12).be16(0x0800);
    frame.u8(0x45).u8(0).be16(static_cast<std::uint32_t>(28 + payload.size()));
    frame.be32(0).u8(64).u8(17).be16(0).be32(from.address).be32(to.address);
    frame.be16(from.port).be16(to.port);
    frame.be16(static_cast<std::uint32_t>(8 + payload.size())).be16(0).raw(payload);
    frames_.push_back({.fraction = ++microseconds_ * 1000, .bytes = frame.bytes()});
}

void TestCapture::add_session(const CaptureClient& client, const Items& items, std::string_view map,
                              std::uint32_t crc, std::size_t size) {
    SessionScript peers; // used only to build packets
    peers.assume_ddnet();
    constexpr auto kToken = SessionScript::kToken;
    using wire::ControlKind;
    add_datagram(
        client, kC2s,
        wire::encode_control({.kind = ControlKind::connect, .token = wire::kTokenUnknown}));
    add_datagram(client, kS2c,
                 wire::encode_control({.kind = ControlKind::connectaccept, .token = kToken}));
    add_datagram(client, kC2s,
                 wire::encode_control({.kind = ControlKind::accept, .token = kToken}));
    const auto change = message("map_change")
                            .string(map)
                            .number(static_cast<std::int32_t>(crc))
                            .number(static_cast<std::int32_t>(size));
    add_datagram(client, kS2c, peers.pack(kS2c, {vital(change)}));
    add_datagram(client, kC2s, peers.pack(kC2s, {vital(message("ready"))}));
    add_datagram(client, kC2s, peers.pack(kC2s, {vital(message("enter_game"))}));
    add_datagram(client, kS2c, peers.snap_datagram(10, kNoBase, items));
    Items moved = items;
    for (auto& [key, data] : moved) {
        if (key.type == 9) {
            data[1] += 64;
        }
    }
    add_datagram(client, kS2c, peers.snap_datagram(12, 10, moved));
    add_datagram(client, kC2s, wire::encode_control({.kind = ControlKind::close, .token = kToken}));
}

void TestCapture::save(const std::string& path) const {
    const FrameBytes bytes = pcap_file({}, frames_);
    write_text(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::string save_game(const std::string& path, const Items& items, std::string_view map,
                      std::uint32_t crc) {
    TestCapture recording;
    recording.add_session(kAnn, items, map, crc);
    recording.save(path);
    return path;
}

Items tee_at(std::int32_t x, std::int32_t y) {
    std::vector<std::int32_t> tee(22, 0);
    tee[1] = x;
    tee[2] = y;
    return {{{9, 3}, tee}};
}

std::vector<std::byte> small_map() {
    map::test::MapBuilder builder{8, 6};
    for (int x = 0; x < 8; ++x) {
        for (int y = 0; y < 6; ++y) {
            if (x == 0 || y == 0 || x == 7 || y == 5) {
                builder.set_game(x, y, 1);
            }
        }
    }
    builder.set_game(2, 2, 34);
    return builder.build();
}

std::string save_map(const std::string& path, const std::vector<std::byte>& bytes) {
    REQUIRE(map::test::write_file(path, bytes));
    return path;
}

} // namespace tw::test
