#include "proxy/capture/capture_run.h"

#include "proxy/record/terminal_text.h"
#include "proxy/sink/output.h"
#include "proxy/wire/packet.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <system_error>

#include <fmt/format.h>

namespace tw::capture {

namespace {

std::size_t hash_of(const CaptureEndpoint& end) {
    constexpr std::size_t kMix = 0x9e3779b97f4a7c15;
    return (std::hash<boost::asio::ip::address>{}(end.address) * kMix + end.port) * kMix;
}

std::size_t size_of(const TimeSorter::OrderedDatagram& item) {
    return sizeof item + item.payload.size() + (item.state ? item.state->bytes.size() : 0);
}

} // namespace

void TimeSorter::add_datagram(const CapturedDatagram& datagram, std::size_t file, bool sorts) {
    auto item = std::make_unique<OrderedDatagram>(OrderedDatagram{
        .datagram = datagram,
        .payload = {datagram.payload.begin(), datagram.payload.end()},
        .state = datagram.state == nullptr ? std::nullopt : std::optional{*datagram.state},
        .file = file});
    item->datagram.payload = item->payload;
    item->datagram.state = item->state ? &*item->state : nullptr;
    bytes_ += size_of(*item);
    if (!sorts) {
        waiting_.push_back({.time = datagram.time, .item = std::move(item)});
        return;
    }
    std::int64_t time = datagram.time;
    const std::size_t hash = hash_of(datagram.source) + hash_of(datagram.destination);
    if (!waiting_.empty() && time < waiting_.back().time - kWindowNs) {
        num_before_jump_ = waiting_.size();
    }
    std::size_t place = waiting_.size();
    while (place > num_before_jump_ && waiting_[place - 1].time > time) {
        if (waiting_[place - 1].hash == hash) {
            time = waiting_[place - 1].time;
            break;
        }
        --place;
    }
    if (place < waiting_.size() && time == datagram.time && !has_several_threads_) {
        const auto before = waiting_.begin() + static_cast<std::ptrdiff_t>(place);
        has_several_threads_ =
            std::any_of(waiting_.begin() + static_cast<std::ptrdiff_t>(num_before_jump_), before,
                        [hash](const WaitingDatagram& each) { return each.hash == hash; });
        if (!has_several_threads_) {
            place = waiting_.size();
            time = waiting_.back().time;
        }
    }
    waiting_.insert(waiting_.begin() + static_cast<std::ptrdiff_t>(place),
                    {.time = time, .hash = hash, .item = std::move(item)});
}

const TimeSorter::OrderedDatagram* TimeSorter::next_datagram(std::size_t most) {
    returned_.reset();
    const bool due = !waiting_.empty() &&
                     (waiting_.size() > most || num_before_jump_ != 0 || bytes_ > kMaxBytes ||
                      waiting_.front().time <= waiting_.back().time - kWindowNs);
    if (!due) {
        return nullptr;
    }
    returned_ = std::move(waiting_.front().item);
    waiting_.pop_front();
    num_before_jump_ -= num_before_jump_ == 0 ? 0 : 1;
    bytes_ -= size_of(*returned_);
    // `next` cannot be set earlier, because add_datagram() may insert a datagram before the others.
    returned_->datagram.next = waiting_.empty()
                                   ? std::span<const std::byte>{}
                                   : std::span<const std::byte>{waiting_.front().item->payload};
    return returned_.get();
}

namespace {

/// The advice for users whose captures contain frames with several merged datagrams.
constexpr std::string_view kMergedFramesAdvice =
    "record with generic receive offload off: ethtool -K IFACE "
    "gro off";

/// Prints counts of the frames and datagrams that were not inspected. `asked`: the user requested
/// certain servers.
void report_capture(const std::string& path, const CaptureFile& file, bool asked,
                    std::uint64_t ignored, std::uint64_t refused, std::uint64_t oversized) {
    const CaptureCounts counts = file.counts();
    if (counts.merged_frames != 0) {
        sink::print_error("{}: {} held several datagrams each, merged by the recording host; "
                          "they were split, and share one time ({})",
                          path, record::count_with_noun(counts.merged_frames, "frame[s]"),
                          kMergedFramesAdvice);
    }
    if (oversized != 0) {
        sink::print_error("{}: {} longer than the 1400 bytes that game programs take; "
                          "the recording host may have merged several into one ({})",
                          path, record::count_with_noun(oversized, "datagram[s] [is|are]"),
                          kMergedFramesAdvice);
    }
    const std::pair<std::string_view, std::uint64_t> warnings[] = {
        {"IP fragment[s] of datagrams that could not be reassembled", counts.incomplete_fragments},
        {"datagram[s] truncated by the recorder (record with a snap length of 0)",
         counts.truncated},
        {"frame[s] ignored: not UDP over IPv4 or IPv6", counts.other_frames},
        {"datagram[s] ignored: not recognised as game traffic", asked ? 0 : ignored},
        {"datagram[s] of new sessions ignored: too many sessions at once", refused},
    };
    for (const auto& [what, count] : warnings) {
        if (count != 0) {
            sink::print_error("{}: {}", path, record::count_with_noun(count, what));
        }
    }
    if (counts.ended_early) {
        sink::print_error("{}: ends in the middle of a frame; read the {} before it", path,
                          counts.frames);
    }
    if (!file.read_error().empty()) {
        sink::print_error("{}: cannot be read beyond frame {}: {}", path, counts.frames,
                          file.read_error());
    }
    if (counts.frames == 0 && !counts.ended_early && file.read_error().empty()) {
        sink::print_error("{}: contains no packets", path);
    } else if (counts.datagrams == 0) {
        sink::print_error("{}: no whole UDP datagrams in {}", path,
                          record::count_with_noun(counts.frames, "frame[s]"));
    } else if (asked && ignored == counts.datagrams) {
        sink::print_error("{}: none of {} is to or from the given server", path,
                          record::count_with_noun(counts.datagrams, "datagram[s]"));
    }
}

} // namespace

CaptureRun::CaptureSource CaptureRun::open_source(std::string path) {
    if (!demo::DemoFile::is_demo(path)) {
        auto capture = std::make_unique<CaptureFile>(path);
        return {.path = std::move(path), .capture = std::move(capture)};
    }
    auto demo = std::make_unique<demo::DemoFile>(path);
    auto head = demo::decode_demo_parts(demo->bytes());
    if (!head) {
        throw CaptureError{fmt::format("{}: {} (offset {})", path,
                                       demo::demo_error_info(head.error().code).sentence,
                                       head.error().offset)};
    }
    return {.path = std::move(path), .demo = std::move(demo), .head = *std::move(head)};
}

CaptureRun::CaptureRun(std::vector<std::string> paths, ServerDetector servers)
    : detector_{std::move(servers)} {
    for (std::string& path : paths) {
        sources_.push_back(open_source(std::move(path)));
    }
}

void CaptureRun::extend_time_range(record::Timestamp first, record::Timestamp last) {
    first_time_ = has_datagrams_ ? first_time_ : first;
    last_time_ = last;
    has_datagrams_ = true;
}

CaptureRun::DatagramPosition CaptureRun::datagram_position_at(record::Timestamp time) const {
    DatagramPosition found;
    for (std::size_t i = 0; i < std::min(num_positions_, positions_.size()); ++i) {
        const DatagramPosition& each = positions_[(num_positions_ - 1 - i) % kMaxPositions];
        if (each.time != time) {
            continue;
        }
        if (i == 0) {
            return each; // the datagram that is being inspected
        }
        if (found.frame != 0) {
            return {}; // two datagrams have this time, so the position is uncertain
        }
        found = each;
    }
    return found;
}

void CaptureRun::pass_on_datagram(const CapturedDatagram& datagram, CaptureSource& source,
                                  CaptureSessions& sessions) {
    const std::uint64_t ignored = sessions.ignored_datagrams();
    const std::uint64_t refused = sessions.refused_datagrams();
    extend_time_range(datagram.time, datagram.time);
    positions_.resize(kMaxPositions);
    positions_[num_positions_++ % kMaxPositions] = {
        .path = source.path, .frame = datagram.frame, .time = datagram.time};
    detector_.select_traffic(source.capture->is_written_by_twscope()
                                 ? ServerDetector::TrafficSelection::everything
                                 : ServerDetector::TrafficSelection::game_ports);
    sessions.on_datagram(datagram);
    source.ignored += sessions.ignored_datagrams() - ignored;
    source.refused += sessions.refused_datagrams() - refused;
    if (sessions.ignored_datagrams() == ignored &&
        datagram.payload.size() > wire::kMaxDatagramSize) {
        ++source.oversized;
    }
}

void CaptureRun::read_capture(std::size_t index, CaptureSessions& sessions) {
    const CaptureSource& source = sources_[index];
    const bool sorts = source.capture->is_written_by_twscope();
    // Inspection needs the next datagram, so one datagram waits. A pipe's datagrams do not wait.
    std::error_code ignored;
    const std::size_t most = sorts ? TimeSorter::kMaxDatagrams
                             : std::filesystem::is_regular_file(source.path, ignored) ? 1
                                                                                      : 0;
    CapturedDatagram datagram;
    while (!is_enough_() && source.capture->read_datagram(datagram)) {
        sorter_.add_datagram(datagram, index, sorts);
        pass_on_waiting_datagrams(sessions, most);
        datagram = {};
    }
    if (!sorts) { // otherwise the datagrams are sorted together with those of the next file
        pass_on_waiting_datagrams(sessions, 0);
    }
}

void CaptureRun::pass_on_waiting_datagrams(CaptureSessions& sessions, std::size_t most) {
    while (const TimeSorter::OrderedDatagram* const item = sorter_.next_datagram(most)) {
        pass_on_datagram(item->datagram, sources_[item->file], sessions);
    }
}

/// Reports all captures at the end, because datagrams of one file may be passed on while the next
/// file is read.
void CaptureRun::report_captures() {
    for (const CaptureSource& source : sources_) {
        if (!source.capture || !source.begun) {
            continue;
        }
        is_damaged_ = is_damaged_ || !source.capture->read_error().empty();
        if (!is_quiet_) {
            report_capture(source.path, *source.capture, detector_.has_servers(), source.ignored,
                           source.refused, source.oversized);
        }
    }
}

bool CaptureRun::is_empty() const {
    std::error_code ignored;
    return std::ranges::all_of(sources_, [&](const CaptureSource& source) {
        return source.capture && source.begun && source.capture->counts().frames == 0 &&
               std::filesystem::is_regular_file(source.path, ignored);
    });
}

void CaptureRun::read_demo(const CaptureSource& source, inspect::Inspector& inspector) {
    const auto name = std::filesystem::path{source.path}.filename().string();
    positions_.clear();
    const demo::DemoReadResult played = demo::inspect_demo(source.head, name, inspector);
    extend_time_range(played.first, played.last);
    if (played.error.code == demo::DemoErrc::none) {
        return;
    }
    is_damaged_ = is_damaged_ || !demo::is_truncation(played.error.code);
    if (is_quiet_) {
        return;
    }
    sink::print_error("{}: {} (offset {}); read everything before it", source.path,
                      demo::demo_error_info(played.error.code).sentence, played.error.offset);
}

void CaptureRun::read_captures(inspect::Inspector& inspector, const std::string& pseudonym_key) {
    inspector.expect_missing_datagrams();
    InspectorSessionReceiver inspected{inspector, pseudonym_key};
    CaptureSessions sessions{inspected, detector_, {}};
    for (std::size_t index = 0; index < sources_.size() && !is_enough_(); ++index) {
        CaptureSource& source = sources_[index];
        source.begun = true;
        if (source.demo || !source.capture->is_written_by_twscope()) {
            pass_on_waiting_datagrams(sessions, 0);
        }
        if (source.demo) {
            read_demo(source, inspector);
        } else {
            read_capture(index, sessions);
        }
    }
    pass_on_waiting_datagrams(sessions, 0);
    report_captures();
    is_damaged_ = is_damaged_ || sessions.truncated_datagrams() != 0;
    inspector.close_all_sessions(sessions.current_time(), "end of capture");
}

} // namespace tw::capture
