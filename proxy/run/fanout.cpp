#include "proxy/run/fanout.h"

#include <utility>

namespace tw::run {

void add_filtered(Fanout& sinks, record::RecordSink& sink, std::optional<filter::Filter> filter,
                  std::optional<filter::FilteredSink>& holder) {
    if (filter) {
        sinks.add(holder.emplace(*std::move(filter), sink));
    } else {
        sinks.add(sink);
    }
}

} // namespace tw::run
