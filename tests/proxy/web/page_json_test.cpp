// Maps and objects as JSON for the page.
// Covers: proxy/web/page_files.cpp, proxy/web/run_state.cpp
#include "map/game_layer.h"
#include "map/picture.h"
#include "proxy/web/page_files.h"
#include "proxy/web/page_json.h"
#include "proxy/web/run_state.h"
#include "tests/proxy/web/sample_state.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include <boost/json.hpp>
#include <doctest/doctest.h>

using namespace tw;
namespace json = boost::json;

namespace {

map::PhysicsLayers make_small_map() {
    map::PhysicsLayers::Contents planes;
    planes.width = 2;
    planes.height = 2;
    const auto fill_block = [](map::Block& block, std::initializer_list<unsigned> bytes) {
        block = map::Block{bytes.size()};
        std::ranges::transform(bytes, block.writable_bytes().begin(),
                               [](unsigned byte) { return static_cast<std::byte>(byte); });
    };
    // A game tile has four bytes, a tele tile two: number and index.
    fill_block(planes.records[0], {1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 192, 0, 0, 0});
    fill_block(planes.records[2], {0, 0, 7, 26, 0, 0, 0, 0});
    return map::PhysicsLayers{std::move(planes)};
}

} // namespace

TEST_CASE("map_json() contains the layers' tiles, names and colours") {
    const json::object map = json::parse(web::map_json(make_small_map())).as_object();
    CHECK(map.at("width") == 2);
    CHECK(map.at("height") == 2);
    const json::object& layers = map.at("layers").as_object();
    CHECK(layers.size() == 2);
    CHECK(layers.at("game").at("tiles") == "AQAJwA==");
    CHECK(layers.at("game").at("names").at("1") == "solid");
    CHECK(layers.at("game").at("names").at("9") == "freeze");
    CHECK(layers.at("game").as_object().if_contains("numbers") == nullptr);
    CHECK(layers.at("tele").at("tiles") == "ABoAAA==");
    CHECK(layers.at("tele").at("numbers") == "AAcAAA==");
    const json::array& swatches = map.at("swatches").as_array();
    CHECK(swatches.size() == map::tile_colors().size());
    CHECK(swatches.at(1).at("label") == "solid");
    CHECK(swatches.at(1).at("color") == "#b08d57");
}

TEST_CASE("a client accepts gzip if it names gzip without a quality of 0") {
    struct Row {
        std::string_view header;
        bool takes;
    };

    const Row rows[] = {{"gzip", true},
                        {"gzip, deflate, br", true},
                        {"br, GZIP;q=0.5", true},
                        {"x-gzip", true},
                        {"deflate, gzip;q=1.0", true},
                        {"gzip ; q=0.001", true},
                        {"", false},
                        {"identity", false},
                        {"deflate;q=1, gzip;q=0", false},
                        {"gzip;q=0.000", false},
                        {"gzip; q=0.0, br", false},
                        {"notgzip", false},
                        {"gzip;q=0, br;q=1", false}};
    for (const Row& row : rows) {
        CAPTURE(row.header);
        CHECK(web::accepts_gzip(row.header) == row.takes);
    }
}

TEST_CASE("a map is compressed once while it is in use") {
    web::CompressedMapCache packed;
    const auto one = std::make_shared<const map::PhysicsLayers>(make_small_map());
    auto other = std::make_shared<const map::PhysicsLayers>(make_small_map());
    const auto first = packed.compressed_map_json(one);
    CHECK(*first == web::gzip_text(web::map_json(*one)));
    const std::weak_ptr second = packed.compressed_map_json(other);
    CHECK(second.lock() != first);
    CHECK(packed.compressed_map_json(other) == second.lock());
    other.reset();
    CHECK(packed.compressed_map_json(one) == first);
    CHECK(second.expired());
}

TEST_CASE("objects_json() lists every object with its fields in order") {
    const auto& set = snapshot::ObjectSet::standard();
    const json::object all = json::parse(web::objects_json(set)).as_object();
    const json::array& objects = all.at("objects").as_array();
    REQUIRE(objects.size() == snapshot::object_table().size());
    for (const snapshot::ObjectSpec& spec : snapshot::object_table()) {
        const json::object& object = objects.at(set.index_of(spec)).as_object();
        CHECK(object.at("name") == json::string_view{spec.name.data(), spec.name.size()});
        CHECK(object.at("fields").as_array().size() == spec.fields.size());
        CHECK((object.if_contains("position") != nullptr) == spec.position.has_value());
    }
    const json::object& character = objects
                                        .at(set.index_of(*snapshot::find_object(
                                            snapshot::kCharacterType, snapshot::Dialect::six)))
                                        .as_object();
    CHECK(character.at("client") == "id");
    CHECK(character.at("position").at("per_unit") == 1);
}

TEST_CASE("the state is one JSON object with the given values") {
    const json::value state = json::parse(web::state_json(test::sample_run_state()));
    CHECK(state.at("v") == 1);
    CHECK(state.at("server") == "127.0.0.1:8304");
    CHECK(state.at("server_silent") == true);
    CHECK(state.at("server_silent_since_ms") == 1'700'000'001'000);
    CHECK(state.at("server_unanswered") == 12);
    CHECK(state.at("server_refused") == 4);
    CHECK(state.at("impairment") == "s2c:loss=2%");
    CHECK(state.at("relay").at("sessions") == 2);
    CHECK(state.at("relay").at("s2c").at("bytes") == 12'345);
    CHECK(state.at("snapshots").at("mismatched") == 1);
    CHECK(state.at("recording").at("failed").as_bool());
    CHECK(state.at("recording").at("error") == "No space left on device");
    REQUIRE(state.at("findings").as_array().size() == 1);
    CHECK(state.at("findings").at(0).at("id") == "snapshot.crc_mismatch");
    CHECK(state.at("recent").at(0).at("text") == "<i>off");
    CHECK(state.at("items").at("character") == 80);
    CHECK(state.at("sessions").at(0).at("frozen_ms") == 1250);
}

TEST_CASE("a finding has a link to its explanation if one is kept") {
    const json::value state = json::parse(web::state_json(test::sample_run_state()));
    const json::array& recent = state.at("recent").as_array();
    REQUIRE(recent.size() == 3);
    CHECK(recent[0].as_object().if_contains("explained_at") == nullptr);
    CHECK(recent[1].at("explained_at") == "/api/explain?session=1&tick=12");
    CHECK(recent[2].as_object().if_contains("explained_at") == nullptr);
}

TEST_CASE("the state has the bus's counters if there is a bus") {
    auto state = test::sample_run_state();
    CHECK(json::parse(web::state_json(state)).at("recording").at("bus").is_null());
    state.recording.bus = {.published = 9, .dropped = 2, .waiting_bytes = 70, .reconnects = 3};
    const json::value told = json::parse(web::state_json(state));
    const json::object& bus = told.at("recording").at("bus").as_object();
    CHECK(bus.size() == record::bus_metric_rows().size());
    CHECK(bus.at("published") == 9);
    CHECK(bus.at("dropped") == 2);
    CHECK(bus.at("waiting_records") == 0);
    CHECK(bus.at("waiting_bytes") == 70);
    CHECK(bus.at("reconnects") == 3);
    CHECK(bus.at("connected") == 0);
}

TEST_CASE("the state of a stream has each server's records and the address of its page") {
    auto state = test::sample_run_state();
    CHECK(json::parse(web::state_json(state)).at("stream").is_null());
    state.stream = web::RecordStreamState{.name = "eu", .error = "no route", .records = 9};
    state.servers = {{.name = "ctf"}, {.name = "race"}};
    state.servers[0].collected =
        web::CollectedServerState{.page = "http://ctf/", .records = 8, .last_record_ms = 1500};
    const json::value told = json::parse(web::state_json(state));
    CHECK(told.at("stream").at("name") == "eu");
    CHECK(told.at("stream").at("trouble") == "no route");
    CHECK(told.at("stream").at("records") == 9);
    CHECK(told.at("servers").at(0).at("page") == "http://ctf/");
    CHECK(told.at("servers").at(0).at("records") == 8);
    CHECK(told.at("servers").at(0).at("last_ms") == 1500);
    CHECK_FALSE(told.at("servers").at(1).as_object().contains("page"));
}

TEST_CASE("a server that answers is not silent") {
    auto answering = test::sample_run_state();
    answering.server_silence.reset();
    const json::value state = json::parse(web::state_json(answering));
    CHECK_FALSE(state.at("server_silent").as_bool());
    CHECK(state.as_object().if_contains("server_silent_since_ms") == nullptr);
}

TEST_CASE("a name with special characters is escaped in JSON") {
    const json::value state = json::parse(web::state_json(test::sample_run_state()));
    CHECK(state.at("sessions").at(0).at("name") == "</script><b>\"\\\x01\xef\xbf\xbd");
}

TEST_CASE("the page loads nothing from elsewhere and turns no text into markup") {
    const auto text_of = [](std::string_view path) { return web::find_page_file(path)->text; };
    const std::string_view page = text_of("/");
    CHECK(page.starts_with("<!doctype html>"));
    CHECK(page.ends_with("</html>\n"));
    for (const std::string_view word : {"http:", "https:", "//cdn", "style=\"", "onclick"}) {
        CAPTURE(word);
        CHECK(page.find(word) == std::string_view::npos);
    }
    CHECK(page.find("<script src=\"/page.js\" defer></script>") != std::string_view::npos);
    CHECK(page.find("<script>") == std::string_view::npos);
    const std::string_view script = text_of("/page.js");
    for (const std::string_view word :
         {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("}) {
        CAPTURE(word);
        CHECK(script.find(word) == std::string_view::npos);
    }
    CHECK(text_of("/page.css").find("url(") == std::string_view::npos);
    const std::string_view policy = web::page_security_policy();
    CHECK(policy.find("unsafe") == std::string_view::npos);
    CHECK(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"));
}

TEST_CASE("the page's first files are small") {
    constexpr std::size_t kMost = 150'000;
    std::size_t bytes = 0;
    for (const char* const path : {"/", "/page.js", "/page.css"}) {
        bytes += web::find_page_file(path)->gzipped.size();
    }
    CHECK(bytes < kMost);
}
