#include "proxy/bus/secrets_file.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>

using tw::bus::parse_secrets;
using tw::bus::SecretsFile;

namespace {

std::string pem(std::string_view label, std::string_view body) {
    const std::string name{label};
    return "-----BEGIN " + name + "-----\n" + std::string{body} + "\n-----END " + name + "-----\n";
}

/// The format of nsc: its END lines have one dash more than its BEGIN lines.
const std::string kCreds = "-----BEGIN NATS USER JWT-----\neyJ0\n------END NATS USER JWT------\n\n"
                           "************************* IMPORTANT *************************\n"
                           "-----BEGIN USER NKEY SEED-----\nSUAM\n------END USER NKEY SEED------\n";

} // namespace

TEST_CASE("a file with secrets of the bus has credentials, then certificates and a key") {
    const std::string client = pem("CERTIFICATE", "client");
    const std::string ca = pem("CERTIFICATE", "ca");
    const std::string other = pem("CERTIFICATE", "other");
    const std::string key = pem("PRIVATE KEY", "key");
    const std::string ec = pem("EC PRIVATE KEY", "key");

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
         "subject=CN = client\n" + client + pem("EC PARAMETERS", "p") + ec + "issuer\n" + ca,
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

    const std::string certificate = pem("CERTIFICATE", "c");
    const std::string key = pem("PRIVATE KEY", "k");
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
