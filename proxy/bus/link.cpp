#include "proxy/bus/link.h"

#include "proxy/base/files.h"
#include "proxy/base/numbers.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace tw::bus {

namespace {

constexpr std::size_t kMaxSecretsBytes = std::size_t{1} << 20U;

constexpr std::string_view kBegin = "-----BEGIN ";
constexpr std::string_view kClose = "-----";
constexpr std::string_view kCredentials = "NATS USER JWT";
constexpr std::string_view kCertificate = "CERTIFICATE";
constexpr std::string_view kKey = "PRIVATE KEY";

/// Returns the PEM block at the start of the text; empty if the END line is missing or has another
/// label.
std::string_view find_pem_block(std::string_view text, std::string_view label) {
    const std::string end = fmt::format("-----END {}-----", label);
    const std::size_t at = text.find(end);
    return at == std::string_view::npos ? std::string_view{} : text.substr(0, at + end.size());
}

/// Separates twscope's certificate from those of authorities. Errors: one line that says what the
/// file lacks.
tl::expected<SecretsFile, std::string> separate_certificates(SecretsFile secrets) {
    if (secrets.key.empty()) { // without a key, all certificates belong to authorities
        secrets.authorities.insert(0, secrets.certificate);
        secrets.certificate.clear();
    } else if (secrets.certificate.empty()) {
        return tl::unexpected{std::string{"the private key has no certificate"}};
    }
    if (!secrets.has_credentials && !secrets.wants_tls()) {
        return tl::unexpected{
            std::string{"contains neither credentials (.creds) nor certificates"}};
    }
    return secrets;
}

} // namespace

tl::expected<SecretsFile, std::string> parse_secrets(std::string_view text) {
    SecretsFile secrets;
    std::size_t num_certificates = 0;
    for (std::size_t at = 0; (at = text.find(kBegin, at)) != std::string_view::npos; ++at) {
        const std::string_view rest = text.substr(at);
        const std::string_view label =
            rest.substr(kBegin.size(), rest.find(kClose, kBegin.size()) - kBegin.size());
        if (label == kCredentials) {
            if (num_certificates != 0 || !secrets.key.empty()) {
                return tl::unexpected{std::string{"the credentials must come first"}};
            }
            secrets.has_credentials = true;
        } else if (label == kCertificate || label.ends_with(kKey)) {
            const std::string_view block = find_pem_block(rest, label);
            if (block.empty()) {
                return tl::unexpected{fmt::format(
                    "a {} has no end", label == kCertificate ? "certificate" : "private key")};
            }
            if (label != kCertificate) {
                secrets.key = std::string{block} + '\n';
                continue;
            }
            std::string& to = num_certificates++ == 0 ? secrets.certificate : secrets.authorities;
            to.append(block).push_back('\n');
        }
    }
    return separate_certificates(std::move(secrets));
}

tl::expected<SecretsFile, std::string> read_secrets(const std::string& path) {
    const auto text = base::read_small_file(path, kMaxSecretsBytes);
    return text ? parse_secrets(*text) : tl::unexpected{text.error().message()};
}

namespace {

/// A server that does not answer for this time counts as gone.
constexpr std::int64_t kTimeoutMs = 3000;
constexpr std::int64_t kPingIntervalMs = 2000;
constexpr int kMaxPings = 2;
constexpr int kBufferBytes = 1 << 18;

std::int64_t nanoseconds(std::chrono::seconds time) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

/// Returns the library's error text for the last failed call of this thread.
std::string last_error_text() {
    natsStatus status = NATS_OK;
    const char* const text = nats_GetLastError(&status);
    return text == nullptr ? "" : text;
}

std::string status_text(natsStatus status, const std::string& more) {
    return more.empty() ? natsStatus_GetText(status)
                        : fmt::format("{}: {}", natsStatus_GetText(status), more);
}

bool wants_tls(const BusAccess& access) {
    return access.tls || !access.authorities.empty() || !access.certificate.empty() ||
           std::ranges::any_of(access.urls,
                               [](const auto& url) { return url.starts_with("tls://"); });
}

void require_setup_ok(natsStatus status) {
    if (status != NATS_OK) {
        throw BusError{status_text(status, last_error_text())};
    }
}

void set_secrets(natsOptions* options, const BusAccess& access, const SecretsFile& file) {
    if (wants_tls(access) || file.wants_tls()) {
        require_setup_ok(natsOptions_SetSecure(options, true));
    }
    if (!file.authorities.empty()) {
        require_setup_ok(natsOptions_SetCATrustedCertificates(options, file.authorities.c_str()));
    }
    if (!file.key.empty()) {
        require_setup_ok(
            natsOptions_SetCertificatesChain(options, file.certificate.c_str(), file.key.c_str()));
    }
    if (!access.authorities.empty()) {
        require_setup_ok(
            natsOptions_LoadCATrustedCertificates(options, access.authorities.c_str()));
    }
    if (!access.certificate.empty()) {
        require_setup_ok(natsOptions_LoadCertificatesChain(options, access.certificate.c_str(),
                                                           access.key.c_str()));
    }
    const std::string& credentials = file.has_credentials ? access.secrets : access.credentials;
    if (!credentials.empty()) {
        require_setup_ok(
            natsOptions_SetUserCredentialsFromFiles(options, credentials.c_str(), nullptr));
    }
}

void set_options(natsOptions* options, const BusAccess& access, const std::string& name) {
    std::vector<const char*> urls;
    for (const std::string& url : access.urls) {
        urls.push_back(url.c_str());
    }
    for (const natsStatus status :
         {natsOptions_SetServers(options, urls.data(), static_cast<int>(urls.size())),
          natsOptions_SetName(options, name.c_str()), natsOptions_SetAllowReconnect(options, false),
          natsOptions_SetTimeout(options, kTimeoutMs),
          natsOptions_SetPingInterval(options, kPingIntervalMs),
          natsOptions_SetMaxPingsOut(options, kMaxPings),
          natsOptions_SetWriteDeadline(options, kTimeoutMs),
          natsOptions_SetIOBufSize(options, kBufferBytes)}) {
        require_setup_ok(status);
    }
}

} // namespace

BusConnection::BusConnection(const BusAccess& access, const std::string& name) {
    const auto secrets = access.secrets.empty() ? tl::expected<SecretsFile, std::string>{}
                                                : read_secrets(access.secrets);
    if (!secrets) {
        throw BusError{fmt::format("{}: {}", access.secrets, secrets.error())};
    }
    require_setup_ok(natsOptions_Create(NatsResult{options_}));
    set_options(options_.get(), access, name);
    set_secrets(options_.get(), access, *secrets);
    const natsStatus status = natsConnection_Connect(NatsResult{connection_}, options_.get());
    if ((status == NATS_PROTOCOL_ERROR || status == NATS_IO_ERROR ||
         status == NATS_CONNECTION_CLOSED) &&
        (wants_tls(access) || secrets->wants_tls())) {
        // In TLS 1.3, a client whose certificate is rejected sees only that the connection ends.
        throw BusError{fmt::format("{} (does it require a client certificate that it knows?)",
                                   status_text(status, last_error_text()))};
    }
    require_setup_ok(status);
    jsOptions wishes;
    jsOptions_Init(&wishes);
    wishes.Wait = kTimeoutMs;
    require_setup_ok(natsConnection_JetStream(NatsResult{stream_api_}, connection_.get(), &wishes));
}

std::string BusConnection::last_error() const {
    const char* text = nullptr;
    const natsStatus status = natsConnection_GetLastError(connection_.get(), &text);
    return status == NATS_OK || text == nullptr ? "" : text;
}

std::string BusConnection::error_text(natsStatus status) const {
    const std::string said = last_error();
    return status_text(status, said.empty() ? last_error_text() : said);
}

void BusConnection::require_ok(natsStatus status, std::string_view action,
                               std::string_view name) const {
    if (status != NATS_OK) {
        const std::string error = error_text(status);
        throw BusError{action.empty() ? error : fmt::format("{} {}: {}", action, name, error)};
    }
}

std::optional<StreamStatus> BusConnection::find_stream(const std::string& stream) const {
    jsErrCode code{};
    std::unique_ptr<jsStreamInfo, NatsDeleter<jsStreamInfo_Destroy>> info;
    const natsStatus status =
        js_GetStreamInfo(NatsResult{info}, stream_api_.get(), stream.c_str(), nullptr, &code);
    if (status == NATS_NOT_FOUND && code == JSStreamNotFoundErr) {
        return std::nullopt;
    }
    if (status == NATS_NO_RESPONDERS || code == JSNotEnabledErr ||
        code == JSNotEnabledForAccountErr) {
        throw BusError{"this server has no JetStream: start it with -js"};
    }
    require_ok(status, "the stream", stream);
    const jsStreamConfig& config = *info->Config;
    // A stream without subjects of its own mirrors other streams.
    bool is_mixed = config.SubjectsLen == 0;
    for (int i = 0; i < config.SubjectsLen; ++i) {
        is_mixed = is_mixed || !std::string_view{config.Subjects[i]}.starts_with(stream + ".");
    }
    return StreamStatus{
        .first = info->State.FirstSeq,
        .last = info->State.LastSeq,
        .created = info->Created,
        .limits = {.age = std::chrono::duration_cast<std::chrono::seconds>(
                       std::chrono::nanoseconds{config.MaxAge}),
                   .bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(config.MaxBytes, 0)),
                   .replicas = static_cast<int>(config.Replicas)},
        .has_other_subjects = is_mixed};
}

std::vector<std::string> BusConnection::stream_names() const {
    std::unique_ptr<jsStreamNamesList, NatsDeleter<jsStreamNamesList_Destroy>> list;
    jsErrCode code{};
    std::ignore = js_StreamNames(NatsResult{list}, stream_api_.get(), nullptr, &code);
    std::vector<std::string> names;
    for (int i = 0; list && i < list->Count; ++i) {
        if (!std::string_view{list->List[i]}.ends_with(kPositionStreamSuffix)) {
            names.emplace_back(list->List[i]);
        }
    }
    return names;
}

StreamStatus BusConnection::find_or_create_stream(const std::string& stream,
                                                  const StreamLimits& limits) const {
    auto found = find_stream(stream);
    if (!found) {
        jsStreamConfig config;
        jsStreamConfig_Init(&config);
        config.Name = stream.c_str();
        config.Description = "records of twscope";
        config.Retention = js_LimitsPolicy;
        config.MaxAge = nanoseconds(limits.age);
        config.MaxBytes = limits.bytes == 0 ? -1 : static_cast<std::int64_t>(limits.bytes);
        // The server rejects a window for duplicates that is longer than the maximum age.
        config.Duplicates = nanoseconds(std::min(limits.duplicate_window, limits.age));
        config.Replicas = limits.replicas;
        create_stream(config, stream + ".>");
        found = find_stream(stream);
    }
    if (!found) {
        throw BusError{fmt::format("the stream {} was created and is gone again", stream)};
    }
    return *found;
}

void BusConnection::create_stream(jsStreamConfig config, const std::string& subjects) const {
    const char* subject = subjects.c_str();
    config.Subjects = &subject;
    config.SubjectsLen = 1;
    config.Discard = js_DiscardOld;
    config.Storage = js_FileStorage;
    jsErrCode code{};
    const natsStatus status = js_AddStream(nullptr, stream_api_.get(), &config, nullptr, &code);
    if (code != JSStreamNameExistErr) {
        require_ok(status, "cannot create the stream", config.Name);
    }
}

void close_bus_library() {
    std::ignore = nats_CloseAndWait(kTimeoutMs);
}

namespace {

constexpr std::int64_t kFetchTimeoutMs = 3000;
/// The time after which the server removes a consumer without a client.
constexpr std::int64_t kConsumerLifetime =
    std::chrono::nanoseconds{std::chrono::seconds{30}}.count();

} // namespace

void read_messages(
    const BusConnection& link, const MessageRange& range,
    const std::function<bool(natsMsg* message, const jsMsgMetaData& metadata)>& visit) {
    jsSubOptions wishes;
    jsSubOptions_Init(&wishes);
    wishes.Stream = range.stream.c_str();
    wishes.Ordered = true;
    wishes.Config.DeliverPolicy = range.from == 0 ? js_DeliverLast : js_DeliverByStartSequence;
    wishes.Config.OptStartSeq = range.from;
    wishes.Config.HeadersOnly = range.headers_only;
    wishes.Config.InactiveThreshold = kConsumerLifetime;
    const auto check = [&](natsStatus status) {
        link.require_ok(status, "reading from", range.stream);
    };
    NatsSubscription subscription;
    jsErrCode code{};
    check(js_SubscribeSync(NatsResult{subscription}, link.stream_api(), range.subjects.c_str(),
                           nullptr, &wishes, &code));
    ConsumerInfo info;
    check(natsSubscription_GetConsumerInfo(NatsResult{info}, subscription.get(), nullptr, &code));
    bool more = info->NumPending + info->Delivered.Consumer != 0;
    while (more) {
        NatsMessage message;
        MessageMetadata metadata;
        check(natsSubscription_NextMsg(NatsResult{message}, subscription.get(), kFetchTimeoutMs));
        check(natsMsg_GetMetaData(NatsResult{metadata}, message.get()));
        more = visit(message.get(), *metadata) && metadata->NumPending != 0;
    }
    std::ignore = natsSubscription_Unsubscribe(subscription.get());
}

std::string message_id(std::string_view run, std::uint64_t line) {
    return fmt::format("{}:{}", run, line);
}

std::uint64_t line_of_message_id(std::string_view id, std::string_view run) {
    if (!id.starts_with(run) || id.size() <= run.size() || id[run.size()] != ':') {
        return 0;
    }
    return base::parse_number<std::uint64_t>(id.substr(run.size() + 1)).value_or(0);
}

std::string_view run_of_message_id(std::string_view id) {
    constexpr std::size_t kUuid = 36; // length of a run's id, see make_run_id
    const std::string_view run = id.substr(0, kUuid);
    return line_of_message_id(id, run) != 0 && run.size() == kUuid ? run : std::string_view{};
}

StoredLines find_stored_lines(const BusConnection& link, const std::string& stream,
                              const std::string& subjects, const std::string& run,
                              std::uint64_t after, std::uint64_t until) {
    StoredLines stored;
    // A recreated stream counts from 1, so `after` does not apply to it.
    const std::uint64_t from = after > until ? 1 : after + 1;
    if (from > until) {
        return stored;
    }
    read_messages(link,
                  {.stream = stream, .subjects = subjects, .from = from, .headers_only = true},
                  [&](natsMsg* message, const jsMsgMetaData& metadata) {
                      const char* id = nullptr;
                      if (natsMsgHeader_Get(message, kMessageIdHeader, &id) == NATS_OK) {
                          if (const std::uint64_t line = line_of_message_id(id, run); line != 0) {
                              stored.emplace(line, metadata.Sequence.Stream);
                          }
                      }
                      return metadata.Sequence.Stream < until;
                  });
    return stored;
}

} // namespace tw::bus
