#pragma once

#include "proxy/record/records.h"
#include "proxy/wire/packet.h"
#include "snapshot/item.h"
#include "tests/fuzz/demand.h"

#include <variant>

namespace tw::fuzz {

/// Checks what must hold for every record of session 1, whatever its traffic is.
class StrictSink final : public record::RecordSink {
  public:
    void on_record(const record::Record& record) override {
        std::visit([this](const auto* concrete) { this->check(*concrete); }, record);
    }

  private:
    void check(const record::SessionRecord& record) {
        demand(record.head.session == 1);
        demand(record.event != record::SessionEvent::open || !opened_);
        opened_ = true;
    }

    void check(const record::MessageRecord& record) const {
        demand(opened_ && record.head.direction.has_value());
        demand(record.size <= tw::wire::kMaxDatagramSize);
    }

    static void check(const record::MapRecord& record) {
        demand(record.head.direction.has_value());
    }

    static void check(const record::SnapshotRecord& record) {
        demand(record.tick >= 0 && record.delta_tick >= tw::snapshot::kNoBase);
        demand(!record.rebuilt || !record.crc_wanted || record.crc_wanted == record.crc_got);
        demand(record.items.size() <= tw::snapshot::kMaxItems);
        demand(!record.rebuilt || record.types != nullptr);
    }

    /// Inspection must not report impairments, because it inspects only the traffic.
    static void check(const record::ImpairmentRecord& /*record*/) { demand(false); }

    static void check(const record::LossRecord& /*record*/) { demand(false); }

    static void check(const record::SegmentRecord& /*record*/) { demand(false); }

    static void check(const record::WorldRecord& /*record*/) { demand(false); }

    static void check(const record::FindingRecord& record) {
        demand(record.id < record::FindingId::count);
        demand(record.bytes.size() <= tw::wire::kMaxDatagramSize);
    }

    static void check(const record::SummaryRecord& record) { demand(record.stats != nullptr); }

    bool opened_ = false;
};

} // namespace tw::fuzz
