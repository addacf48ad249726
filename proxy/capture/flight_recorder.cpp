#include "proxy/capture/flight_recorder.h"

#include "proxy/base/clock.h"
#include "proxy/record/terminal_text.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

#include <fmt/format.h>

namespace tw::capture {

FlightRecorderRing::FlightRecorderRing(std::size_t bytes)
    : capacity_{std::max<std::size_t>(bytes / 8 * 7, 1)}, max_blocks_{std::max<std::size_t>(
                                                              bytes / 8 / sizeof(Block), 1)},
      bytes_{new std::byte[capacity_]} {}

std::uint64_t FlightRecorderRing::num_added_bytes() const {
    return blocks_.empty() ? 0 : blocks_.back().at + blocks_.back().size;
}

void FlightRecorderRing::drop_oldest_block() {
    blocks_.pop_front();
    ++num_dropped_;
}

bool FlightRecorderRing::push_block(std::uint32_t session, record::Timestamp time,
                                    std::span<const std::byte> bytes) {
    if (bytes.size() > capacity_) {
        return false;
    }
    const std::uint64_t at = num_added_bytes();
    while (!blocks_.empty() &&
           (blocks_.size() == max_blocks_ || at + bytes.size() - blocks_.front().at > capacity_)) {
        drop_oldest_block();
    }
    const std::size_t begin = at % capacity_;
    const auto first = bytes.first(std::min(bytes.size(), capacity_ - begin));
    std::ranges::copy(first, bytes_.get() + begin);
    std::ranges::copy(bytes.subspan(first.size()), bytes_.get());
    blocks_.push_back({.session = session, .time = time, .at = at, .size = bytes.size()});
    return true;
}

void FlightRecorderRing::append_block_bytes(const Block& block, std::vector<std::byte>& out) const {
    const std::byte* const begin = bytes_.get() + block.at % capacity_;
    const std::size_t first = std::min(block.size, capacity_ - block.at % capacity_);
    out.insert(out.end(), begin, begin + first);
    out.insert(out.end(), bytes_.get(), bytes_.get() + (block.size - first));
}

void FlightRecorderRing::drop_blocks_before(record::Timestamp time) {
    while (!blocks_.empty() && blocks_.front().time < time) {
        drop_oldest_block();
    }
}

bool FlightRecorderRing::is_nearly_full() const {
    return !blocks_.empty() && (blocks_.size() >= max_blocks_ / 8 * 7 ||
                                num_added_bytes() - blocks_.front().at >= capacity_ / 8 * 7);
}

namespace {

/// While more than this many bytes are in the write queue, the next piece is not written yet.
constexpr std::size_t kMaxQueuedBytes = std::size_t{8} << 20U;
/// At the end of the run, writing is given up if the disk accepts no data for this time.
constexpr std::chrono::milliseconds kMaxDiskWait{500};
/// A finding's file is begun at the latest when the finding's datagrams are in the oldest
/// 1/kOldestShareDivisor of the data, because the ring drops the oldest data.
constexpr std::int64_t kOldestShareDivisor = 8;
/// States are repeated so often that the oldest 1/kStateShareDivisor of the data contains a state
/// of each session.
constexpr std::int64_t kStateShareDivisor = 6;
/// The most files to write at the end of the run: the open file, a requested file, and a finding's
/// file.
constexpr int kMaxFilesAtEnd = 3;

std::string file_name(const std::string& finding, std::uint32_t session, record::Timestamp now) {
    std::string name = "flight-" + base::format_utc(now / record::kNanosecondsPerSecond,
                                                    base::kFileNameTimeFormat);
    if (session != 0) {
        name += fmt::format("-s{}", session);
    }
    if (!finding.empty()) {
        name += '-' + finding;
    }
    return name + ".pcapng";
}

} // namespace

FlightRecorder::FlightRecorder(FlightRecorderOptions options, std::size_t bytes,
                               store::FileQueue& files)
    : options_{std::move(options)}, files_{&files}, ring_{bytes} {}

void FlightRecorder::set_session_state_source(SessionStateSource states) {
    encoder_.set_session_state_source(
        std::move(states),
        std::max(options_.time / kStateShareDivisor, record::kNanosecondsPerSecond));
}

void FlightRecorder::on_record(const record::Record& record) {
    encoder_.on_record(record);
    const auto* const found = std::get_if<const record::FindingRecord*>(&record);
    if (found == nullptr || !options_.triggers[static_cast<std::size_t>((*found)->id)]) {
        return;
    }
    if (file_cause_) {
        if (file_cause_->session != 0 && file_cause_->session != (*found)->head.session) {
            file_cause_->session = 0;
            file_cause_->text += "; and other sessions, which are all included";
        }
        ++waiting_findings_;
        return;
    }
    file_cause_ = FileCause{.session = options_.includes_all_sessions ? 0 : (*found)->head.session,
                            .name = std::string{record::finding_info((*found)->id).name},
                            .text = fmt::format("session {}: {}", (*found)->head.session,
                                                record::describe_finding(**found))};
}

void FlightRecorder::on_datagram_end() {
    block_.clear();
    if (!encoder_.end_datagram(block_) ||
        !ring_.push_block(encoder_.current_head().session, encoder_.current_head().time, block_)) {
        ++counts_.lost;
    }
}

bool FlightRecorder::on_time(record::Timestamp now) {
    if (open_file_) {
        return files_->queued_bytes() <= kMaxQueuedBytes && write_next_piece();
    }
    ring_.drop_blocks_before(now - options_.time);
    if (file_cause_ && file_cause_->since == 0) {
        file_cause_->since = now;
    }
    if (const std::int64_t session = requested_session_.exchange(kNoRequest);
        session != kNoRequest) {
        const auto wanted = static_cast<std::uint32_t>(session);
        // A session that is not in the ring belongs to another recorder or is unknown.
        if (wanted == 0 || ring_.contains_session(wanted)) {
            begin_file({.session = wanted, .text = "on request"}, now);
        }
    } else if (file_cause_ && is_file_due(now)) {
        last_file_time_ = now;
        begin_file(*file_cause_, now);
        file_cause_.reset();
        counts_.num_findings_without_file += std::exchange(waiting_findings_, 0);
    }
    return open_file_.has_value();
}

bool FlightRecorder::is_file_due(record::Timestamp now) const {
    const record::Timestamp pause = now - last_file_time_;
    if (last_file_time_ == 0 || pause >= std::max(kMinFileInterval, options_.time)) {
        return true;
    }
    // Otherwise a file is due if the finding's datagrams will be dropped from the memory soon.
    return pause >= kMinFileInterval && ring_.is_nearly_full() &&
           now - file_cause_->since >= (now - ring_.block(ring_.first_block_number()).time) /
                                           kOldestShareDivisor * (kOldestShareDivisor - 1);
}

void FlightRecorder::request_file(std::uint32_t session) {
    auto none = kNoRequest;
    if (!requested_session_.compare_exchange_strong(none, session) && none != session) {
        requested_session_.store(0);
    }
}

void FlightRecorder::begin_file(const FileCause& cause, record::Timestamp now) {
    std::string comment = fmt::format("flight recorder: the last {} s; {}",
                                      options_.time / record::kNanosecondsPerSecond, cause.text);
    if (waiting_findings_ != 0 && !cause.name.empty()) {
        comment += fmt::format("; and {} since the previous file",
                               record::count_with_noun(waiting_findings_, "more finding[s]"));
    }
    if (cause.session != 0) {
        comment += "; " + encoder_.describe_session(cause.session);
    }
    const record::Timestamp oldest =
        ring_.num_blocks() == 0 ? 0 : ring_.block(ring_.first_block_number()).time;
    if (cause.since != 0 && cause.since < oldest) {
        comment += fmt::format("; its datagrams were already dropped: there is room for {:.1f} s",
                               static_cast<double>(now - oldest) / record::kNanosecondsPerSecond);
    }
    const auto file = files_->create(options_.folder / file_name(cause.name, cause.session, now),
                                     CaptureEncoder::encode_start(comment),
                                     store::FileQueue::AllowedReaders::owner);
    if (!file) {
        counts_.lost += ring_.num_blocks();
        return;
    }
    ++counts_.files;
    open_file_ = OpenFile{.file = *file,
                          .session = cause.session,
                          .at = ring_.first_block_number(),
                          .end = ring_.end_block_number()};
}

bool FlightRecorder::write_next_piece() {
    // Some blocks were dropped from memory before they were written.
    if (open_file_->at < ring_.first_block_number()) {
        const std::uint64_t kept_from = std::min(ring_.first_block_number(), open_file_->end);
        counts_.lost += kept_from - open_file_->at;
        open_file_->at = kept_from;
    }
    std::vector<std::byte> piece;
    std::uint64_t blocks = 0;
    for (; open_file_->at < open_file_->end && piece.size() < kPieceBytes; ++open_file_->at) {
        const FlightRecorderRing::Block& block = ring_.block(open_file_->at);
        if (open_file_->session == 0 || open_file_->session == block.session) {
            ring_.append_block_bytes(block, piece);
            ++blocks;
        }
    }
    if (!piece.empty() && !files_->append(open_file_->file, std::move(piece))) {
        counts_.lost += blocks;
    }
    if (open_file_->at >= open_file_->end) {
        end_file();
    }
    return open_file_.has_value();
}

void FlightRecorder::end_file() {
    files_->close(open_file_->file);
    open_file_.reset();
}

void FlightRecorder::write_remaining_files(record::Timestamp now) {
    last_file_time_ = 0; // at the end, a file need not wait until the previous file is old enough
    for (int files = 0; files < kMaxFilesAtEnd; ++files) {
        if (!open_file_) {
            static_cast<void>(on_time(now));
        }
        while (open_file_ && files_->wait_for_room(kPieceBytes, kMaxDiskWait)) {
            static_cast<void>(write_next_piece());
        }
        if (open_file_) { // wait_for_room() failed: the disk accepts no data
            for (auto at = std::max(open_file_->at, ring_.first_block_number());
                 at < open_file_->end; ++at) {
                const std::uint32_t session = ring_.block(at).session;
                counts_.lost +=
                    open_file_->session == 0 || open_file_->session == session ? 1U : 0U;
            }
            end_file();
        }
    }
}

} // namespace tw::capture
