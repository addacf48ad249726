#include "proxy/bus/position.h"

#include "proxy/bus/publisher.h"
#include "proxy/bus/subjects.h"

#include <charconv>

#include <fmt/format.h>

namespace tw::bus {

namespace {

constexpr std::int64_t kPositionPatienceMs = 3000;
/// The most positions that the store's stream keeps of a consumer. Older batches cannot be found.
constexpr std::int64_t kKept = 100'000;
/// The error of nats-server if the subject's last message is not the expected one.
constexpr std::string_view kWrongLast = "wrong last sequence";

/// Removes a number and the space after it from the start of the text, and returns the number; nullopt
/// if the text does not start with them.
template <typename Number>
std::optional<Number> take_number(std::string_view& text) {
    Number number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end == text.data() + text.size() || *end != ' ') {
        return std::nullopt;
    }
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
    return number;
}

std::string_view data_of(natsMsg* message) {
    return {natsMsg_GetData(message), static_cast<std::size_t>(natsMsg_GetDataLength(message))};
}

} // namespace

std::string position_text(const StreamPosition& position) {
    return fmt::format("{} {} {}", position.created, position.last, position.batch);
}

std::optional<StreamPosition> read_position(std::string_view text) {
    const auto created = take_number<std::int64_t>(text);
    const auto last = created ? take_number<std::uint64_t>(text) : std::nullopt;
    if (!last || text.empty()) {
        return std::nullopt;
    }
    return StreamPosition{.created = *created, .last = *last, .batch = std::string{text}};
}

PositionStore::PositionStore(const BusConnection& link, const std::string& stream,
                             const std::string& consumer)
    : link_{&link}, stream_{stream + kPositionsSuffix}, subject_{fmt::format("{}.{}", stream_,
                                                                             consumer)} {}

BusResult<PositionStore> PositionStore::open(const BusConnection& link, const std::string& stream,
                                             const std::string& consumer) {
    PositionStore store{link, stream, consumer};
    if (auto made = store.make_stream(); !made) {
        return tl::unexpected{made.error()};
    }
    if (auto read = store.read_last(); !read) {
        return tl::unexpected{read.error()};
    }
    return store;
}

BusResult<void> PositionStore::make_stream() const {
    const auto found = link_->find_stream(stream_);
    if (!found || *found) {
        return found ? BusResult<void>{} : tl::unexpected{found.error()};
    }
    jsStreamConfig config;
    jsStreamConfig_Init(&config);
    config.Name = stream_.c_str();
    config.Description = "what collectors of twscope have written";
    config.MaxMsgsPerSubject = kKept;
    return link_->add_stream(config, stream_ + ".*");
}

BusResult<void> PositionStore::read_last() {
    current_ = {};
    message_ = 0;
    return read_messages(*link_, {.stream = stream_, .subjects = subject_},
                         [this](natsMsg* message, const jsMsgMetaData& metadata) {
                             current_ = read_position(data_of(message)).value_or(StreamPosition{});
                             message_ = metadata.Sequence.Stream;
                             return true;
                         });
}

BusResult<bool> PositionStore::set_position(const StreamPosition& position) {
    const std::string text = position_text(position);
    natsMsg* made = nullptr;
    natsStatus status = natsMsg_Create(&made, subject_.c_str(), nullptr, text.data(),
                                       static_cast<int>(text.size()));
    const NatsMessage message{made};
    if (status == NATS_OK) {
        status = natsMsgHeader_Set(made, "Nats-Expected-Last-Subject-Sequence",
                                   std::to_string(message_).c_str());
    }
    natsMsg* got = nullptr;
    if (status == NATS_OK) {
        status = natsConnection_RequestMsg(&got, link_->connection(), made, kPositionPatienceMs);
    }
    const NatsMessage reply{got};
    if (status != NATS_OK) {
        return tl::unexpected{fmt::format("writing to {}: {}", stream_, link_->describe(status))};
    }
    const PublishAnswer answer = read_publish_answer(data_of(got));
    if (answer.sequence != 0) {
        current_ = position;
        message_ = answer.sequence;
        return true;
    }
    if (!answer.error.starts_with(kWrongLast)) {
        return tl::unexpected{fmt::format("writing to {}: {}", stream_, answer.error)};
    }
    const std::uint64_t before = message_;
    if (auto read = read_last(); !read) {
        return tl::unexpected{read.error()};
    }
    if (message_ <= before) {
        return tl::unexpected{fmt::format("{} was emptied or recreated", stream_)};
    }
    return false;
}

BusResult<bool> PositionStore::find_batch(const std::string& batch) {
    while (true) {
        bool found = false;
        auto read = read_messages(*link_, {.stream = stream_, .subjects = subject_, .from = 1},
                                  [&](natsMsg* message, const jsMsgMetaData& /*metadata*/) {
                                      found =
                                          data_of(message).find(batch) != std::string_view::npos;
                                      return !found;
                                  });
        if (!read || found) {
            return read ? BusResult<bool>{true} : tl::unexpected{read.error()};
        }
        // Sets the same position again, so that the server rejects later messages of the batch's writer.
        const auto fenced = set_position(
            {.created = current_.created, .last = current_.last, .batch = make_run_id()});
        if (!fenced || *fenced) {
            return fenced ? BusResult<bool>{false} : tl::unexpected{fenced.error()};
        }
    }
}

} // namespace tw::bus
