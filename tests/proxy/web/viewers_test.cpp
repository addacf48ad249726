// Everybody who looks at the live page, and what their messages may say.
// Covers: proxy/web/record_requests.cpp, proxy/web/page_json.cpp
#include "proxy/web/viewers.h"
#include "tests/support/snapshot_messages.h"

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/json.hpp>
#include <doctest/doctest.h>

using namespace tw;
using web::parse_viewer_requests;
namespace json = boost::json;

namespace {

/// A page that may be too slow.
class FakeSocket final : public web::WebSocket {
  public:
    bool send(std::shared_ptr<const std::string> text) override {
        if (stuck) {
            return false;
        }
        got.push_back(json::parse(*text).as_object());
        return true;
    }

    void close(std::string_view why) override { reason = why; }

    [[nodiscard]] std::vector<json::object> of(std::string_view kind) const {
        std::vector<json::object> fitting;
        for (const json::object& message : got) {
            if (message.at("k") == json::string_view{kind.data(), kind.size()}) {
                fitting.push_back(message);
            }
        }
        return fitting;
    }

    bool stuck = false;
    std::string reason; ///< it was closed for
    std::vector<json::object> got;
};

base::Source source_of(std::size_t number) {
    return {.address = number, .v6 = false};
}

/// Takes all that is slow, and some milliseconds for each.
bool slow_filter(std::string_view line) {
    std::this_thread::sleep_for(std::chrono::milliseconds{3});
    return line.find("slow") != std::string_view::npos;
}

struct Hall {
    std::shared_ptr<FakeSocket> come() {
        auto socket = std::make_shared<FakeSocket>();
        viewers.add_viewer(socket, {});
        return socket;
    }

    /// A worker sees the next snapshot of a session.
    void snap(std::uint32_t session = 1) {
        ++tick;
        const snapshot::Snapshot items = test::to_snapshot({{{4, 1}, {tick, 0, 0, 0}}});
        web::Batch batch;
        if (feed.watch.session(session)) {
            batch.add({.session = session,
                       .time = std::int64_t{tick} * 20'000'000,
                       .tick = tick,
                       .rebuilt = true},
                      items.view());
        }
        if (feed.watch.log()) {
            batch.lines +=
                R"({"v":1,"type":"snapshot","session":1,"tick":)" + std::to_string(tick) + "}\n";
        }
        if (!batch.empty()) {
            CHECK(feed.boxes[0].try_put(batch));
        }
        turn();
    }

    /// Nobody fetches it.
    void leave_snapshot(std::uint32_t session = 1, snapshot::Tick at = 1) {
        web::Batch batch;
        batch.add({.session = session, .tick = at, .rebuilt = true},
                  test::to_snapshot({{{4, 1}, {1, 0, 0, 0}}}).view());
        CHECK(feed.boxes[0].try_put(batch));
    }

    /// A world is made of three sessions.
    void make_world(std::string line = {}) {
        ++tick;
        const snapshot::Snapshot items = test::to_snapshot({{{4, 1}, {tick, 0, 0, 0}}});
        web::Batch batch;
        batch.add(
            {.time = std::int64_t{tick} * 20'000'000, .tick = tick, .parts = 3, .rebuilt = true},
            items.view());
        batch.world_line = std::move(line);
        batch.world_server = world_server;
        CHECK(feed.world().try_put(batch));
        turn();
    }

    bool turn() {
        now += std::chrono::milliseconds{200};
        return viewers.turn(now);
    }

    web::Viewers::Clock::time_point now = web::Viewers::Clock::now();
    snapshot::Tick tick = 0;
    std::string world_server;
    web::Feed feed{1};
    web::Viewers viewers{
        {.feed = &feed,
         .make_filter =
             [](const std::string& text) -> tl::expected<web::LineFilter, web::Complaint> {
             if (text == "bad") {
                 return tl::unexpected{web::Complaint{.message = "no such key", .offset = 2}};
             }
             if (text == "slow") {
                 return slow_filter;
             }
             return [text](std::string_view line) {
                 return line.find(text) != std::string_view::npos;
             };
         },
         .state_json = [] { return std::string{"{\"v\":1}\n"}; },
         .snapshot_line = [](const web::SeenSnapshot& seen,
                             const snapshot::SnapshotView&) { return std::to_string(seen.tick); }}};
};

} // namespace

TEST_CASE("wishes are read, and what they cannot be is said") {
    struct Row {
        std::string_view text;
        std::string_view error; ///< empty: fine
    };

    const std::string deep(10000, '[');
    const Row rows[] = {
        {R"({"watch":1,"pace":50,"log":"finding","bytes":true,"again":true})", ""},
        {R"({"watch":"all","log":null})", ""},
        {R"({"watch":null})", ""},
        {"{}", ""},
        {"", "a JSON object"},
        {"[]", "a JSON object"},
        {"{", "a JSON object"},
        {"\xff\xfe", "a JSON object"},
        {deep, "a JSON object"},
        {R"({"watch":0})", "the number of a session"},
        {R"({"watch":-1})", "the number of a session"},
        {R"({"watch":4294967295})", "the number of a session"},
        {R"({"watch":1.5})", "the number of a session"},
        {R"({"watch":"some"})", "the number of a session"},
        {R"({"pace":0})", "1 to 50"},
        {R"({"pace":51})", "1 to 50"},
        {R"({"pace":"fast"})", "1 to 50"},
        {R"({"log":7})", "a filter or null"},
        {R"({"bytes":1})", "true or false"},
        {R"({"watches":1})", "keys are"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.text.substr(0, 40));
        const auto wishes = parse_viewer_requests(row.text);
        CHECK(wishes.has_value() == row.error.empty());
        if (!wishes) {
            CHECK(wishes.error().find(row.error) != std::string::npos);
        }
    }
}

TEST_CASE("nobody looks, nothing is watched") {
    Hall hall;
    CHECK_FALSE(hall.turn());
    auto socket = hall.come();
    CHECK(hall.turn());
    CHECK_FALSE(hall.feed.watch.any());
    socket->on_text(R"({"watch":1})");
    CHECK(hall.feed.watch.session(1));
    socket->on_text(R"({"watch":null})");
    CHECK_FALSE(hall.feed.watch.any());
    socket->on_text(R"({"watch":1,"log":"","bytes":true})");
    CHECK(hall.feed.watch.log());
    socket.reset();
    CHECK_FALSE(hall.turn());
    CHECK_FALSE(hall.feed.watch.any());
}

TEST_CASE("a viewer gets all there is, then what changed, and the state") {
    Hall hall;
    const auto socket = hall.come();
    socket->on_text(R"({"watch":1,"pace":50})");
    for (int i = 0; i < 4; ++i) {
        hall.snap();
    }
    const auto frames = socket->of("frame");
    REQUIRE(frames.size() == 4);
    CHECK(frames[0].at("full") == true);
    CHECK(frames[1].at("full") == false);
    CHECK(frames[3].at("n") == 4);
    CHECK_FALSE(socket->of("state").empty());
}

TEST_CASE(
    "whoever is too slow loses frames, counted, and gets all there is next; others lose none") {
    Hall hall;
    const auto slow = hall.come();
    const auto fast = hall.come();
    for (const auto& socket : {slow, fast}) {
        socket->on_text(R"({"watch":1,"pace":50})");
    }
    hall.snap();
    slow->stuck = true;
    for (int i = 0; i < 5; ++i) {
        hall.snap();
    }
    slow->stuck = false;
    hall.snap();
    hall.snap();
    const auto frames = slow->of("frame");
    REQUIRE(frames.size() == 3);
    CHECK(frames[1].at("full") == true);
    CHECK(frames[2].at("full") == false);
    CHECK(fast->of("frame").size() == 8);
    CHECK(hall.viewers.lost() >= 5);
    hall.turn();
    hall.turn();
    hall.turn();
    CHECK(slow->of("state").back().at("frames_lost").as_int64() >= 5);
}

TEST_CASE("the log is each viewer's own, and a wrong filter is told with its place") {
    Hall hall;
    const auto all = hall.come();
    const auto some = hall.come();
    const auto wrong = hall.come();
    all->on_text(R"({"log":""})");
    some->on_text(R"({"log":"\"tick\":2}"})");
    wrong->on_text(R"({"log":"bad"})");
    for (int i = 0; i < 3; ++i) {
        hall.snap();
    }
    std::size_t lines = 0;
    for (const json::object& message : all->of("log")) {
        lines += message.at("lines").as_array().size();
    }
    CHECK(lines == 3);
    CHECK(some->of("log").size() == 1);
    CHECK(wrong->of("log").empty());
    REQUIRE(wrong->of("error").size() == 1);
    CHECK(wrong->of("error")[0].at("message") == "no such key");
    CHECK(wrong->of("error")[0].at("offset") == 2);
}

TEST_CASE("nonsense is answered, and changes nothing") {
    Hall hall;
    const auto socket = hall.come();
    socket->on_text(R"({"watch":1,"pace":50})");
    for (int i = 0; i < 1000; ++i) {
        socket->on_text("nonsense");
    }
    hall.snap();
    CHECK(socket->of("frame").size() == 1);
    CHECK(socket->of("error").size() == 1000);
}

TEST_CASE("a request for a snapshot waits for the next one, and not for ever") {
    Hall hall;
    std::vector<std::string> answers;
    const auto keep = [&](const web::Response& response) {
        answers.push_back(std::to_string(response.status) + ' ' + response.body);
    };
    hall.viewers.ask_snapshot(7, {}, keep);
    CHECK(hall.feed.watch.session(7));
    hall.snap(7);
    REQUIRE(answers.size() == 1);
    CHECK(answers[0] == "200 1");
    CHECK_FALSE(hall.feed.watch.any());
    hall.viewers.ask_snapshot(8, {}, keep);
    for (int i = 0; i < 20 && hall.turn(); ++i) {
    }
    REQUIRE(answers.size() == 2);
    CHECK(answers[1].starts_with("404"));
}

TEST_CASE("what was there when somebody asked is not the next snapshot, though others look at it") {
    Hall hall;
    const auto socket = hall.come();
    socket->on_text(R"({"watch":7,"pace":50})");
    hall.snap(7);
    hall.leave_snapshot(7, 50); // on its way, and older than the question
    std::vector<std::string> answers;
    const auto keep = [&](const web::Response& response) {
        answers.push_back(std::to_string(response.status) + ' ' + response.body);
    };
    hall.viewers.ask_snapshot(7, {}, keep);
    hall.turn();
    CHECK(answers.empty());
    hall.snap(7);
    CHECK(answers.size() == 1);
}

TEST_CASE(
    "a log with too much at once gives the newest lines, and says how many there were before") {
    Hall hall;
    const auto socket = hall.come();
    socket->on_text(R"({"log":""})");
    const std::string filler(10000, 'x');
    web::Batch batch;
    for (int i = 0; i < 60; ++i) {
        batch.lines += R"({"line":)" + std::to_string(i) + R"(,"filler":")" + filler + "\"}\n";
    }
    batch.lost_lines = 5; // that the worker had no room for
    CHECK(hall.feed.boxes[0].try_put(batch));
    hall.turn();
    REQUIRE(socket->of("log").size() == 1);
    const json::object log = socket->of("log")[0];
    const json::array& lines = log.at("lines").as_array();
    CHECK(lines.size() > 20);
    CHECK(lines.back().at("line") == 59);
    CHECK(log.at("lost").to_number<std::size_t>() == 65 - lines.size());
    // Neither is told twice, and who comes later has lost nothing.
    hall.snap();
    CHECK(socket->of("log").back().at("lost").as_int64() == 0);
    const auto later = hall.come();
    hall.turn();
    hall.turn();
    hall.turn();
    CHECK(later->of("state").back().at("frames_lost").as_int64() == 0);
    CHECK(socket->of("state").back().at("frames_lost").as_int64() == 0);
}

TEST_CASE("lines that a viewer was too slow for are told of with the next it gets") {
    Hall hall;
    const auto socket = hall.come();
    socket->on_text(R"({"log":""})");
    socket->stuck = true;
    for (int i = 0; i < 3; ++i) {
        hall.snap();
    }
    socket->stuck = false;
    hall.snap();
    REQUIRE(socket->of("log").size() == 1);
    CHECK(socket->of("log")[0].at("lost").as_int64() == 3);
    CHECK(socket->of("log")[0].at("lines").as_array().size() == 1);
}

TEST_CASE("records that are too much for an answer are the newest") {
    Hall hall;
    std::vector<std::string> bodies;
    hall.viewers.ask_records(
        {}, std::chrono::milliseconds{100}, 1000, {},
        [&](const web::Response& response) { bodies.push_back(response.body); });
    const std::string filler(10000, 'x');
    for (int part = 0; part < 3; ++part) {
        web::Batch batch;
        for (int i = 0; i < 60; ++i) {
            batch.lines +=
                R"({"line":)" + std::to_string(part * 60 + i) + R"(,"filler":")" + filler + "\"}\n";
        }
        CHECK(hall.feed.boxes[0].try_put(batch));
        if (part < 2) {
            hall.viewers.turn(hall.now); // the time has not come
        } else {
            for (int i = 0; i < 100 && bodies.empty(); ++i) {
                hall.turn();
            }
        }
    }
    REQUIRE(bodies.size() == 1);
    CHECK(bodies[0].size() <= std::size_t{1} << 20U);
    CHECK(bodies[0].find("\"line\":179,") != std::string::npos);
    CHECK(bodies[0].find("\"line\":0,") == std::string::npos);
}

TEST_CASE("the world of all is watched like a session, and asked for as a line") {
    Hall hall;
    const auto socket = hall.come();
    socket->on_text(R"({"watch":"all","pace":50})");
    CHECK(hall.feed.watch.world());
    CHECK_FALSE(hall.feed.watch.world_line());
    hall.make_world();
    REQUIRE(socket->of("frame").size() == 1);
    CHECK(socket->of("frame")[0].at("session") == 0);
    CHECK(socket->of("frame")[0].at("bars").at(0).at(5) == 3);

    std::vector<std::string> answers;
    const auto keep = [&](const web::Response& response) {
        answers.push_back(std::to_string(response.status) + ' ' + response.body);
    };
    hall.viewers.ask_snapshot(0, {}, keep);
    CHECK(hall.feed.watch.world_line());
    hall.make_world("the world");
    CHECK(answers == std::vector<std::string>{"200 the world"});
    CHECK_FALSE(hall.feed.watch.world_line());
    hall.make_world("a line that nobody asked for");
    hall.viewers.ask_snapshot(0, {}, keep);
    for (int i = 0; i < 20 && answers.size() < 2; ++i) {
        hall.turn();
    }
    REQUIRE(answers.size() == 2);
    CHECK(answers[1].starts_with("404"));
}

TEST_CASE("no request takes the picture from a viewer, however many look and ask") {
    Hall hall;
    std::vector<std::shared_ptr<FakeSocket>> sockets;
    constexpr auto kViewers = static_cast<std::uint32_t>(web::Viewers::kMaxViewers);
    for (std::uint32_t i = 0; i < kViewers; ++i) {
        sockets.push_back(hall.come());
        sockets.back()->on_text(R"({"watch":)" + std::to_string(101 + i) + '}');
    }
    for (std::uint32_t i = 0; i < web::Viewers::kMaxWaiting; ++i) {
        hall.viewers.ask_snapshot(1 + i, source_of(i / 8), [](const web::Response&) {});
        CHECK(hall.feed.watch.session(1 + i));
    }
    for (std::uint32_t i = 0; i < kViewers; ++i) {
        CHECK(hall.feed.watch.session(101 + i));
    }
}

TEST_CASE("one peer leaves places to wait for others") {
    Hall hall;
    std::vector<unsigned> answers;
    const auto keep = [&](const web::Response& response) { answers.push_back(response.status); };
    for (std::size_t i = 0; i < web::Viewers::kMaxWaitingOfPeer; ++i) {
        hall.viewers.ask_records({}, std::chrono::milliseconds{900}, 2, source_of(1), keep);
        hall.viewers.ask_snapshot(1, source_of(1), keep);
    }
    CHECK(answers.empty());
    hall.viewers.ask_records({}, std::chrono::milliseconds{900}, 2, source_of(1), keep);
    hall.viewers.ask_snapshot(1, source_of(1), keep);
    CHECK(answers == std::vector<unsigned>{503, 503});
    hall.viewers.ask_records({}, std::chrono::milliseconds{900}, 2, source_of(2), keep);
    hall.viewers.ask_snapshot(1, source_of(2), keep);
    CHECK(answers.size() == 2);
}

TEST_CASE("who came by a token goes when it is another one; who needed none stays") {
    Hall hall;
    const auto free = hall.come();
    const auto before = std::make_shared<FakeSocket>();
    const auto after = std::make_shared<FakeSocket>();
    hall.viewers.add_viewer(before, {}, 1);
    hall.viewers.add_viewer(after, {}, 2);
    hall.viewers.disconnect_other_tokens(2);
    CHECK(free->reason.empty());
    CHECK(before->reason == "the token was changed");
    CHECK(after->reason.empty());
}

TEST_CASE("viewers are told whose world is shown") {
    Hall hall;
    const auto socket = hall.come();
    socket->on_text(R"({"watch":"all","pace":50})");
    hall.turn();
    CHECK(socket->of("state").back().at("world_server").is_null());
    hall.world_server = "ctf \"1\"";
    hall.make_world();
    CHECK(socket->of("state").back().at("world_server") == "ctf \"1\"");
    hall.world_server = "";
    hall.make_world();
    CHECK(socket->of("state").back().at("world_server").is_null());
}

TEST_CASE("what was left when nobody looked is not shown to who comes") {
    Hall hall;
    const std::vector<std::uint32_t> old{1};
    hall.feed.watch.set(old, false, false);
    hall.leave_snapshot();
    hall.feed.watch.set({}, false, false);
    const auto socket = hall.come();
    socket->on_text(R"({"watch":1,"pace":50})");
    hall.turn();
    CHECK(socket->of("frame").empty());
    hall.snap();
    CHECK(socket->of("frame").size() == 1);
}

TEST_CASE("records are gathered while somebody asks, the newest win, and waiting places are few") {
    Hall hall;
    std::vector<std::string> bodies;
    const auto keep = [&](const web::Response& response) { bodies.push_back(response.body); };
    hall.viewers.ask_records({}, std::chrono::milliseconds{900}, 2, {}, keep);
    for (int i = 0; i < 4; ++i) {
        hall.snap();
    }
    CHECK(bodies.empty());
    hall.turn();
    hall.turn();
    REQUIRE(bodies.size() == 1);
    CHECK(bodies[0].find("\"tick\":3}\n") != std::string::npos);
    CHECK(bodies[0].find("\"tick\":4}\n") != std::string::npos);
    CHECK(bodies[0].find("\"tick\":2}\n") == std::string::npos);
    bodies.clear();
    for (std::size_t i = 0; i < web::Viewers::kMaxWaiting + 3; ++i) {
        hall.viewers.ask_records({}, std::chrono::milliseconds{900}, 2, source_of(i / 8), keep);
    }
    CHECK(bodies.size() == 3);
    hall.viewers.clear();
    CHECK(bodies.size() == 3);
    CHECK_FALSE(hall.feed.watch.any());
}

TEST_CASE("the log keeps the latest lines, up to so many bytes") {
    web::LogRing log;
    const std::string line = std::string(1000, 'x') + '\n';
    const std::string lines = line + line;
    for (std::size_t i = 0; i < 10'000; ++i) {
        log.add(lines);
    }
    constexpr auto kNever = web::LogRing::Clock::time_point::max();
    std::uint64_t seen = 0;
    const auto kept = log.find_lines(seen, {}, kNever);
    CHECK(seen == 20'000);
    CHECK(log.last_number() == 20'000);
    CHECK(kept.size() == log.size());
    CHECK(log.dropped_after(0) == 20'000 - kept.size());
    CHECK(kept.size() * 1000 <= web::LogRing::kMaxBytes);
    CHECK(kept.size() * 1000 > web::LogRing::kMaxBytes / 2);
    seen = 19'998;
    CHECK(log.find_lines(seen, {}, kNever).size() == 2);
    // When the time is over, one at a time.
    seen = 19'990;
    CHECK(log.find_lines(seen, {}, {}).size() == 1);
    CHECK(seen == 19'991);
    const auto nothing = [](std::string_view /*line*/) { return false; };
    CHECK(log.find_lines(seen, nothing, {}).empty());
    CHECK(seen == 19'992);
}

TEST_CASE("whose filter takes long waits longer himself, and gets all in the end") {
    Hall hall;
    const auto slow = hall.come();
    const auto quick = hall.come();
    slow->on_text(R"({"log":"slow"})");
    quick->on_text(R"({"log":"tick"})");
    std::size_t answered = 0;
    web::Response answer;
    const auto keep = [&](const web::Response& response) {
        ++answered;
        answer = response;
    };
    hall.viewers.ask_records(slow_filter, std::chrono::milliseconds{100}, 1000, {}, keep);
    web::Batch batch;
    constexpr std::size_t kLines = 100; // of some milliseconds each
    for (std::size_t i = 0; i < kLines; ++i) {
        batch.lines += R"({"tick":)" + std::to_string(i) +
                       R"(,"slow":true})"
                       "\n";
    }
    REQUIRE(hall.feed.boxes[0].try_put(batch));
    const auto lines_of = [](const FakeSocket& socket) {
        std::size_t lines = 0;
        for (const json::object& message : socket.of("log")) {
            lines += message.at("lines").as_array().size();
            CHECK(message.at("lost").as_int64() == 0);
        }
        return lines;
    };
    for (int i = 0; i < 20 && lines_of(*quick) < kLines; ++i) {
        hall.turn();
    }
    CHECK(lines_of(*quick) == kLines);
    CHECK(lines_of(*slow) < kLines);
    for (std::size_t i = 0; i < 2 * kLines && (lines_of(*slow) < kLines || answered == 0); ++i) {
        hall.turn();
    }
    CHECK(lines_of(*slow) == kLines);
    CHECK(answered == 1);
    CHECK(answer.status == 503); // it had no more time than that
}
