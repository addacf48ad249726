// Covers: proxy/bus/subjects.cpp
#include "proxy/bus/subjects.h"

#include <set>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

using namespace tw::bus;

TEST_CASE("a part of a subject has no dots, blanks or wildcards, whatever it is made of") {
    struct Row {
        std::string_view name;
        std::string_view text;
        std::string_view token;
    };

    const Row rows[] = {{"as it is", "eu-1_ctf", "eu-1_ctf"},
                        {"an address", "127.0.0.1:8303", "127_0_0_1_8303"},
                        {"of version 6", "[::1]:8303", "___1__8303"},
                        {"wildcards", "a.*.>", "a____"},
                        {"blanks and ends of lines", "a b\r\nPUB x", "a_b__PUB_x"},
                        {"bytes beyond ASCII", "\xc3\xa9", "__"},
                        {"nothing", "", "server"}};
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(make_subject_token(row.text) == row.token);
        CHECK(is_subject_token(make_subject_token(row.text)));
        CHECK(is_subject_token(row.text) == (row.text == row.token));
    }
    CHECK(make_subject_token(std::string(1000, 'a')).size() == kMaxSubjectTokenBytes);
    CHECK_FALSE(is_subject_token(std::string(kMaxSubjectTokenBytes + 1, 'a')));
}

TEST_CASE("a subject's server is its second part") {
    CHECK(server_of_subject("twscope.ctf-1.finding") == "ctf-1");
    CHECK(server_of_subject("twscope.ctf-1") == "ctf-1");
    CHECK(server_of_subject("twscope.a.b.c") == "a");
    CHECK(server_of_subject("twscope..finding").empty());
    CHECK(server_of_subject("twscope.").empty());
    CHECK(server_of_subject("twscope").empty());
    CHECK(server_of_subject("").empty());
}

TEST_CASE("a line's subject ends with its type") {
    CHECK(subject_type_of_line(
              R"({"v":1,"t":"2026-11-21T20:15:00.000000Z","type":"snapshot","session":1})") ==
          "snapshot");
    CHECK(subject_type_of_line(
              R"({"v":1,"t":"2026-11-21T20:15:00.000000Z","type":"a.>","session":1})") == "other");
    CHECK(subject_type_of_line("no record") == "other");
    CHECK(subject_type_of_line("") == "other");
}

TEST_CASE("with several servers, a line's subject has the server name in the line") {
    const std::string many = make_all_servers_name("fleet");
    CHECK(is_server_parameter(many));
    CHECK(is_server_parameter("ctf"));
    CHECK_FALSE(is_subject_token(many));
    CHECK_FALSE(is_server_parameter("*"));
    CHECK_FALSE(is_server_parameter("**a"));
    CHECK(server_part_to_subscribe(many) == "*");
    CHECK(server_part_to_subscribe("ctf") == "ctf");

    struct Row {
        std::string_view name;
        std::string_view line;
        std::string_view server;
    };

    const std::string far =
        R"({"v":1,"name":")" + std::string(300, 'x') + R"(","server_name":"a"})";
    const Row rows[] = {{"of a session",
                         R"({"v":1,"type":"map","session":1,"server_name":"ctf","name":"x"})",
                         "ctf"},
                        {"of the run", R"({"v":1,"type":"summary","session":0})", "fleet"},
                        {"no part of a subject", R"({"v":1,"server_name":"a.b"})", "fleet"},
                        {"cut", R"({"v":1,"server_name":"ct)", "ct"},
                        {"what a peer said", R"({"v":1,"name":"\",\"server_name\":\"a"})", "fleet"},
                        {"too far behind", far, "fleet"},
                        {"nothing", "", "fleet"}};
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(subject_server_of_line(many, row.line) == row.server);
        CHECK(subject_server_of_line("own", row.line) == "own");
    }
}

TEST_CASE("url_without_password() removes user and password") {
    CHECK(url_without_password("nats://127.0.0.1:4222") == "nats://127.0.0.1:4222");
    CHECK(url_without_password("tls://me:secret@bus:4222") == "tls://bus:4222");
    CHECK(url_without_password("tls://me:se@cret@bus:4222") == "tls://bus:4222");
    CHECK(url_without_password("me:secret@bus") == "bus");
    CHECK(url_without_password("nats://") == "nats://");
}

using namespace tw::bus;

TEST_CASE("run ids are UUIDs of version 7, and no two are equal") {
    std::set<std::string> ids;
    for (int i = 0; i < 100; ++i) {
        const std::string id = make_run_id();
        CAPTURE(id);
        REQUIRE(id.size() == 36);
        CHECK(id.find_first_not_of("0123456789abcdef-") == std::string::npos);
        CHECK(id[8] == '-');
        CHECK(id[14] == '7');
        CHECK((id[19] == '8' || id[19] == '9' || id[19] == 'a' || id[19] == 'b'));
        CHECK(ids.insert(id).second);
    }
    CHECK(ids.begin()->substr(0, 6) == ids.rbegin()->substr(0, 6)); // made within the same hours
}
