#include "proxy/process/takeover_link.h"
#include "tests/support/program.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace tw::process;
using tw::base::Clock;
using tw::base::UniqueFd;
using tw::test::TemporaryFolder;

constexpr std::chrono::seconds kLinkDeadline{10};

std::size_t count_open_descriptors() {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/fd"}) {
        count += entry.path().empty() ? 0U : 1U;
    }
    return count;
}

TEST_CASE("messages arrive whole and in order, with their descriptors") {
    const TemporaryFolder folder;
    const auto file = TakeoverSocket::path_of(folder.path(), "127.0.0.1:8303");
    const auto takeover_socket = TakeoverSocket::open(file);
    REQUIRE(takeover_socket);

    struct stat found {};

    REQUIRE(::stat(file.c_str(), &found) == 0);
    CHECK((found.st_mode & 0777U) == 0600U);
    auto asking = TakeoverSocket::connect(file);
    REQUIRE(asking);
    auto answering = takeover_socket->accept();
    REQUIRE(answering);
    CHECK_FALSE(takeover_socket->accept());
    CHECK(asking->is_trusted());
    CHECK(answering->is_trusted());
    const auto deadline = Clock::now() + kLinkDeadline;
    std::vector<std::byte> body(2 * TakeoverLink::kMaxPacketBytes + 1, std::byte{7});
    body[TakeoverLink::kMaxPacketBytes] = std::byte{8};
    for (const std::size_t number :
         {std::size_t{0}, std::size_t{1}, tw::base::kMaxPacketDescriptors,
          5 * tw::base::kMaxPacketDescriptors + 1}) {
        for (const std::size_t length :
             {std::size_t{0}, std::size_t{1}, TakeoverLink::kMaxPacketBytes, body.size()}) {
            const std::vector<int> descriptors(number, takeover_socket->descriptor());
            const auto bytes = std::span{body}.first(length);
            bool sent = false;
            std::thread other{[&] {
                sent = answering->send(TakeoverMessage::state, bytes, descriptors, deadline);
            }};
            const auto whole = asking->receive(deadline);
            other.join();
            CHECK(sent);
            REQUIRE(whole);
            CHECK(whole->kind == TakeoverMessage::state);
            CHECK(std::ranges::equal(whole->body, bytes));
            CHECK(whole->descriptors.size() == number);
        }
    }
    REQUIRE(asking->send(TakeoverMessage::hello, std::span{body}.first(10), {}, deadline));
    REQUIRE(asking->send(TakeoverMessage::forwarding, deadline));
    const auto first = answering->receive(deadline);
    REQUIRE(first);
    CHECK(first->body.size() == 10);
    const auto second = answering->receive(deadline);
    REQUIRE(second);
    CHECK(second->body.empty());
    CHECK(second->descriptors.empty());
    CHECK_FALSE(answering->receive(Clock::now()));
    CHECK_FALSE(answering->is_closed());
    asking.reset();
    CHECK_FALSE(answering->receive(deadline));
    CHECK(answering->is_closed());
    CHECK_FALSE(answering->send(TakeoverMessage::state, deadline));
}

TEST_CASE(
    "a message that is too long, has too many descriptors or is interrupted ends the connection") {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends.data()) == 0);
    constexpr std::size_t kLongest = 3 * TakeoverLink::kMaxPacketBytes;
    TakeoverLink link{UniqueFd{ends[0]}, kLongest};
    const UniqueFd raw{ends[1]};
    const auto deadline = Clock::now() + kLinkDeadline;
    SUBCASE("too many descriptors in a packet") {
        constexpr std::size_t kMany = 250;
        const std::size_t before = count_open_descriptors();
        alignas(cmsghdr) std::array<char, CMSG_SPACE(kMany * sizeof(int))> control{};
        char byte = 1;
        iovec part{&byte, 1};
        msghdr header{};
        header.msg_iov = &part;
        header.msg_iovlen = 1;
        header.msg_control = control.data();
        header.msg_controllen = control.size();
        cmsghdr* const rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(kMany * sizeof(int));
        for (std::size_t i = 0; i < kMany; ++i) {
            const int descriptor = raw.get();
            std::memcpy(CMSG_DATA(rights) + i * sizeof descriptor, &descriptor, sizeof descriptor);
        }
        REQUIRE(::sendmsg(raw.get(), &header, 0) == 1);
        CHECK_FALSE(link.receive(deadline));
        CHECK(link.is_closed());
        CHECK(count_open_descriptors() == before); // all were closed again
    }
    const auto send = [&](std::uint8_t head, std::size_t length) {
        std::vector<std::byte> packet(length, std::byte{head});
        REQUIRE(::send(raw.get(), packet.data(), packet.size(), 0) > 0);
    };
    constexpr std::uint8_t kMore = 0x80;
    SUBCASE("a packet too long") {
        send(1, TakeoverLink::kMaxPacketBytes + 2);
    }
    SUBCASE("a message too long") {
        const TakeoverLink other{UniqueFd{::dup(raw.get())}};
        std::thread talker{[&] { // sends more than anyone receives
            std::ignore = other.send(TakeoverMessage::state, std::vector<std::byte>(2 * kLongest),
                                     {}, deadline);
        }};
        CHECK_FALSE(link.receive(deadline));
        link.stop_receiving();
        talker.join();
    }
    SUBCASE("a packet of another message") {
        send(kMore | 1U, 2);
        send(2, 2);
    }
    SUBCASE("an end in the middle") {
        send(kMore | 1U, 2);
        CHECK_FALSE(link.receive(Clock::now()));
        CHECK_FALSE(link.is_closed());
        ::shutdown(raw.get(), SHUT_WR);
    }
    CHECK_FALSE(link.receive(deadline));
    CHECK(link.is_closed());
}

TEST_CASE("sending to a peer that reads nothing fails at the deadline") {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends.data()) == 0);
    const TakeoverLink link{UniqueFd{ends[0]}};
    const UniqueFd silent{ends[1]};
    CHECK_FALSE(link.send(TakeoverMessage::state, std::vector<std::byte>(10'000'000), {},
                          Clock::now() + std::chrono::milliseconds{10}));
}

TEST_CASE("the socket file of an ended run is replaced, that of a running one is not") {
    const TemporaryFolder folder;
    const auto file = TakeoverSocket::path_of(folder.path(), "a");
    CHECK_FALSE(TakeoverSocket::connect(file));
    CHECK(errno == ENOENT);
    {
        // The socket of a relay that ended without removing the file.
        std::optional<TakeoverSocket> left = TakeoverSocket::open(file);
        REQUIRE(left);
        left->keep_socket_file();
    }
    REQUIRE(std::filesystem::exists(file));
    CHECK_FALSE(TakeoverSocket::connect(file));
    CHECK(errno == ECONNREFUSED);
    {
        const auto takeover_socket = TakeoverSocket::open(file);
        REQUIRE(takeover_socket);
        CHECK_FALSE(TakeoverSocket::open(file));
        CHECK(errno == EADDRINUSE);
        const TakeoverSocket next{file, UniqueFd{::dup(takeover_socket->descriptor())}};
        CHECK(TakeoverSocket::connect(file));
    }
    CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("a socket's path may be longer than a socket address") {
    const TemporaryFolder folder;
    const auto deep = std::filesystem::path{folder.path()} / std::string(100, 'd');
    std::filesystem::create_directory(deep);
    const auto file = TakeoverSocket::path_of(deep, "127.0.0.1:8303");
    const auto takeover_socket = TakeoverSocket::open(file);
    REQUIRE(takeover_socket);
    CHECK(TakeoverSocket::connect(file));
    CHECK(takeover_socket->accept());
}

TEST_CASE("a process of another user is not trusted") {
    if (::geteuid() != 0) {
        MESSAGE("not tried: only root can be two users");
        return;
    }
    std::array<int, 2> pipe{};
    const TemporaryFolder folder;
    const auto file = TakeoverSocket::path_of(folder.path(), "a");
    const auto takeover_socket = TakeoverSocket::open(file);
    REQUIRE(takeover_socket);
    // The file and its folder allow that user to connect.
    REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
    REQUIRE(::chmod(file.c_str(), 0666) == 0);
    REQUIRE(::pipe(pipe.data()) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
        constexpr uid_t kNobody = 65534;
        char byte = 0;
        const bool asks =
            ::setresuid(kNobody, kNobody, kNobody) == 0 && TakeoverSocket::connect(file);
        ::close(pipe[1]);
        ::_exit(asks && ::read(pipe[0], &byte, 1) == 0 ? 0 : 1);
    }
    ::close(pipe[0]);
    int status = 0;
    const auto deadline = Clock::now() + kLinkDeadline;
    std::optional<TakeoverLink> asked;
    while (!(asked = takeover_socket->accept()) && Clock::now() < deadline) {
    }
    CHECK(asked);
    CHECK_FALSE((asked && asked->is_trusted()));
    ::close(pipe[1]);
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
}

} // namespace
