// Covers: proxy/web/sockets.cpp
// Listening sockets, the peer of a connection, and Nagle's algorithm.
#include "proxy/web/http_server.h"
#include "proxy/web/sockets.h"
#include "tests/support/program.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace tw::web;
using tw::test::TemporaryFolder;

namespace {

/// Sends a request to a unix socket and returns the response.
std::string send_request_to_path(const std::string& path) {
    boost::asio::io_context io;
    boost::asio::local::stream_protocol::socket socket{io};
    socket.connect(path);
    boost::asio::write(socket, boost::asio::buffer(std::string{"GET / HTTP/1.1\r\n\r\n"}));
    std::string answer;
    boost::system::error_code ended;
    boost::asio::read(socket, boost::asio::dynamic_buffer(answer), ended);
    return answer;
}

/// Returns the error text of listening on an address, "none" without an error. The text starts with
/// "later: " if a later attempt may succeed.
std::string listen_error_text(const HttpAddress& where) {
    try {
        const ListeningSocket listening{where};
    } catch (const RetryableListenError& error) {
        return std::string{"later: "} + error.what();
    } catch (const ListenError& error) {
        return error.what();
    }
    return "none";
}

} // namespace

TEST_CASE("the listening address decides the origin of its connections") {
    struct Row {
        const char* address;
        ConnectionOrigin way;
    };

    const Row rows[] = {{"127.0.0.1", ConnectionOrigin::loopback},
                        {"127.1.2.3", ConnectionOrigin::loopback},
                        {"::1", ConnectionOrigin::loopback},
                        {"0.0.0.0", ConnectionOrigin::network},
                        {"::", ConnectionOrigin::network}};
    for (const Row& row : rows) {
        CAPTURE(row.address);
        const ListeningSocket listening{{.address = row.address}};
        CHECK(listening.origin() == row.way);
        CHECK(listening.address().port != 0);
        CHECK(listening.address().address == row.address);
    }
}

TEST_CASE("only the owner may connect to a unix socket") {
    const TemporaryFolder folder;
    const std::string path = folder.file("page");
    const ::mode_t mask = ::umask(0);
    std::vector<ListeningSocket> listening;
    listening.emplace_back(HttpAddress{.path = path});
    ::umask(mask);

    struct stat info {};

    REQUIRE(::stat(path.c_str(), &info) == 0);
    CHECK((info.st_mode & 0777U) == 0600);
    const auto answer = [](const Request& request, const Respond& respond) {
        respond({.body = request.connection_origin == ConnectionOrigin::owner ? "the owner"
                                                                              : "another"});
    };
    HttpServer server{listening, {.answer_request = answer}};
    server.start();
    CHECK(send_request_to_path(path).ends_with("\r\n\r\nthe owner"));
}

TEST_CASE("an unused unix socket is replaced; a served one and other files are not") {
    const TemporaryFolder folder;
    const std::string path = folder.file("page");
    {
        const ListeningSocket before{{.path = path}};
        CHECK(listen_error_text({.path = path}) ==
              "later: cannot listen on unix:" + path + ": Address already in use");
    }
    CHECK(std::filesystem::is_socket(path));
    CHECK(listen_error_text({.path = path}) == "none");

    const std::string file = folder.file("file");
    std::ofstream{file} << "mine";
    CHECK(listen_error_text({.path = file}).find("Address already in use") != std::string::npos);
    CHECK(std::filesystem::file_size(file) == 4);

    const std::string link = folder.file("link");
    std::filesystem::create_symlink(path, link);
    CHECK(listen_error_text({.path = link}).find("Address already in use") != std::string::npos);
    CHECK(std::filesystem::is_socket(path));
}

TEST_CASE("an address that cannot be used is reported in one line, and may become available") {
    const ListeningSocket taken{{.address = "127.0.0.1"}};
    const TemporaryFolder folder;
    const ListeningSocket served{{.path = folder.file("page")}};
    std::ofstream{folder.file("file")} << "mine";

    struct Row {
        const char* name;
        HttpAddress where;
        std::string says;
        bool may_become_available;
    };

    const Row rows[] = {
        {"taken", {.address = "127.0.0.1", .port = taken.address().port}, "already in use", true},
        {"not ours", {.address = "192.0.2.1"}, "cannot listen on 192.0.2.1:0: ", true},
        {"served", {.path = folder.file("page")}, "already in use", true},
        {"no address", {.address = "nowhere"}, "cannot listen on nowhere:0: ", false},
        {"a file", {.path = folder.file("file")}, "already in use", false},
        {"no folder", {.path = folder.file("no/page")}, "No such file", false},
        {"a long path", {.path = std::string(108, 'x')}, "at most 107 characters", false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const std::string said = listen_error_text(row.where);
        CAPTURE(said);
        CHECK(said.find(row.says) != std::string::npos);
        CHECK(said.find('\n') == std::string::npos);
        CHECK(said.starts_with("later: ") == row.may_become_available);
    }
}

using namespace tw;
namespace asio = boost::asio;

TEST_CASE("a TCP connection sends without delay, and its peer has an address") {
    asio::io_context io;
    asio::ip::tcp::acceptor acceptor{io, {asio::ip::address_v4::loopback(), 0}};
    asio::ip::tcp::socket client{io};
    client.connect(acceptor.local_endpoint());
    auto accepted = acceptor.accept(io);
    web::HttpSocket socket{io.get_executor(), {AF_INET, 0}, accepted.release()};
    web::disable_nagle(socket);
    asio::ip::tcp::no_delay option;
    socket.get_option(option);
    CHECK(option.value());
    CHECK(web::peer_name(socket, web::ConnectionOrigin::loopback) ==
          "127.0.0.1:" + std::to_string(client.local_endpoint().port()));
    CHECK(web::peer_network(socket) == web::peer_network(socket));
}

TEST_CASE("all clients on unix sockets count as one peer, and disable_nagle() does nothing there") {
    asio::io_context io;
    asio::local::stream_protocol::socket one{io};
    asio::local::stream_protocol::socket other{io};
    asio::local::connect_pair(one, other);
    web::HttpSocket left{io.get_executor(), {AF_UNIX, 0}, one.release()};
    web::HttpSocket right{io.get_executor(), {AF_UNIX, 0}, other.release()};
    web::disable_nagle(left);
    CHECK(web::peer_name(left, web::ConnectionOrigin::owner) == "the unix socket");
    CHECK(web::peer_network(left) == web::peer_network(right));
}
