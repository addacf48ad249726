#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <nats/nats.h>
#include <tl/expected.hpp>

namespace tw::bus {

/// The content of a file with secrets for the bus: credentials in the format of nsc, then
/// certificates and a key (PEM).
struct SecretsFile {
    bool has_credentials = false;
    /// The first certificate in the file, which is twscope's (PEM); empty if the file has no key.
    std::string certificate{};
    std::string key{}; ///< the private key of `certificate` (PEM)
    /// The file's other certificates (PEM), of the trusted authorities; empty to trust the system's
    /// authorities.
    std::string authorities{};

    [[nodiscard]] bool wants_tls() const { return !certificate.empty() || !authorities.empty(); }

    friend bool operator==(const SecretsFile&, const SecretsFile&) = default;
};

/// Parses the text of a secrets file. Errors: one line that says what is wrong.
[[nodiscard]] tl::expected<SecretsFile, std::string> parse_secrets(std::string_view text);

/// Reads and parses a secrets file. Errors: one line that says what is wrong, without the file's
/// name.
[[nodiscard]] tl::expected<SecretsFile, std::string> read_secrets(const std::string& path);

/// The addresses and secrets for connecting to a message bus (NATS with JetStream).
struct BusAccess {
    std::vector<std::string> urls{}; ///< "nats://HOST:PORT" of each server of the bus
    std::string secrets{};           ///< path of a SecretsFile; replaces the files below
    std::string credentials{};       ///< credentials file; empty for an anonymous connection
    bool tls = false;                ///< use TLS even if the server does not require it
    std::string authorities{};       ///< file with trusted authorities; empty to trust the system's
    std::string certificate{};       ///< file with twscope's certificate; empty to use none
    std::string key{};               ///< file with the certificate's key
};

/// Limits for creating a stream. The limits of an existing stream are not changed.
struct StreamLimits {
    std::chrono::seconds age = std::chrono::hours{7 * 24};
    std::uint64_t bytes = std::uint64_t{10} << 30U;
    /// How long the server remembers message ids to detect duplicates. Duplicates occur only after
    /// a connection broke. The server needs memory for each id.
    std::chrono::seconds duplicate_window{120};
    int replicas = 1;

    friend bool operator==(const StreamLimits&, const StreamLimits&) = default;
};

/// The default name of the stream, and the first part of subjects.
inline constexpr const char* kDefaultStream = "twscope";

/// The stream NAME-collected keeps the positions of the collectors of the stream NAME.
inline constexpr const char* kPositionStreamSuffix = "-collected";

/// The bus and the stream to which records are published, and the spool.
struct PublishOptions {
    BusAccess access{};
    std::string stream = kDefaultStream; ///< subjects are STREAM.SERVER.TYPE
    std::string server{};                ///< SERVER in subjects, or a make_all_servers_name()
    StreamLimits limits{};
    std::filesystem::path spool{}; ///< folder for unpublished lines; empty to use memory only
    std::uint64_t spool_bytes = 0;
};

template <auto Destroy>
struct NatsDeleter {
    template <typename Object>
    void operator()(Object* object) const {
        Destroy(object);
    }
};

using NatsOptions = std::unique_ptr<natsOptions, NatsDeleter<natsOptions_Destroy>>;
using NatsConnection = std::unique_ptr<natsConnection, NatsDeleter<natsConnection_Destroy>>;
using NatsSubscription = std::unique_ptr<natsSubscription, NatsDeleter<natsSubscription_Destroy>>;
using NatsMessage = std::unique_ptr<natsMsg, NatsDeleter<natsMsg_Destroy>>;
using NatsInbox = std::unique_ptr<natsInbox, NatsDeleter<natsInbox_Destroy>>;
using JetStream = std::unique_ptr<jsCtx, NatsDeleter<jsCtx_Destroy>>;
using ConsumerInfo = std::unique_ptr<jsConsumerInfo, NatsDeleter<jsConsumerInfo_Destroy>>;
using MessageMetadata = std::unique_ptr<jsMsgMetaData, NatsDeleter<jsMsgMetaData_Destroy>>;

/// Passes a smart pointer to a function of the library that returns an object through a pointer.
/// The smart pointer owns the object at the end of the expression.
template <typename Pointer>
class NatsResult {
  public:
    explicit NatsResult(Pointer& to) : to_{&to} {}

    ~NatsResult() { to_->reset(object_); }

    NatsResult(const NatsResult&) = delete;
    NatsResult& operator=(const NatsResult&) = delete;

    // NOLINTNEXTLINE(google-explicit-constructor): used as an argument only
    operator typename Pointer::pointer *() { return &object_; }

  private:
    Pointer* to_;
    typename Pointer::pointer object_ = nullptr;
};

/// A failure that makes a connection to the bus unusable. Its text is one line for users. The code
/// that opens the next connection catches it.
class BusError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

struct StreamStatus {
    /// Sequence number of the stream's first message; of its next message if the stream is empty.
    std::uint64_t first = 0;
    std::uint64_t last = 0; ///< sequence number of the stream's last message
    /// Creation time by the server's clock; changes if the stream is created again.
    std::int64_t created = 0;
    StreamLimits limits{};
    /// The stream also stores subjects that do not start with its name.
    bool has_other_subjects = false;
};

/// A connection to a bus. Does not reconnect: the owner has to open a new connection and look up
/// which messages were lost when the old one broke. Errors of all functions: BusError.
class BusConnection {
  public:
    /// Connects to the bus. Waits a few seconds at most. `name`: appears in the server's list of
    /// connections.
    BusConnection(const BusAccess& access, const std::string& name);

    [[nodiscard]] natsConnection* connection() const { return connection_.get(); }

    [[nodiscard]] jsCtx* stream_api() const { return stream_api_.get(); }

    [[nodiscard]] bool is_broken() const { return natsConnection_IsClosed(connection_.get()); }

    /// Returns the latest error that the server reported; empty without an error.
    [[nodiscard]] std::string last_error() const;

    /// Returns a text for the status, with the server's latest error.
    [[nodiscard]] std::string error_text(natsStatus status) const;

    /// Throws a BusError unless the status is NATS_OK. `action`, `name`: the failed action, such as
    /// "reading from" and a stream's name.
    void require_ok(natsStatus status, std::string_view action = {},
                    std::string_view name = {}) const;

    /// Returns the state of the stream; nullopt if no stream has this name.
    [[nodiscard]] std::optional<StreamStatus> find_stream(const std::string& stream) const;

    /// Returns the names of all streams except those for collectors' positions; empty if listing
    /// streams is not permitted.
    [[nodiscard]] std::vector<std::string> stream_names() const;

    /// Creates the stream with these limits if it does not exist.
    [[nodiscard]] StreamStatus find_or_create_stream(const std::string& stream,
                                                     const StreamLimits& limits) const;

    /// Creates a stream with these subjects. An existing stream of this name stays unchanged.
    void create_stream(jsStreamConfig config, const std::string& subjects) const;

  private:
    NatsOptions options_;
    NatsConnection connection_;
    JetStream stream_api_; ///< destroyed before the connection
};

/// Waits a few seconds at most until the threads of the NATS library have ended. Call this function
/// after the last connection was closed and before exit(), which frees memory that the threads use.
void close_bus_library();

/// Selects the messages of a stream on `subjects`, from the sequence number `from` on.
struct MessageRange {
    const std::string& stream;
    const std::string& subjects;
    std::uint64_t from = 0; ///< sequence number of the first message; 0 for only the last message
    bool headers_only = false;
};

/// Calls `visit` for each selected message that the stream contains at the moment, in order, until
/// `visit` returns false. Errors: BusError.
void read_messages(
    const BusConnection& link, const MessageRange& range,
    const std::function<bool(natsMsg* message, const jsMsgMetaData& metadata)>& visit);

/// Maps the number of each stored line of a run to the line's sequence number in the stream.
using StoredLines = std::unordered_map<std::uint64_t, std::uint64_t>;

/// The header that contains a message's id. The bus uses the id to detect duplicates.
inline constexpr const char* kMessageIdHeader = "Nats-Msg-Id";

[[nodiscard]] std::string message_id(std::string_view run, std::uint64_t line);

/// Returns the line number in a message id; 0 if the id belongs to another run.
[[nodiscard]] std::uint64_t line_of_message_id(std::string_view id, std::string_view run);

/// Returns the UUID of the twscope run in a message id; empty if the id is not twscope's.
[[nodiscard]] std::string_view run_of_message_id(std::string_view id);

/// Finds the lines of a run among the messages with sequence numbers above `after` and up to
/// `until`. `subjects`: the subjects of the run's messages. Errors: BusError.
[[nodiscard]] StoredLines find_stored_lines(const BusConnection& link, const std::string& stream,
                                            const std::string& subjects, const std::string& run,
                                            std::uint64_t after, std::uint64_t until);

} // namespace tw::bus
