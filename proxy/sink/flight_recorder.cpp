#include "proxy/sink/flight_recorder.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace tw::sink {

namespace {

constexpr std::size_t kAlignment = 16;

constexpr std::uint64_t rounded(std::uint64_t size) {
    return (size + kAlignment - 1) / kAlignment * kAlignment;
}

} // namespace

FlightRing::FlightRing(std::size_t bytes)
    : capacity_{std::max(bytes, kAlignment) / kAlignment * kAlignment},
      bytes_{new std::byte[capacity_]} {}

FlightRing::Head FlightRing::head_at(Place place) const {
    Head head;
    std::memcpy(&head, bytes_.get() + place % capacity_, sizeof head);
    return head;
}

void FlightRing::put(Place place, const Head& head) {
    std::memcpy(bytes_.get() + place % capacity_, &head, sizeof head);
}

std::uint64_t FlightRing::length(Place place, const Head& head) const {
    return head.size == kFiller ? capacity_ - place % capacity_ : sizeof head + rounded(head.size);
}

void FlightRing::drop_oldest() {
    const Head head = head_at(begin_);
    dropped_ += head.size == kFiller ? 0 : 1;
    begin_ += length(begin_, head);
}

void FlightRing::make_room(Place until) {
    while (begin_ != end_ && until - begin_ > capacity_) {
        drop_oldest();
    }
}

bool FlightRing::push(std::uint32_t session, record::Timestamp time,
                      std::span<const std::byte> block) {
    const std::uint64_t need = sizeof(Head) + rounded(block.size());
    if (need > capacity_) {
        return false;
    }
    const std::uint64_t left = capacity_ - end_ % capacity_;
    if (left < need) { // a block must be contiguous in memory
        make_room(end_ + left);
        put(end_, {.size = kFiller});
        end_ += left;
    }
    make_room(end_ + need);
    put(end_, {.size = static_cast<std::uint32_t>(block.size()), .session = session, .time = time});
    std::ranges::copy(block, bytes_.get() + end_ % capacity_ + sizeof(Head));
    end_ += need;
    ++pushed_;
    return true;
}

void FlightRing::drop_before(record::Timestamp time) {
    while (begin_ != end_) {
        const Head head = head_at(begin_);
        if (head.size != kFiller && head.time >= time) {
            return;
        }
        drop_oldest();
    }
}

std::optional<FlightRing::Block> FlightRing::block_at(Place place) const {
    for (place = std::max(place, begin_); place < end_;) {
        const Head head = head_at(place);
        const Place next = place + length(place, head);
        if (head.size != kFiller) {
            return Block{.session = head.session,
                         .time = head.time,
                         .bytes = {bytes_.get() + place % capacity_ + sizeof head, head.size},
                         .next = next};
        }
        place = next;
    }
    return std::nullopt;
}

bool FlightRing::contains_session(std::uint32_t session) const {
    auto block = block_at(begin_);
    while (block && block->session != session) {
        block = block_at(block->next);
    }
    return block.has_value();
}

namespace {

constexpr std::int64_t kFlightSecond = 1'000'000'000;
/// While more than this many bytes are in the write queue, the next piece is not written yet.
constexpr std::size_t kQueued = std::size_t{8} << 20U;
/// At the end, writing stops if the disk accepts no data for this time.
constexpr std::chrono::milliseconds kPatience{500};
/// A waiting finding's file is begun when its datagrams are in the oldest 1/kParts of the data.
constexpr std::int64_t kParts = 8;
/// States are repeated so often that the oldest 1/kStates of the data contains one of each session.
constexpr std::int64_t kStates = 6;
/// The most files to write at the end: the current, a requested, and a finding's file.
constexpr int kLastFiles = 3;

std::string file_name(const std::string& finding, std::uint32_t session, record::Timestamp now) {
    std::string name = fmt::format("flight-{:%Y%m%dT%H%M%SZ}",
                                   fmt::gmtime(static_cast<std::time_t>(now / kFlightSecond)));
    if (session != 0) {
        name += fmt::format("-s{}", session);
    }
    if (!finding.empty()) {
        name += '-' + finding;
    }
    return name + ".pcapng";
}

} // namespace

FlightRecorder::FlightRecorder(FlightOptions options, std::size_t bytes, FileQueue& files)
    : options_{std::move(options)}, files_{&files}, ring_{bytes} {}

void FlightRecorder::set_state_source(StateSource states) {
    blocks_.set_state_source(std::move(states), std::max(options_.time / kStates, kFlightSecond));
}

void FlightRecorder::on_record(const record::Record& record) {
    blocks_.on_record(record);
    const auto* const found = std::get_if<const record::FindingRecord*>(&record);
    if (found == nullptr || !options_.triggers[static_cast<std::size_t>((*found)->id)]) {
        return;
    }
    if (cause_) {
        if (cause_->session != 0 && cause_->session != (*found)->head.session) {
            cause_->session = 0;
            cause_->text += "; and other sessions, which are all included";
        }
        ++waiting_;
        return;
    }
    cause_ = Cause{
        .session = options_.whole ? 0 : (*found)->head.session,
        .name = std::string{record::finding_info((*found)->id).name},
        .text = fmt::format("session {}: {}", (*found)->head.session, record::describe(**found))};
}

void FlightRecorder::on_datagram_end() {
    block_.clear();
    if (!blocks_.end_datagram(block_) ||
        !ring_.push(blocks_.current_head().session, blocks_.current_head().time, block_)) {
        ++tally_.lost;
    }
}

bool FlightRecorder::on_time(record::Timestamp now) {
    if (dump_) {
        return files_->queued_bytes() <= kQueued && write_piece();
    }
    ring_.drop_before(now - options_.time);
    if (cause_ && cause_->since == 0) {
        cause_->since = now;
    }
    if (const std::int64_t session = asked_.exchange(kNobody); session != kNobody) {
        const auto wanted = static_cast<std::uint32_t>(session);
        // A session that is not in the ring belongs to another recorder or is unknown.
        if (wanted == 0 || ring_.contains_session(wanted)) {
            begin_file({.session = wanted, .text = "on request"}, now);
        }
    } else if (cause_ && is_due(now)) {
        written_ = now;
        begin_file(*cause_, now);
        cause_.reset();
        tally_.held_back += std::exchange(waiting_, 0);
    }
    return dump_.has_value();
}

bool FlightRecorder::is_due(record::Timestamp now) const {
    const record::Timestamp pause = now - written_;
    if (written_ == 0 || pause >= std::max(kLeastPause, options_.time)) {
        return true;
    }
    // The finding's datagrams are among the oldest datagrams, which will be dropped soon.
    const auto oldest = ring_.block_at(ring_.begin());
    return pause >= kLeastPause && oldest && ring_.is_nearly_full() &&
           now - cause_->since >= (now - oldest->time) / kParts * (kParts - 1);
}

void FlightRecorder::request_file(std::uint32_t session) {
    auto none = kNobody;
    if (!asked_.compare_exchange_strong(none, session) && none != session) {
        asked_.store(0);
    }
}

void FlightRecorder::begin_file(const Cause& cause, record::Timestamp now) {
    std::string comment = fmt::format("flight recorder: the last {} s; {}",
                                      options_.time / kFlightSecond, cause.text);
    if (waiting_ != 0 && !cause.name.empty()) {
        comment += fmt::format("; and {} more findings since the previous file", waiting_);
    }
    if (cause.session != 0) {
        comment += "; " + blocks_.describe_session(cause.session);
    }
    const auto oldest = ring_.block_at(ring_.begin());
    if (cause.since != 0 && oldest && cause.since < oldest->time) {
        comment += fmt::format("; its datagrams were already dropped: there is room for {:.1f} s",
                               static_cast<double>(now - oldest->time) / kFlightSecond);
    }
    const auto file = files_->create(options_.folder / file_name(cause.name, cause.session, now),
                                     CaptureBlocks::head(comment), FileQueue::Readers::owner);
    if (!file) {
        tally_.lost += ring_.size();
        return;
    }
    ++tally_.files;
    dump_ = Dump{.file = *file,
                 .session = cause.session,
                 .at = ring_.begin(),
                 .end = ring_.end(),
                 .dropped = ring_.num_dropped()};
}

bool FlightRecorder::write_piece() {
    // blocks of the file were dropped from memory; some of them may already be in the file
    if (dump_->at < ring_.begin()) {
        tally_.lost += ring_.num_dropped() - dump_->dropped;
    }
    std::vector<std::byte> piece;
    std::uint64_t blocks = 0;
    auto block = ring_.block_at(dump_->at);
    for (; block && dump_->at < dump_->end && piece.size() < kPieceBytes;
         block = ring_.block_at(dump_->at)) {
        if (block->next > dump_->end) {
            dump_->at = dump_->end; // leaves out blocks that are newer than the file
            break;
        }
        if (dump_->session == 0 || dump_->session == block->session) {
            piece.insert(piece.end(), block->bytes.begin(), block->bytes.end());
            ++blocks;
        }
        dump_->at = block->next;
    }
    dump_->dropped = ring_.num_dropped();
    if (!piece.empty() && !files_->append(dump_->file, std::move(piece))) {
        tally_.lost += blocks;
    }
    if (!block || dump_->at >= dump_->end) {
        end_dump();
    }
    return dump_.has_value();
}

void FlightRecorder::end_dump() {
    files_->close(dump_->file);
    dump_.reset();
}

void FlightRecorder::finish(record::Timestamp now) {
    written_ = 0; // at the end, no file is too early
    for (int files = 0; files < kLastFiles; ++files) {
        if (!dump_) {
            static_cast<void>(on_time(now));
        }
        while (dump_ && files_->wait_for_room(kPieceBytes, kPatience)) {
            static_cast<void>(write_piece());
        }
        if (dump_) { // the disk accepts no data
            for (auto block = ring_.block_at(dump_->at); block && block->next <= dump_->end;
                 block = ring_.block_at(block->next)) {
                tally_.lost += dump_->session == 0 || dump_->session == block->session ? 1U : 0U;
            }
            end_dump();
        }
    }
}

} // namespace tw::sink
