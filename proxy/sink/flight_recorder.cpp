#include "proxy/sink/flight_recorder.h"

#include "proxy/record/describe_finding.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace tw::sink {

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
/// Beyond this a piece waits: the disk is slow.
constexpr std::size_t kQueued = std::size_t{8} << 20U;

std::string file_name(const std::string& finding, std::uint32_t session, record::Timestamp now) {
    std::string name = fmt::format("flight-{:%Y%m%dT%H%M%SZ}",
                                   fmt::gmtime(static_cast<std::time_t>(now / kSecond)));
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

void FlightRecorder::on_record(const record::Record& record) {
    blocks_.on_record(record);
    const auto* const found = std::get_if<const record::FindingRecord*>(&record);
    if (found == nullptr || !options_.triggers[static_cast<std::size_t>((*found)->id)]) {
        return;
    }
    if (cause_) {
        cause_->session = cause_->session == (*found)->head.session ? cause_->session : 0;
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
        !ring_.push(blocks_.at().session, blocks_.at().time, block_)) {
        ++tally_.lost;
    }
}

bool FlightRecorder::on_time(record::Timestamp now) {
    if (dump_) {
        return write_piece();
    }
    ring_.forget_before(now - options_.time);
    if (const std::int64_t session = asked_.exchange(kNobody); session != kNobody) {
        begin({.session = static_cast<std::uint32_t>(session), .text = "asked for"}, now);
    } else if (cause_ &&
               (written_ == 0 || now - written_ >= std::max(kLeastPause, options_.time))) {
        written_ = now;
        begin(*cause_, now);
        cause_.reset();
        tally_.held_back += std::exchange(waiting_, 0);
    }
    return dump_.has_value();
}

void FlightRecorder::begin(const Cause& cause, record::Timestamp now) {
    std::string comment =
        fmt::format("flight recorder: the last {} s; {}", options_.time / kSecond, cause.text);
    if (waiting_ != 0 && !cause.name.empty()) {
        comment += fmt::format("; and {} more findings since the file before", waiting_);
    }
    if (cause.session != 0) {
        comment += "; " + blocks_.describe(cause.session);
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
                 .dropped = ring_.dropped()};
}

bool FlightRecorder::write_piece() {
    if (files_->queued_bytes() > kQueued) {
        return false;
    }
    if (dump_->at < ring_.begin()) { // overtaken; some of these were written before
        tally_.lost += ring_.dropped() - dump_->dropped;
    }
    std::vector<std::byte> piece;
    std::uint64_t blocks = 0;
    auto block = ring_.at(dump_->at);
    for (; block && dump_->at < dump_->end && piece.size() < kPieceBytes;
         block = ring_.at(dump_->at)) {
        if (block->next > dump_->end) {
            dump_->at = dump_->end; // what came since
            break;
        }
        if (dump_->session == 0 || dump_->session == block->session) {
            piece.insert(piece.end(), block->bytes.begin(), block->bytes.end());
            ++blocks;
        }
        dump_->at = block->next;
    }
    dump_->dropped = ring_.dropped();
    if (!piece.empty() && !files_->append(dump_->file, std::move(piece))) {
        tally_.lost += blocks;
    }
    if (!block || dump_->at >= dump_->end) {
        files_->close(dump_->file);
        dump_.reset();
    }
    return dump_.has_value();
}

void FlightRecorder::finish(record::Timestamp now) {
    written_ = 0; // nothing follows that it could be too soon for
    for (int files = 0; files < 2; ++files) {
        if (!dump_ && !on_time(now)) {
            return;
        }
        while (dump_ && write_piece()) {
        }
        if (dump_) { // the disk is slow: what the queue does not take is lost
            tally_.lost += ring_.size();
            files_->close(dump_->file);
            dump_.reset();
        }
    }
}

} // namespace tw::sink
