#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <nats/nats.h>
#include <tl/expected.hpp>

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

/// Gives back an object of the NATS library.
template <auto Destroy>
struct GiveBack {
    template <typename Object>
    void operator()(Object* object) const {
        Destroy(object);
    }
};

using NatsOptions = std::unique_ptr<natsOptions, GiveBack<natsOptions_Destroy>>;
using NatsConnection = std::unique_ptr<natsConnection, GiveBack<natsConnection_Destroy>>;
using NatsSubscription = std::unique_ptr<natsSubscription, GiveBack<natsSubscription_Destroy>>;
using NatsMessage = std::unique_ptr<natsMsg, GiveBack<natsMsg_Destroy>>;
using NatsInbox = std::unique_ptr<natsInbox, GiveBack<natsInbox_Destroy>>;
using JetStream = std::unique_ptr<jsCtx, GiveBack<jsCtx_Destroy>>;
using JetStreamInfo = std::unique_ptr<jsStreamInfo, GiveBack<jsStreamInfo_Destroy>>;
using StreamNames = std::unique_ptr<jsStreamNamesList, GiveBack<jsStreamNamesList_Destroy>>;
using ConsumerInfo = std::unique_ptr<jsConsumerInfo, GiveBack<jsConsumerInfo_Destroy>>;
using MessagePlace = std::unique_ptr<jsMsgMetaData, GiveBack<jsMsgMetaData_Destroy>>;

/// What went wrong, in one line for people.
template <typename Value>
using Tried = tl::expected<Value, std::string>;

/// What a stream is just now.
struct StreamFacts {
    std::uint64_t first = 0;  ///< the place of its first message, or of the next one
    std::uint64_t last = 0;   ///< the place of its last message
    std::int64_t created = 0; ///< when it was made, by its server's clock: one made anew is another
    StreamLimits limits{};
    bool mixed = false; ///< takes subjects besides NAME.>, too
};

/// One connection to a bus. It does not mend itself: who has it knows at any time what was under way
/// when it broke, and opens another one.
class Link {
  public:
    /// Waits seconds at most. `name`: how the server lists us.
    [[nodiscard]] static Tried<std::unique_ptr<Link>> open(const Access& access,
                                                           const std::string& name);

    [[nodiscard]] natsConnection* connection() const { return connection_.get(); }

    [[nodiscard]] jsCtx* stream_api() const { return stream_api_.get(); }

    [[nodiscard]] bool broken() const { return natsConnection_IsClosed(connection_.get()); }

    /// What the server complained about last; empty: nothing.
    [[nodiscard]] std::string complaint() const;

    /// The status in words, with what the server complained about last.
    [[nodiscard]] std::string describe(natsStatus status) const;

    /// Nothing: there is none of this name.
    [[nodiscard]] Tried<std::optional<StreamFacts>> find_stream(const std::string& stream) const;

    /// Of all streams but the logs of collectors; empty: there are none, or we may not ask.
    [[nodiscard]] std::vector<std::string> stream_names() const;

    /// Makes the stream with these limits when it is not there.
    [[nodiscard]] Tried<StreamFacts> need_stream(const std::string& stream,
                                                 const StreamLimits& limits) const;

  private:
    Link() = default;
    [[nodiscard]] Tried<void> make_stream(const std::string& stream,
                                          const StreamLimits& limits) const;

    NatsOptions options_;
    NatsConnection connection_;
    JetStream stream_api_; ///< goes before the connection
};

/// Numbers of lines, and their places in the stream.
using StoredLines = std::unordered_map<std::uint64_t, std::uint64_t>;

/// The header with the id of a message, by which the bus knows duplicates.
inline constexpr const char* kMessageId = "Nats-Msg-Id";

/// The id of a message.
[[nodiscard]] std::string message_id(std::string_view run, std::uint64_t line);

/// The line whose id this is; 0: another run's.
[[nodiscard]] std::uint64_t line_of_id(std::string_view id, std::string_view run);

/// The run whose id this is; empty: no twscope gave it.
[[nodiscard]] std::string_view run_of_id(std::string_view id);

/// What of a run the stream holds between two places, the first excluded. `subjects`: of the run.
[[nodiscard]] Tried<StoredLines> find_stored_lines(const Link& link, const std::string& stream,
                                                   const std::string& subjects,
                                                   const std::string& run, std::uint64_t behind,
                                                   std::uint64_t until);

} // namespace tw::bus
