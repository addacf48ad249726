// Covers: proxy/channel/process_link.cpp
#include "proxy/channel/process_link.h"

#include <array>
#include <string>

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace tw;
using channel::ControlMessage;
using channel::ProcessLink;

TEST_CASE("messages arrive whole and in order, in both directions") {
    auto [relay, observer] = ProcessLink::create_pair();
    CHECK_FALSE(relay.receive());
    CHECK(observer.send(ControlMessage::ready));
    CHECK(observer.send(ControlMessage::impairment, "loss=2%"));
    CHECK(relay.send(ControlMessage::finish));
    const auto first = relay.receive();
    REQUIRE(first);
    CHECK(first->kind == ControlMessage::ready);
    CHECK(first->text.empty());
    const auto second = relay.receive();
    REQUIRE(second);
    CHECK(second->kind == ControlMessage::impairment);
    CHECK(second->text == "loss=2%");
    CHECK_FALSE(relay.receive());
    CHECK_FALSE(relay.is_closed());
    REQUIRE(observer.receive());
}

TEST_CASE("the end of the peer is noticed after its last message, and sending to it does no harm") {
    auto ends = ProcessLink::create_pair();
    {
        const ProcessLink gone = std::move(ends.second);
        CHECK(gone.send(ControlMessage::ready));
    }
    CHECK(ends.first.receive());
    CHECK_FALSE(ends.first.is_closed());
    CHECK_FALSE(ends.first.receive());
    CHECK(ends.first.is_closed());
    CHECK_FALSE(ends.first.send(ControlMessage::finish));
}

TEST_CASE("sending does not wait for a peer that does not read, and never cuts a text") {
    auto [relay, observer] = ProcessLink::create_pair();
    CHECK_FALSE(observer.send(ControlMessage::impairment,
                              std::string(ProcessLink::kMaxTextBytes + 1, 'x')));
    const std::string longest(ProcessLink::kMaxTextBytes, 'y');
    std::size_t sent = 0;
    while (observer.send(ControlMessage::impairment, longest)) {
        ++sent;
        REQUIRE(sent < 100'000);
    }
    CHECK(sent > 0);
    std::size_t received = 0;
    while (const auto message = relay.receive()) {
        CHECK(message->text == longest);
        ++received;
    }
    CHECK(received == sent);
}

TEST_CASE("an invalid message does not end the connection") {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends.data()) == 0);
    ProcessLink relay{base::UniqueFd{ends[0]}};
    const base::UniqueFd mad{ends[1]};
    const std::string huge(50'000, 'z');
    REQUIRE(::send(mad.get(), huge.data(), huge.size(), 0) > 0);
    const auto message = relay.receive();
    REQUIRE(message);
    CHECK(message->text.size() <= ProcessLink::kMaxTextBytes);
    CHECK_FALSE(relay.is_closed());
}

TEST_CASE("a descriptor arrives with its message, and only with that one") {
    auto [relay, observer] = ProcessLink::create_pair();
    std::array<int, 2> pipe{};
    REQUIRE(::pipe(pipe.data()) == 0);
    CHECK(relay.send(ControlMessage::save_checkpoint, "with it", pipe[1]));
    CHECK(relay.send(ControlMessage::write_summaries));
    ::close(pipe[1]);
    {
        const auto with = observer.receive();
        REQUIRE(with);
        CHECK(with->text == "with it");
        REQUIRE(with->descriptor.valid());
        CHECK(::write(with->descriptor.get(), "x", 1) == 1);
        const auto without = observer.receive();
        REQUIRE(without);
        CHECK_FALSE(without->descriptor.valid());
    }
    std::array<char, 4> read{};
    CHECK(::read(pipe[0], read.data(), read.size()) == 1);
    CHECK(::read(pipe[0], read.data(), read.size()) == 0); // the copy is closed
    ::close(pipe[0]);
    CHECK_FALSE(relay.send(ControlMessage::save_checkpoint, "", pipe[0])); // closed
}
