// What makes records begins a segment with all that is needed to read it alone.
// Covers: proxy/sink/json_lines.cpp
#include "proxy/sink/json_lines.h"
#include "tests/proxy/sink/sample_records.h"
#include "tests/support/json_records.h"

#include <string>
#include <vector>

#include <boost/json.hpp>
#include <doctest/doctest.h>

using namespace tw;
using namespace tw::test;

namespace {

/// Keeps what was made for each segment.
class Segments final : public sink::Output {
  public:
    std::uint32_t current = 1;
    std::vector<std::string> texts{2};
    std::uint32_t arrived = 1;

    void write(std::string_view block) override { write_in(current, block); }

    [[nodiscard]] std::uint32_t segment() const override { return current; }

    void write_in(std::uint32_t segment, std::string_view block) override {
        texts.resize(std::max<std::size_t>(texts.size(), segment + 1));
        texts[segment] += block;
    }

    void reach_segment(std::uint32_t segment) override { arrived = segment; }
};

/// "snapshot", "session open again", ... of each line.
std::vector<std::string> kinds(const std::string& text) {
    std::vector<std::string> all;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = text.find('\n', at);
        const auto record = boost::json::parse(text.substr(at, end - at)).as_object();
        std::string kind{record.at("type").as_string()};
        kind += std::to_string(record.at("session").as_int64());
        if (record.contains("event")) {
            kind += ' ' + std::string{record.at("event").as_string()};
        }
        kind += record.contains("full") ? " full" : "";
        kind += record.contains("again") ? " again" : "";
        all.push_back(kind);
        at = end + 1;
    }
    return all;
}

} // namespace

TEST_CASE(
    "a segment begins with the open sessions and their maps, and their next snapshots are whole") {
    SampleRecords sample;
    Segments output;
    sink::JsonLines lines{{}, output};
    const auto event = [&](std::uint32_t session, record::SessionEvent what,
                           std::string_view reason = {}) {
        record::SessionRecord record = sample.session;
        record.head.session = session;
        record.event = what;
        record.reason = reason;
        lines.on_record(&record);
    };
    const auto map = [&](std::uint32_t session) {
        record::MapRecord record = sample.map;
        record.head.session = session;
        record.again = false;
        lines.on_record(&record);
    };
    const auto snapshot = [&](std::uint32_t session) {
        record::SnapshotRecord record = sample.snapshot;
        record.head.session = session;
        record.previous = record.items;
        record.ordinal = 1;
        lines.on_record(&record);
    };
    using Event = record::SessionEvent;
    for (const std::uint32_t session : {1U, 2U, 3U}) {
        event(session, Event::open);
        event(session, Event::established);
        map(session);
    }
    snapshot(1);
    snapshot(1);
    event(2, Event::close, "idle");
    event(3, Event::close, record::kReconnected);
    event(3, Event::established);
    CHECK(output.texts[1].empty());
    output.current = 2;
    snapshot(1);
    CHECK(output.arrived == 2);
    snapshot(1);
    snapshot(3);
    lines.flush();
    const std::vector<std::string> first{"session1 open",
                                         "session1 established",
                                         "map1",
                                         "session2 open",
                                         "session2 established",
                                         "map2",
                                         "session3 open",
                                         "session3 established",
                                         "map3",
                                         "snapshot1 full",
                                         "snapshot1",
                                         "session2 close",
                                         "session3 close",
                                         "session3 established"};
    CHECK(kinds(output.texts[1]) == first);
    CHECK(kinds(output.texts[2]) ==
          std::vector<std::string>{"session1 open again", "session1 established again",
                                   "map1 again", "session3 open again",
                                   "session3 established again", "snapshot1 full", "snapshot1",
                                   "snapshot3 full"});
    // As they stood there.
    const std::string again = output.texts[2].substr(0, output.texts[2].find('\n'));
    const std::string before = output.texts[1].substr(0, output.texts[1].find('\n'));
    CHECK(again == before.substr(0, before.size() - 1) + ",\"again\":true}");
}

TEST_CASE("who makes nothing arrives in the next segment all the same") {
    Segments output;
    sink::JsonLines lines{{}, output};
    output.current = 2;
    lines.flush();
    CHECK(output.arrived == 2);
}
