// Covers: proxy/capture/capture_file.cpp
#include "proxy/capture/capture_file.h"
#include "proxy/sink/pcapng.h"
#include "tests/support/capture_writer.h"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using capture::StateBlockReader;

namespace {

using Bytes = std::vector<std::byte>;

/// Builds a file of packets and states as twscope writes it.
class File {
  public:
    File() : bytes_{sink::CaptureBlocks::head()} {}

    File& packet() {
        Bytes frame;
        sink::make_udp_frame(kClient, kServer, Bytes(10, std::byte{1}), frame);
        sink::PcapngEncoder{}.append_packet({.frame = frame}, bytes_);
        return *this;
    }

    File& state(const std::string& text) {
        sink::put_session_state(
            {.client = kClient, .server = kServer, .bytes = std::as_bytes(std::span{text})},
            bytes_);
        return *this;
    }

    File& block(std::uint32_t type, std::size_t size) {
        sink::PcapngEncoder{}.append_block(type, Bytes(size, std::byte{0x6b}), bytes_);
        return *this;
    }

    File& section() {
        const Bytes head = sink::CaptureBlocks::head();
        return raw(head);
    }

    File& raw(const Bytes& bytes) {
        bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
        return *this;
    }

    [[nodiscard]] const Bytes& bytes() const { return bytes_; }

  private:
    static constexpr sink::FrameEndpoint kClient{.address = {127, 0, 0, 1}, .port = 50000};
    static constexpr sink::FrameEndpoint kServer{.address = {127, 0, 0, 1}, .port = 8303};

    Bytes bytes_;
};

/// Returns the states before the first packets; "-" for a packet without a state.
std::string found(StateBlockReader& blocks, std::uint64_t packets) {
    std::string text;
    for (std::uint64_t packet = 0; packet < packets; ++packet) {
        const auto* const state = blocks.state_before(packet);
        for (const std::byte byte : state == nullptr ? Bytes{std::byte{'-'}} : state->bytes) {
            text += static_cast<char>(byte);
        }
    }
    return text;
}

} // namespace

TEST_CASE("a state belongs to the packet after it") {
    struct Row {
        const char* name;
        Bytes bytes;
        std::string found; ///< states before the first four packets
    };

    const std::string text(5000, 'x');
    Bytes broken = File{}.state("a").packet().state("b").packet().bytes();
    broken[File{}.bytes().size() + 4] = std::byte{3}; // an invalid block length
    const Row rows[] = {
        {"at the beginning", File{}.state("a").packet().bytes(), "a---"},
        {"in the middle", File{}.packet().packet().state("c").packet().bytes(), "--c-"},
        {"two in a row: the last", File{}.state("a").state("b").packet().bytes(), "b---"},
        {"before each", File{}.state("a").packet().state("b").packet().bytes(), "ab--"},
        {"at the end", File{}.packet().state("b").bytes(), "-b--"},
        {"behind another section", File{}.packet().section().state("b").packet().bytes(), "-b--"},
        {"among blocks of others",
         File{}.block(5, 64).state("a").block(0x8000beef, 3).packet().bytes(), "a---"},
        {"of the type, and another's",
         File{}.block(sink::kStateBlock, 100).packet().state("b").bytes(), "-b--"},
        {"of the type, and empty", File{}.block(sink::kStateBlock, 0).packet().state("b").bytes(),
         "-b--"},
        {"of the type, and too large",
         File{}.block(sink::kStateBlock, 5'000'000).packet().state("b").bytes(), "-b--"},
        {"what is no block", broken, "----"},
        {"no section", Bytes(100, std::byte{1}), "----"},
        {"nothing", {}, "----"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        StateBlockReader whole;
        whole.on_bytes(row.bytes);
        CHECK(found(whole, 4) == row.found);
        for (const std::size_t size : {1U, 7U, 4096U}) {
            CAPTURE(size);
            StateBlockReader pieces;
            for (std::size_t at = 0; at < row.bytes.size(); at += size) {
                pieces.on_bytes(
                    std::span{row.bytes}.subspan(at, std::min(size, row.bytes.size() - at)));
            }
            CHECK(found(pieces, 4) == row.found);
        }
    }
}

TEST_CASE("a capture cut at any byte gives the complete states") {
    const Bytes bytes = File{}.state("a").packet().state("b").packet().bytes();
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        CAPTURE(size);
        StateBlockReader blocks;
        blocks.on_bytes(std::span{bytes}.first(size));
        const std::string states = found(blocks, 2);
        CHECK((states == "--" || states == "a-" || states == "ab"));
    }
}

TEST_CASE("libpcap skips states, and CaptureFile returns them with their datagrams") {
    const test::TemporaryFile file{File{}
                                       .packet()
                                       .state("b")
                                       .packet()
                                       .block(0x8000beef, 12)
                                       .packet()
                                       .section()
                                       .state("d")
                                       .packet()
                                       .bytes()};
    capture::CaptureFile capture{file.path()};
    capture::CapturedDatagram datagram;
    std::string states;
    while (capture.read_datagram(datagram)) {
        states += datagram.state == nullptr ? '-' : static_cast<char>(datagram.state->bytes.at(0));
        if (datagram.state != nullptr) {
            CHECK(datagram.state->client == datagram.source);
            CHECK(datagram.state->server == datagram.destination);
        }
    }
    CHECK(states == "-b-d");
    CHECK(capture.counts().frames == 4);
    CHECK(capture.read_error().empty());
}

TEST_CASE("states are found in the other byte order, too") {
    const auto frame = test::FrameBytes(60, std::byte{0});
    Bytes bytes = test::pcapng_file(true, 1, 9, {{1, frame}, {2, frame}});
    StateBlockReader blocks;
    blocks.on_bytes(bytes);
    CHECK(found(blocks, 2) == "--");
    const Bytes more =
        File{}.state("c").packet().bytes(); // followed by a section that twscope wrote
    blocks.on_bytes(more);
    CHECK(found(blocks, 3) == "--c");
}
