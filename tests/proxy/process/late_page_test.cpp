// Covers: proxy/process/live_page.cpp
#include "proxy/process/live_page.h"
#include "tests/support/program.h"

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>
#include <sys/socket.h>

using namespace std::chrono_literals;
using namespace tw;
using channel::ControlMessage;
using channel::ProcessLink;
using process::LatePage;
using process::PageOptions;
using tw::test::TemporaryFolder;

namespace {

/// A late page of an observer; the test plays the relay's process.
struct Late {
    explicit Late(std::vector<web::HttpAddress> where)
        : page{io,
               ends.second,
               {.where = std::move(where),
                .page =
                    [this](std::vector<web::ListeningSocket> listening) {
                        if (failing) {
                            throw std::runtime_error{"no more descriptors"};
                        }
                        return PageOptions{.listening = std::move(listening)};
                    }},
               [this](PageOptions options) { opened.push_back(std::move(options)); }} {}

    /// Whether the observer has sent another request.
    [[nodiscard]] bool asked() {
        const auto message = ends.first.receive();
        return message && message->word == ControlMessage::page;
    }

    void hear() {
        while (auto message = ends.second.receive()) {
            page.on_answer(*message);
        }
    }

    void pause() {
        io.restart();
        io.run_for(LatePage::kRetryInterval + 200ms);
    }

    boost::asio::io_context io{};
    std::pair<ProcessLink, ProcessLink> ends = ProcessLink::pair();
    std::vector<PageOptions> opened{};
    bool failing = false;
    LatePage page;
};

} // namespace

TEST_CASE("a late page is opened when all its sockets have arrived, in their order") {
    const TemporaryFolder folder;
    const std::vector<web::HttpAddress> where{{.address = "127.0.0.1"},
                                              {.path = folder.file("page")}};
    Late late{where};
    late.page.request_sockets();
    CHECK(late.asked());
    const web::ListeningSocket port{where[0]};
    const web::ListeningSocket path{where[1]};
    late.ends.first.send(ControlMessage::page, {}, port.descriptor());
    late.hear();
    CHECK(late.opened.empty());
    late.ends.first.send(ControlMessage::page, {}, path.descriptor());
    late.hear();
    REQUIRE(late.opened.size() == 1);
    const auto& listening = late.opened[0].listening;
    REQUIRE(listening.size() == 2);
    CHECK(listening[0].origin() == web::ConnectionOrigin::loopback);
    CHECK(listening[0].family() == AF_INET);
    CHECK(listening[0].where().port == port.where().port);
    CHECK(listening[1].origin() == web::ConnectionOrigin::owner);
    CHECK(listening[1].family() == AF_UNIX);
    CHECK(listening[1].where().path == where[1].path);
    late.ends.first.send(ControlMessage::page, {}, port.descriptor());
    late.hear();
    CHECK(late.opened.size() == 1);
}

TEST_CASE("after an error, the sockets of a late page are requested again") {
    const std::vector<web::HttpAddress> where{{.address = "127.0.0.1"}};
    Late late{where};
    late.page.request_sockets();
    CHECK(late.asked());
    late.ends.first.send(ControlMessage::page,
                         "cannot listen on 127.0.0.1:9303: Address already in use");
    late.hear();
    CHECK_FALSE(late.asked());
    late.pause();
    CHECK(late.asked());
    const web::ListeningSocket port{where[0]};
    late.failing = true;
    late.ends.first.send(ControlMessage::page, {}, port.descriptor());
    late.hear();
    CHECK(late.opened.empty());
    late.pause();
    CHECK(late.asked());
    late.failing = false;
    late.ends.first.send(ControlMessage::page, {}, port.descriptor());
    late.hear();
    CHECK(late.opened.size() == 1);
    late.page.stop();
    late.pause();
    CHECK_FALSE(late.asked());
}
