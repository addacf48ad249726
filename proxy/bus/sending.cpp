#include "proxy/bus/sending.h"

#include "proxy/bus/publish_answer.h"
#include "proxy/bus/subjects.h"

#include <bit>
#include <charconv>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace tw::bus {

namespace {

/// A server that acknowledges nothing for so long does not take anything.
constexpr std::chrono::seconds kPatience{10};
constexpr std::chrono::milliseconds kMarkEvery{100};

std::uint64_t line_of_subject(std::string_view subject) {
    const std::string_view digits = subject.substr(subject.rfind('.') + 1);
    std::uint64_t line = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), line);
    return line;
}

} // namespace

Tried<void> Sending::begin(std::uint64_t until) {
    natsInbox* inbox = nullptr;
    natsStatus status = natsInbox_Create(&inbox);
    inbox_.reset(inbox);
    if (status == NATS_OK) {
        natsSubscription* made = nullptr;
        status = natsConnection_SubscribeSync(&made, link_->connection(),
                                              fmt::format("{}.*", inbox_.get()).c_str());
        answers_.reset(made);
    }
    if (status != NATS_OK) {
        return tl::unexpected{link_->describe(status)};
    }
    const auto place = backlog_->place();
    if (place) {
        auto stored = find_stored_lines(
            *link_, *stream_, fmt::format("{}.{}.>", *stream_, subject_of_all(backlog_->server())),
            backlog_->run(), *place, until);
        if (!stored) {
            return tl::unexpected{stored.error()};
        }
        stored_ = *std::move(stored);
    } else {
        backlog_->settle(backlog_->settled(), until); // before the first one is under way
    }
    window_.begin(backlog_->settled(), backlog_->place().value_or(until));
    answered_ = Clock::now();
    return {};
}

Tried<void> Sending::step(std::chrono::milliseconds patience) {
    if (link_->broken()) {
        return tl::unexpected{link_->describe(NATS_CONNECTION_CLOSED)};
    }
    if (auto sent = send_all(); !sent) {
        return sent;
    }
    auto taken = take_answers(patience);
    settle(Clock::now());
    return taken;
}

/// The line to be sent next; false: there is none, or none that may be sent now.
bool Sending::find_next(std::string_view& line) {
    const std::uint64_t next = window_.next();
    if (number_ != next || at_ >= lines_.text.size()) {
        if (!backlog_->read(next, lines_)) {
            return false;
        }
        at_ = 0;
        number_ = lines_.first;
        while (number_ < next && at_ < lines_.text.size()) {
            at_ = lines_.text.find('\n', at_) + 1;
            ++number_;
        }
        if (number_ > next) { // those between are lost
            if (window_.under_way() != 0) {
                return false;
            }
            window_.jump(number_);
        }
    }
    const std::size_t end = lines_.text.find('\n', at_);
    if (end == std::string::npos) {
        return false;
    }
    line = std::string_view{lines_.text}.substr(at_, end - at_);
    return true;
}

Tried<void> Sending::send_all() {
    std::string_view line;
    while (window_.has_room() && (more_ = find_next(line))) {
        if (window_.under_way() == 0) {
            answered_ = Clock::now();
        }
        const auto stored = stored_.find(window_.next());
        if (stored != stored_.end()) {
            window_.skip(stored->second);
            stored_.erase(stored);
        } else if (auto sent = send(line); !sent) {
            return sent;
        }
        at_ += line.size() + 1;
        ++number_;
    }
    return {};
}

Tried<void> Sending::send(std::string_view line) {
    const std::uint64_t number = window_.next();
    const std::string subject = fmt::format(
        "{}.{}.{}", *stream_, subject_server(backlog_->server(), line), subject_type(line));
    const std::string reply = fmt::format("{}.{}", inbox_.get(), number);
    natsMsg* made = nullptr;
    natsStatus status = natsMsg_Create(&made, subject.c_str(), reply.c_str(), line.data(),
                                       static_cast<int>(line.size()));
    const NatsMessage message{made};
    if (status == NATS_OK) {
        status = natsMsgHeader_Set(made, kMessageId, message_id(backlog_->run(), number).c_str());
    }
    if (status == NATS_OK) {
        status = natsConnection_PublishMsg(link_->connection(), made);
    }
    if (status == NATS_MAX_PAYLOAD) {
        const std::uint64_t refused = ++totals_->refused;
        if (std::has_single_bit(refused)) { // often enough
            spdlog::error("dropped a record of {} bytes, more than the bus accepts ({} so far); "
                          "raise max_payload of nats-server, or record fewer items",
                          line.size(), refused);
        }
        window_.skip(0);
        return {};
    }
    if (status != NATS_OK) {
        return tl::unexpected{link_->describe(status)};
    }
    window_.send();
    ++totals_->published;
    return {};
}

Tried<void> Sending::take_answers(std::chrono::milliseconds patience) {
    std::uint64_t waiting = 1;
    while (window_.under_way() != 0 && waiting != 0) {
        natsMsg* answer = nullptr;
        const natsStatus status =
            natsSubscription_NextMsg(&answer, answers_.get(), patience.count());
        const NatsMessage message{answer};
        if (status == NATS_TIMEOUT && link_->complaint().empty()) {
            break;
        }
        if (status == NATS_NO_RESPONDERS) { // the library makes a status of this answer
            return tl::unexpected{fmt::format(
                "no stream accepts {}.{}.*: give {} these subjects, or publish to another stream",
                *stream_, subject_of_all(backlog_->server()), *stream_)};
        }
        if (status != NATS_OK) {
            return tl::unexpected{link_->describe(status)};
        }
        if (auto taken = take_answer(answer); !taken) {
            return taken;
        }
        std::ignore = natsSubscription_QueuedMsgs(answers_.get(), &waiting);
    }
    if (window_.under_way() != 0 && Clock::now() - answered_ > kPatience) {
        return tl::unexpected{
            fmt::format("no acknowledgements: {}", link_->describe(NATS_TIMEOUT))};
    }
    return {};
}

Tried<void> Sending::take_answer(natsMsg* answer) {
    answered_ = Clock::now();
    const std::uint64_t line = line_of_subject(natsMsg_GetSubject(answer));
    const PublishAnswer said = read_publish_answer(
        {natsMsg_GetData(answer), static_cast<std::size_t>(natsMsg_GetDataLength(answer))});
    if (said.too_long) {
        const std::uint64_t refused = ++totals_->refused;
        if (std::has_single_bit(refused)) {
            spdlog::error("dropped a record longer than the stream {} accepts ({} so far); raise "
                          "its max_msg_size",
                          *stream_, refused);
        }
        std::ignore = window_.acknowledge(line, 0);
        return {};
    }
    if (said.place == 0) {
        return tl::unexpected{
            fmt::format("the stream {} rejects records: {}", *stream_, said.complaint)};
    }
    if (window_.acknowledge(line, said.place)) {
        ++totals_->acknowledged;
    }
    return {};
}

/// Lets go of what was acknowledged a while ago.
void Sending::settle(Clock::time_point now) {
    if (now - marked_ < kMarkEvery) {
        return;
    }
    marked_ = now;
    const std::uint64_t newest = marks_.empty() ? backlog_->settled() : marks_.back().settled;
    if (window_.settled() > newest) {
        marks_.push_back({.time = now, .settled = window_.settled(), .place = window_.place()});
    }
    std::optional<Mark> due;
    while (!marks_.empty() && now - marks_.front().time >= kKeep) {
        due = marks_.front();
        marks_.pop_front();
    }
    if (due) {
        backlog_->settle(due->settled, due->place);
    }
}

} // namespace tw::bus
