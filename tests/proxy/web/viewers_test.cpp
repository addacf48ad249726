// The live page's viewers and their messages.
// Covers: proxy/web/record_requests.cpp, proxy/web/page_json.cpp
#include "proxy/web/viewers.h"
#include "tests/proxy/web/sample_state.h"
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
using web::parse_viewer_message;
namespace json = boost::json;

namespace {

/// A viewer's socket, which may be too slow.
class FakeSocket final : public web::WebSocket {
  public:
    bool send(std::shared_ptr<const std::string> text) override {
        if (is_stuck) {
            return false;
        }
        sent_messages.push_back(json::parse(*text).as_object());
        return true;
    }

    void close(std::string_view why) override { reason = why; }

    [[nodiscard]] json::object last_state() const { return messages_of_kind("state").back(); }

    [[nodiscard]] std::vector<json::object> messages_of_kind(std::string_view kind) const {
        std::vector<json::object> fitting;
        for (const json::object& message : sent_messages) {
            if (message.at("k") == json::string_view{kind.data(), kind.size()}) {
                fitting.push_back(message);
            }
        }
        return fitting;
    }

    [[nodiscard]] std::size_t count_log_lines() const {
        std::size_t lines = 0;
        for (const json::object& message : messages_of_kind("log")) {
            lines += message.at("lines").as_array().size();
            CHECK(message.at("lost").as_int64() == 0);
        }
        return lines;
    }

    bool is_stuck = false;
    std::string reason; ///< the reason for which the server closed the socket
    std::vector<json::object> sent_messages;
};

base::Network network_of_peer(std::size_t number) {
    return {.address = number, .v6 = false};
}

/// A filter that takes some milliseconds for each line.
bool filter_slowly(std::string_view line) {
    std::this_thread::sleep_for(std::chrono::milliseconds{3});
    return line.find("slow") != std::string_view::npos;
}

struct ViewersFixture : test::SamplePageData {
    /// Connects a viewer that sends a message.
    std::shared_ptr<FakeSocket> connect_viewer(std::string_view message = "{}") {
        auto socket = std::make_shared<FakeSocket>();
        viewers.add_viewer(socket, {});
        socket->on_text(message);
        return socket;
    }

    static web::ViewerBatch make_batch(std::uint32_t session, snapshot::Tick at,
                                       std::int32_t parts = 1) {
        web::ViewerBatch batch;
        batch.add_snapshot({.session = session,
                            .time = std::int64_t{at} * 20'000'000,
                            .tick = at,
                            .parts = parts,
                            .rebuilt = true},
                           test::to_snapshot({{{4, 1}, {at, 0, 0, 0}}}).view());
        return batch;
    }

    /// Adds the next snapshot of a session as a worker does.
    void add_snapshot(std::uint32_t session = 1) {
        ++tick;
        web::ViewerBatch batch;
        if (feed.interest.wants_session(session)) {
            batch = make_batch(session, tick);
        }
        if (feed.interest.wants_topic(web::ViewerTopic::log)) {
            batch.lines +=
                R"({"v":1,"type":"snapshot","session":1,"tick":)" + std::to_string(tick) + "}\n";
        }
        if (!batch.empty()) {
            CHECK(feed.mailboxes[0].try_put_batch(batch));
        }
        advance_and_update();
    }

    /// Adds a snapshot that is not fetched.
    void add_unfetched_snapshot(std::uint32_t session = 1, snapshot::Tick at = 1) {
        web::ViewerBatch batch = make_batch(session, at);
        CHECK(feed.mailboxes[0].try_put_batch(batch));
    }

    /// Adds a merged snapshot of three sessions.
    void add_merged_snapshot(std::string line = {}) {
        web::ViewerBatch batch = make_batch(0, ++tick, 3);
        batch.world_line = std::move(line);
        batch.world_server = world_server;
        CHECK(feed.mailboxes.back().try_put_batch(batch));
        advance_and_update();
    }

    bool advance_and_update() {
        now += std::chrono::milliseconds{200};
        return viewers.update_viewers(now);
    }

    web::Viewers::Clock::time_point now = web::Viewers::Clock::now();
    snapshot::Tick tick = 0;
    std::string world_server;
    /// The responses that were stored by `store_response`, as "STATUS BODY".
    std::vector<std::string> answers;
    web::Respond store_response = [this](const web::Response& response) {
        answers.push_back(std::to_string(response.status) + ' ' + response.body);
    };
    web::PageFeed feed{1};
    web::Viewers viewers{*this, [] { return std::string{"{\"v\":1}\n"}; }};

    web::PageFeed* page_feed() override { return &feed; }

    tl::expected<web::LineFilter, web::InputError>
    make_filter(const std::string& text) const override {
        if (text == "bad") {
            return tl::unexpected{web::InputError{.message = "no such key", .offset = 2}};
        }
        if (text == "slow") {
            return filter_slowly;
        }
        return [text](std::string_view line) { return line.find(text) != std::string_view::npos; };
    }

    std::string snapshot_line(const web::InspectedSnapshot& seen,
                              const snapshot::SnapshotView& /*items*/) const override {
        return std::to_string(seen.tick);
    }
};

} // namespace

TEST_CASE("viewers' requests are parsed, and invalid ones explained") {
    struct Row {
        std::string_view text;
        std::string_view error; ///< empty if the message is valid
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
        const auto wishes = parse_viewer_message(row.text);
        CHECK(wishes.has_value() == row.error.empty());
        if (!wishes) {
            CHECK(wishes.error().find(row.error) != std::string::npos);
        }
    }
    for (const bool wanted : {true, false}) {
        const std::string text = wanted ? "true" : "false";
        const auto message =
            parse_viewer_message(R"({"bytes":)" + text + R"(,"again":)" + text + "}");
        REQUIRE(message.has_value());
        CHECK(message->wants_traffic == wanted);
        CHECK(message->wants_full_frame == wanted);
    }
}

TEST_CASE_FIXTURE(ViewersFixture, "without viewers, the workers collect nothing") {
    CHECK_FALSE(advance_and_update());
    auto socket = connect_viewer();
    CHECK(advance_and_update());
    CHECK_FALSE(feed.interest.wants_anything());
    socket->on_text(R"({"watch":1})");
    CHECK(feed.interest.wants_session(1));
    socket->on_text(R"({"watch":null})");
    CHECK_FALSE(feed.interest.wants_anything());
    socket->on_text(R"({"watch":1,"log":"","bytes":true})");
    CHECK(feed.interest.wants_topic(web::ViewerTopic::log));
    CHECK(feed.interest.wants_topic(web::ViewerTopic::traffic_totals));
    socket.reset();
    CHECK_FALSE(advance_and_update());
    CHECK_FALSE(feed.interest.wants_anything());
}

TEST_CASE_FIXTURE(
    ViewersFixture,
    "a slow viewer's lost frames are counted and a full frame follows; other viewers lose none") {
    const auto slow = connect_viewer(R"({"watch":1,"pace":50})");
    const auto fast = connect_viewer(R"({"watch":1,"pace":50})");
    add_snapshot();
    slow->is_stuck = true;
    for (int i = 0; i < 5; ++i) {
        add_snapshot();
    }
    slow->is_stuck = false;
    add_snapshot();
    add_snapshot();
    const auto frames = slow->messages_of_kind("frame");
    REQUIRE(frames.size() == 3);
    CHECK(frames[1].at("full") == true);
    CHECK(frames[2].at("full") == false);
    CHECK(fast->messages_of_kind("frame").size() == 8);
    CHECK(viewers.num_dropped_messages() >= 5);
    advance_and_update();
    advance_and_update();
    advance_and_update();
    CHECK(slow->last_state().at("frames_lost").as_int64() >= 5);
}

TEST_CASE_FIXTURE(
    ViewersFixture,
    "each viewer has its own filter, and an invalid filter is reported with its position") {
    const auto all = connect_viewer(R"({"log":""})");
    const auto some = connect_viewer(R"({"log":"\"tick\":2}"})");
    const auto wrong = connect_viewer(R"({"log":"bad"})");
    for (int i = 0; i < 3; ++i) {
        add_snapshot();
    }
    CHECK(all->count_log_lines() == 3);
    CHECK(some->messages_of_kind("log").size() == 1);
    CHECK(wrong->messages_of_kind("log").empty());
    REQUIRE(wrong->messages_of_kind("error").size() == 1);
    CHECK(wrong->messages_of_kind("error")[0].at("message") == "no such key");
    CHECK(wrong->messages_of_kind("error")[0].at("offset") == 2);
}

TEST_CASE_FIXTURE(ViewersFixture, "an invalid message gets an error and changes nothing") {
    const auto socket = connect_viewer(R"({"watch":1,"pace":50})");
    for (int i = 0; i < 1000; ++i) {
        socket->on_text("nonsense");
    }
    add_snapshot();
    CHECK(socket->messages_of_kind("frame").size() == 1);
    CHECK(socket->messages_of_kind("error").size() == 1000);
}

TEST_CASE_FIXTURE(ViewersFixture,
                  "a request for a snapshot waits for the next one until a timeout") {
    viewers.request_snapshot(7, {}, store_response);
    CHECK(feed.interest.wants_session(7));
    add_snapshot(7);
    REQUIRE(answers.size() == 1);
    CHECK(answers[0] == "200 1");
    CHECK_FALSE(feed.interest.wants_anything());
    viewers.request_snapshot(8, {}, store_response);
    for (int i = 0; i < 20 && advance_and_update(); ++i) {
    }
    REQUIRE(answers.size() == 2);
    CHECK(answers[1].starts_with("404"));
}

TEST_CASE_FIXTURE(
    ViewersFixture,
    "a snapshot from before the request does not answer it, even if viewers watch the session") {
    const auto socket = connect_viewer(R"({"watch":7,"pace":50})");
    add_snapshot(7);
    add_unfetched_snapshot(7, 50); // added before the request, fetched after it
    viewers.request_snapshot(7, {}, store_response);
    advance_and_update();
    CHECK(answers.empty());
    add_snapshot(7);
    CHECK(answers.size() == 1);
}

TEST_CASE_FIXTURE(
    ViewersFixture,
    "too many log lines at once are cut to the newest, and the rest is counted as lost") {
    const auto socket = connect_viewer(R"({"log":""})");
    const std::string filler(10000, 'x');
    web::ViewerBatch batch;
    for (int i = 0; i < 60; ++i) {
        batch.lines += R"({"line":)" + std::to_string(i) + R"(,"filler":")" + filler + "\"}\n";
    }
    batch.lost_lines = 5; // lines for which the worker had no room
    CHECK(feed.mailboxes[0].try_put_batch(batch));
    advance_and_update();
    REQUIRE(socket->messages_of_kind("log").size() == 1);
    const json::object log = socket->messages_of_kind("log")[0];
    const json::array& lines = log.at("lines").as_array();
    CHECK(lines.size() > 20);
    CHECK(lines.back().at("line") == 59);
    CHECK(log.at("lost").to_number<std::size_t>() == 65 - lines.size());
    // No loss is reported twice, and a later viewer has lost nothing.
    add_snapshot();
    CHECK(socket->messages_of_kind("log").back().at("lost").as_int64() == 0);
    const auto later = connect_viewer();
    advance_and_update();
    advance_and_update();
    advance_and_update();
    CHECK(later->last_state().at("frames_lost").as_int64() == 0);
    CHECK(socket->last_state().at("frames_lost").as_int64() == 0);
}

TEST_CASE_FIXTURE(ViewersFixture,
                  "lines lost for a slow viewer are reported with its next message") {
    const auto socket = connect_viewer(R"({"log":""})");
    socket->is_stuck = true;
    for (int i = 0; i < 3; ++i) {
        add_snapshot();
    }
    socket->is_stuck = false;
    add_snapshot();
    REQUIRE(socket->messages_of_kind("log").size() == 1);
    CHECK(socket->messages_of_kind("log")[0].at("lost").as_int64() == 3);
    CHECK(socket->messages_of_kind("log")[0].at("lines").as_array().size() == 1);
}

TEST_CASE_FIXTURE(ViewersFixture, "a response that would be too long has the newest records") {
    viewers.request_records({}, std::chrono::milliseconds{100}, 1000, {}, store_response);
    const std::string filler(10000, 'x');
    for (int part = 0; part < 3; ++part) {
        web::ViewerBatch batch;
        for (int i = 0; i < 60; ++i) {
            batch.lines +=
                R"({"line":)" + std::to_string(part * 60 + i) + R"(,"filler":")" + filler + "\"}\n";
        }
        CHECK(feed.mailboxes[0].try_put_batch(batch));
        if (part < 2) {
            viewers.update_viewers(now); // the responses are not due yet
        } else {
            for (int i = 0; i < 100 && answers.empty(); ++i) {
                advance_and_update();
            }
        }
    }
    REQUIRE(answers.size() == 1);
    CHECK(answers[0].size() <= (std::size_t{1} << 20U) + 4); // the status comes first
    CHECK(answers[0].find("\"line\":179,") != std::string::npos);
    CHECK(answers[0].find("\"line\":0,") == std::string::npos);
}

TEST_CASE_FIXTURE(ViewersFixture,
                  "merged snapshots can be watched like a session and requested as a line") {
    const auto socket = connect_viewer(R"({"watch":"all","pace":50})");
    CHECK(feed.interest.wants_topic(web::ViewerTopic::world));
    CHECK_FALSE(feed.interest.wants_topic(web::ViewerTopic::world_line));
    add_merged_snapshot();
    REQUIRE(socket->messages_of_kind("frame").size() == 1);
    CHECK(socket->messages_of_kind("frame")[0].at("session") == 0);
    CHECK(socket->messages_of_kind("frame")[0].at("bars").at(0).at(5) == 3);

    viewers.request_snapshot(0, {}, store_response);
    CHECK(feed.interest.wants_topic(web::ViewerTopic::world_line));
    add_merged_snapshot("the world");
    CHECK(answers == std::vector<std::string>{"200 the world"});
    CHECK_FALSE(feed.interest.wants_topic(web::ViewerTopic::world_line));
    add_merged_snapshot("a line that nobody asked for");
    viewers.request_snapshot(0, {}, store_response);
    for (int i = 0; i < 20 && answers.size() < 2; ++i) {
        advance_and_update();
    }
    REQUIRE(answers.size() == 2);
    CHECK(answers[1].starts_with("404"));
}

TEST_CASE_FIXTURE(ViewersFixture,
                  "the watched sessions suffice for the most viewers and requests") {
    std::vector<std::shared_ptr<FakeSocket>> sockets;
    constexpr auto kViewers = static_cast<std::uint32_t>(web::Viewers::kMaxViewers);
    for (std::uint32_t i = 0; i < kViewers; ++i) {
        sockets.push_back(connect_viewer(R"({"watch":)" + std::to_string(101 + i) + '}'));
    }
    for (std::uint32_t i = 0; i < web::Viewers::kMaxWaitingRequests; ++i) {
        viewers.request_snapshot(1 + i, network_of_peer(i / 8), [](const web::Response&) {});
        CHECK(feed.interest.wants_session(1 + i));
    }
    for (std::uint32_t i = 0; i < kViewers; ++i) {
        CHECK(feed.interest.wants_session(101 + i));
    }
}

TEST_CASE_FIXTURE(ViewersFixture, "one peer cannot use all places of waiting requests") {
    for (std::size_t i = 0; i < web::Viewers::kMaxWaitingRequestsPerPeer; ++i) {
        viewers.request_records({}, std::chrono::milliseconds{900}, 2, network_of_peer(1),
                                store_response);
        viewers.request_snapshot(1, network_of_peer(1), store_response);
    }
    CHECK(answers.empty());
    viewers.request_records({}, std::chrono::milliseconds{900}, 2, network_of_peer(1),
                            store_response);
    viewers.request_snapshot(1, network_of_peer(1), store_response);
    REQUIRE(answers.size() == 2);
    CHECK(answers[0].starts_with("503"));
    CHECK(answers[1].starts_with("503"));
    viewers.request_records({}, std::chrono::milliseconds{900}, 2, network_of_peer(2),
                            store_response);
    viewers.request_snapshot(1, network_of_peer(2), store_response);
    CHECK(answers.size() == 2);
}

TEST_CASE_FIXTURE(ViewersFixture,
                  "viewers get the name of the server whose merged snapshots are shown") {
    const auto socket = connect_viewer(R"({"watch":"all","pace":50})");
    advance_and_update();
    CHECK(socket->last_state().at("world_server").is_null());
    world_server = "ctf \"1\"";
    add_merged_snapshot();
    CHECK(socket->last_state().at("world_server") == "ctf \"1\"");
    world_server = "";
    add_merged_snapshot();
    CHECK(socket->last_state().at("world_server").is_null());
}

TEST_CASE_FIXTURE(ViewersFixture, "stale data is not sent to a new viewer") {
    const std::vector<std::uint32_t> old{1};
    feed.interest.set_interest(old, web::ViewerTopic::none);
    add_unfetched_snapshot();
    feed.interest.set_interest({}, web::ViewerTopic::none);
    const auto socket = connect_viewer(R"({"watch":1,"pace":50})");
    advance_and_update();
    CHECK(socket->messages_of_kind("frame").empty());
    add_snapshot();
    CHECK(socket->messages_of_kind("frame").size() == 1);
}

TEST_CASE_FIXTURE(
    ViewersFixture,
    "records are collected while a request waits; the newest are kept, and few requests may wait") {
    viewers.request_records({}, std::chrono::milliseconds{900}, 2, {}, store_response);
    for (int i = 0; i < 4; ++i) {
        add_snapshot();
    }
    CHECK(answers.empty());
    advance_and_update();
    advance_and_update();
    REQUIRE(answers.size() == 1);
    CHECK(answers[0].find("\"tick\":3}\n") != std::string::npos);
    CHECK(answers[0].find("\"tick\":4}\n") != std::string::npos);
    CHECK(answers[0].find("\"tick\":2}\n") == std::string::npos);
    answers.clear();
    for (std::size_t i = 0; i < web::Viewers::kMaxWaitingRequests + 3; ++i) {
        viewers.request_records({}, std::chrono::milliseconds{900}, 2, network_of_peer(i / 8),
                                store_response);
    }
    CHECK(answers.size() == 3);
    viewers.clear();
    CHECK(answers.size() == 3);
    CHECK_FALSE(feed.interest.wants_anything());
}

TEST_CASE("the log keeps the latest lines up to a number of bytes") {
    web::LogRing log;
    const std::string line = std::string(1000, 'x') + '\n';
    const std::string lines = line + line;
    for (std::size_t i = 0; i < 10'000; ++i) {
        log.add_lines(lines);
    }
    constexpr auto kNever = web::LogRing::Clock::time_point::max();
    std::uint64_t seen = 0;
    const auto kept = log.find_lines(seen, {}, kNever);
    CHECK(seen == 20'000);
    CHECK(log.last_number() == 20'000);
    CHECK(kept.size() == log.size());
    CHECK(log.dropped_count_after(0) == 20'000 - kept.size());
    CHECK(kept.size() * 1000 <= web::LogRing::kMaxBytes);
    CHECK(kept.size() * 1000 > web::LogRing::kMaxBytes / 2);
    seen = 19'998;
    CHECK(log.find_lines(seen, {}, kNever).size() == 2);
    // Each request times out on its own.
    seen = 19'990;
    CHECK(log.find_lines(seen, {}, {}).size() == 1);
    CHECK(seen == 19'991);
    const auto match_nothing = [](std::string_view /*line*/) { return false; };
    CHECK(log.find_lines(seen, match_nothing, {}).empty());
    CHECK(seen == 19'992);
}

TEST_CASE_FIXTURE(ViewersFixture,
                  "a slow filter delays only its own viewer, who gets all lines in the end") {
    const auto slow = connect_viewer(R"({"log":"slow"})");
    const auto quick = connect_viewer(R"({"log":"tick"})");
    viewers.request_records(filter_slowly, std::chrono::milliseconds{100}, 1000, {},
                            store_response);
    web::ViewerBatch batch;
    constexpr std::size_t kLines = 100; // the filter takes some milliseconds for each
    for (std::size_t i = 0; i < kLines; ++i) {
        batch.lines += R"({"tick":)" + std::to_string(i) +
                       R"(,"slow":true})"
                       "\n";
    }
    REQUIRE(feed.mailboxes[0].try_put_batch(batch));
    for (int i = 0; i < 20 && quick->count_log_lines() < kLines; ++i) {
        advance_and_update();
    }
    CHECK(quick->count_log_lines() == kLines);
    CHECK(slow->count_log_lines() < kLines);
    for (std::size_t i = 0; i < 2 * kLines && (slow->count_log_lines() < kLines || answers.empty());
         ++i) {
        advance_and_update();
    }
    CHECK(slow->count_log_lines() == kLines);
    REQUIRE(answers.size() == 1);
    CHECK(answers[0].starts_with("503")); // filtering took too long
}
