#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tw::bus {

/// How to get onto a bus: NATS with JetStream.
struct Access {
    std::vector<std::string> urls{}; ///< "nats://HOST:PORT", of one bus
    std::string credentials{};       ///< a file: who we are; empty: nobody in particular
    bool tls = false;                ///< also where the server does not ask for it
    std::string authorities{};       ///< a file: whose certificates count; empty: the system's
    std::string certificate{};       ///< a file: our own; empty: none
    std::string key{};               ///< a file: of the certificate
};

/// What a stream is made with. One that is there already is taken as it is.
struct StreamLimits {
    std::chrono::seconds age = std::chrono::hours{7 * 24};
    std::uint64_t bytes = std::uint64_t{10} << 30U;
    /// How long the server remembers which messages it has. Only what was under way when a connection
    /// broke depends on it, and each message of this time takes some memory there.
    std::chrono::seconds duplicates{120};
    int replicas = 1;

    friend bool operator==(const StreamLimits&, const StreamLimits&) = default;
};

/// The default name of the stream, and what subjects begin with.
inline constexpr const char* kStream = "twscope";

/// The stream in which collectors of NAME keep their log is NAME-collected.
inline constexpr const char* kLogSuffix = "-collected";

/// Where records are published.
struct PublishOptions {
    Access access{};
    std::string stream = kStream; ///< subjects are STREAM.SERVER.TYPE
    std::string server{};         ///< SERVER, as subject_token gives it
    StreamLimits limits{};
    std::filesystem::path spool{}; ///< a folder for what is not published yet; empty: only memory
    std::uint64_t spool_bytes = 0;
};

} // namespace tw::bus
