// Covers: proxy/bus/link.cpp
#include "proxy/bus/link.h"
#include "proxy/bus/subjects.h"

#include <cstdint>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

using tw::bus::parse_secrets;
using tw::bus::SecretsFile;

namespace {

std::string make_pem_block(std::string_view label, std::string_view body) {
    const std::string name{label};
    return "-----BEGIN " + name + "-----\n" + std::string{body} + "\n-----END " + name + "-----\n";
}

/// The format of nsc: its END lines have one dash more than its BEGIN lines.
const std::string kCreds = "-----BEGIN NATS USER JWT-----\neyJ0\n------END NATS USER JWT------\n\n"
                           "************************* IMPORTANT *************************\n"
                           "-----BEGIN USER NKEY SEED-----\nSUAM\n------END USER NKEY SEED------\n";

} // namespace

TEST_CASE("a file with secrets of the bus has credentials, then certificates and a key") {
    const std::string client = make_pem_block("CERTIFICATE", "client");
    const std::string ca = make_pem_block("CERTIFICATE", "ca");
    const std::string other = make_pem_block("CERTIFICATE", "other");
    const std::string key = make_pem_block("PRIVATE KEY", "key");
    const std::string ec = make_pem_block("EC PRIVATE KEY", "key");

    struct Row {
        const char* name;
        std::string text;
        SecretsFile secrets;
    };

    const Row rows[] = {
        {"credentials", kCreds, {.has_credentials = true}},
        {"authorities", ca + other, {.authorities = ca + other}},
        {"our certificate", client + key, {.certificate = client, .key = key}},
        {"the key first", ec + client, {.certificate = client, .key = ec}},
        {"with what openssl says about it",
         "subject=CN = client\n" + client + make_pem_block("EC PARAMETERS", "p") + ec + "issuer\n" +
             ca,
         {.certificate = client, .key = ec, .authorities = ca}},
        {"all of it",
         kCreds + client + key + ca + other,
         {.has_credentials = true, .certificate = client, .key = key, .authorities = ca + other}},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const auto secrets = parse_secrets(row.text);
        REQUIRE(secrets);
        CHECK(*secrets == row.secrets);
        CHECK(secrets->wants_tls() == (row.text.find("CERTIFICATE") != std::string::npos));
    }
}

TEST_CASE("a file without secrets, or with an incomplete one, is an error that says so") {
    struct Row {
        std::string text;
        std::string_view error;
    };

    const std::string certificate = make_pem_block("CERTIFICATE", "c");
    const std::string key = make_pem_block("PRIVATE KEY", "k");
    const Row rows[] = {
        {"", "contains neither"},
        {"password", "contains neither"},
        {"-----BEGIN ", "contains neither"},
        {"-----BEGIN CERTIFICATE", "a certificate has no end"},
        {certificate + kCreds, "the credentials must come first"},
        {key + kCreds + certificate, "the credentials must come first"},
        {key, "the private key has no certificate"},
        {kCreds + key, "the private key has no certificate"},
        {certificate.substr(0, 40), "a certificate has no end"},
        {certificate + key.substr(0, 40), "a private key has no end"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.text);
        const auto secrets = parse_secrets(row.text);
        REQUIRE_FALSE(secrets);
        CHECK(secrets.error().find(row.error) != std::string::npos);
        CHECK(secrets.error().find("SUAM") == std::string::npos);
    }
    CHECK_FALSE(tw::bus::read_secrets("/nowhere/bus.pem"));
}

using namespace tw::bus;

TEST_CASE("a message id contains run and line; ids of other runs are rejected") {
    CHECK(message_id("run", 7) == "run:7");

    struct Row {
        std::string_view id;
        std::uint64_t line;
    };

    const Row rows[] = {{"run:7", 7},
                        {"run:18446744073709551615", UINT64_MAX},
                        {"run:18446744073709551616", 0},
                        {"run:", 0},
                        {"run", 0},
                        {"run:7x", 0},
                        {"run:-7", 0},
                        {"runner:7", 0},
                        {"other:7", 0},
                        {"", 0}};
    for (const Row& row : rows) {
        CAPTURE(row.id);
        CHECK(line_of_message_id(row.id, "run") == row.line);
    }
}

TEST_CASE("a message id contains the run if twscope made the id") {
    const std::string run = make_run_id();
    CHECK(run_of_message_id(message_id(run, 7)) == run);
    for (const std::string& id :
         {std::string{}, run, run + ':', run + ":0", run + ":x", run + "0:7", run.substr(1) + ":7",
          std::string{"run:7"}, std::string(1000, 'x')}) {
        CAPTURE(id);
        CHECK(run_of_message_id(id).empty());
    }
}
