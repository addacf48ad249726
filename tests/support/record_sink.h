#pragma once

#include "proxy/record/records.h"

#include <variant>

namespace tw::test {

/// The base class of a sink. Passes each record to the function Self::on() that takes its type.
/// Ignores records of other types.
template <typename Self>
class TypedRecordSink : public record::RecordSink {
  public:
    void on_record(const record::Record& record) final {
        std::visit(
            [this](const auto* each) {
                if constexpr (requires(Self & self) { self.on(*each); }) {
                    static_cast<Self*>(this)->on(*each);
                }
            },
            record);
    }
};

} // namespace tw::test
