#include "proxy/sink/capture_blocks.h"

#include "proxy/record/describe_finding.h"
#include "proxy/record/terminal_text.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tw::sink {

namespace {

constexpr std::uint32_t kClients = 0;
constexpr std::uint32_t kServer = 1;

/// For what has no address, or one that is not shown: a network for tests (RFC 2544).
FrameEndpoint stand_in(std::uint32_t session) {
    constexpr std::uint16_t kPort = 49152;
    return {.address = {198, 18, static_cast<std::uint8_t>(session >> 8U),
                        static_cast<std::uint8_t>(session)},
            .port = static_cast<std::uint16_t>(kPort + (session >> 16U) % 16384)};
}

} // namespace

CaptureBlocks::Bytes CaptureBlocks::head(std::string_view comment) {
    Bytes head;
    const PcapngEncoder encoder;
    encoder.section("twscope", head, comment);
    encoder.interface({.name = "clients", .description = kClientsDescription}, head);
    encoder.interface({.name = "server", .description = "between twscope and the server"}, head);
    return head;
}

void CaptureBlocks::on_record(const record::Record& record) {
    std::visit(
        [this](const auto* concrete) {
            if constexpr (requires { take(*concrete); }) {
                take(*concrete);
            }
        },
        record);
}

void CaptureBlocks::take(const record::SessionRecord& record) {
    const std::uint32_t session = record.head.session;
    switch (record.event) {
    case record::SessionEvent::open:
        ends_ = nullptr;
        sessions_[session] = {
            .client = parse_endpoint(record.client).value_or(stand_in(session)),
            .server = parse_endpoint(record.server).value_or(stand_in(0)),
            .told = fmt::format("session {}: {} to {}", session, record.client, record.server),
            .opened = introduction_};
        closed_.erase(session);
        forget_one_too_many();
        break;
    case record::SessionEvent::established:
        closed_.erase(session);
        say(session, fmt::format("session {}: established, {}", session, record.protocol), true);
        break;
    case record::SessionEvent::close:
        if (sessions_.contains(session)) {
            closed_.insert(session);
        }
        say(session,
            fmt::format("session {}: closed: {}", session, record::terminal_text(record.reason)),
            true);
        break;
    }
}

void CaptureBlocks::forget_one_too_many() {
    if (sessions_.size() <= kMaxSessions) {
        return;
    }
    const std::uint32_t oldest = closed_.empty() ? sessions_.begin()->first : *closed_.begin();
    sessions_.erase(oldest);
    closed_.erase(oldest);
}

void CaptureBlocks::take(const record::FindingRecord& record) {
    say(record.head.session, record::describe(record), false);
}

void CaptureBlocks::say(std::uint32_t session, std::string text, bool of_session) {
    if (comments_.size() < kMaxComments) {
        comments_.push_back(
            {.session = session, .of_session = of_session, .text = std::move(text)});
    } else {
        ++unsaid_;
    }
}

void CaptureBlocks::put_aside() {
    for (Comment& comment : comments_) {
        const auto found = sessions_.find(comment.session);
        if (found != sessions_.end() && found->second.aside.size() < kMaxAside) {
            found->second.aside.push_back(std::move(comment.text));
        }
    }
    comments_.clear();
    unsaid_ = 0;
}

void CaptureBlocks::skip_datagram() {
    std::erase_if(comments_, [](const Comment& comment) { return !comment.of_session; });
    put_aside();
}

std::vector<std::string> CaptureBlocks::take_comments(Ends* ends) {
    constexpr std::string_view kName = "twscope: ";
    std::vector<std::string> texts;
    if (ends != nullptr) {
        if (std::exchange(ends->introduced, introduction_) != introduction_) {
            texts.push_back(fmt::format("{}{}{}", kName, ends->told,
                                        ends->opened == introduction_ ? "" : ", from before"));
        }
        for (const std::string& text : std::exchange(ends->aside, {})) {
            texts.push_back(fmt::format("{}{}", kName, text));
        }
    }
    for (const Comment& comment : comments_) {
        texts.push_back(fmt::format("{}{}", kName, comment.text));
    }
    if (const auto unsaid = std::exchange(unsaid_, 0); unsaid != 0) {
        texts.push_back(fmt::format("{}{} more", kName, unsaid));
    }
    comments_.clear();
    return texts;
}

void CaptureBlocks::repeat_states(StateSource states, record::Timestamp every) {
    states_ = std::move(states);
    states_every_ = every;
}

bool CaptureBlocks::wants_state(const Ends& ends) const {
    return ends.stated != introduction_ ||
           (states_every_ != 0 && head_.time - ends.stated_at >= states_every_);
}

void CaptureBlocks::on_datagram(const record::RecordHead& head,
                                std::span<const std::byte> datagram) {
    head_ = head;
    datagram_ = datagram;
    state_.clear();
    const auto found = sessions_.find(head.session);
    ends_ = found == sessions_.end() ? nullptr : &found->second;
    if (ends_ != nullptr && states_ && states_left_.any() && wants_state(*ends_)) {
        ends_->stated = introduction_;
        ends_->stated_at = head.time;
        state_ = states_();
        states_left_.spend(state_.size());
    }
    states_left_.earn(datagram.size());
}

void CaptureBlocks::put_state(Bytes& out) const {
    SessionState state{.client = ends_->client, .server = ends_->server, .bytes = state_};
    make_same_family(state.client, state.server);
    put_session_state(state, out);
}

bool CaptureBlocks::end_datagram(Bytes& out) {
    if (datagram_.size() > kMaxFramePayload) {
        return false;
    }
    const bool to_server = head_.direction == wire::Direction::c2s;
    if (ends_ != nullptr && !state_.empty()) {
        put_state(out);
    }
    const FrameEndpoint client = ends_ != nullptr ? ends_->client : stand_in(head_.session);
    const FrameEndpoint server = ends_ != nullptr ? ends_->server : stand_in(0);
    make_udp_frame(to_server ? client : server, to_server ? server : client, datagram_, frame_);
    const auto comments = take_comments(ends_);
    using Direction = PcapngPacket::Direction;
    encoder_.packet({.interface = to_server ? kClients : kServer,
                     .time = static_cast<std::uint64_t>(head_.time),
                     .frame = frame_,
                     .direction = to_server ? Direction::inbound : Direction::outbound,
                     .comments = comments},
                    out);
    return true;
}

std::string CaptureBlocks::describe(std::uint32_t session) const {
    const auto found = sessions_.find(session);
    return found == sessions_.end() ? std::string{} : found->second.told;
}

void CaptureBlocks::finish(record::Timestamp time, Bytes& out) {
    if (!comments_.empty()) {
        encoder_.statistics(kClients, static_cast<std::uint64_t>(time), take_comments(nullptr),
                            out);
    }
}

std::uint64_t whole_capture_bytes(int descriptor) {
    struct stat found {};

    if (::fstat(descriptor, &found) != 0 || !S_ISREG(found.st_mode)) {
        return 0;
    }
    constexpr std::size_t kPiece = std::size_t{1} << 16U;
    const auto size = static_cast<std::uint64_t>(found.st_size);
    std::string piece;
    std::uint64_t begin = 0; // of the piece
    for (std::uint64_t at = 0;;) {
        if (at + PcapngBlock::kHead > begin + piece.size()) {
            piece.resize(kPiece);
            const ssize_t read =
                ::pread(descriptor, piece.data(), piece.size(), static_cast<off_t>(at));
            piece.resize(static_cast<std::size_t>(std::max<ssize_t>(read, 0)));
            begin = at;
        }
        const auto block = PcapngBlock::read(std::string_view{piece}.substr(at - begin));
        if (!block || block->size > size - at) {
            return at;
        }
        at += block->size;
    }
}

} // namespace tw::sink
