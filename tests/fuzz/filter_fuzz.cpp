#include "proxy/filter/expectation.h"
#include "proxy/filter/filter.h"
#include "tests/fuzz/demand.h"
#include "tests/proxy/sink/sample_records.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

/// The input is the text of a filter. It must either compile to a filter that accepts every record as
/// input, or give an error at a position within the text that can be shown on a terminal. A filter and an
/// expectation of the same text must agree.
namespace {

using tw::filter::FilterError;
using tw::fuzz::demand;

void check_error(const FilterError& error, std::size_t size) {
    demand(error.offset <= size);
    demand(!error.message.empty());
    demand(std::all_of(error.message.begin(), error.message.end(),
                       [](char c) { return c >= ' ' && c < '\x7f'; }));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const tw::test::SampleRecords samples;
    static const auto records = samples.all();
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    auto expectation = tw::filter::Expectation::parse(text);
    if (!expectation) {
        check_error(expectation.error(), size);
    }
    const auto filter = tw::filter::Filter::parse(text);
    if (!filter) {
        check_error(filter.error(), size);
    }
    bool any = false;
    for (const auto& record : records) {
        any = (filter && filter->matches(record)) || any;
        if (expectation) {
            expectation->evaluate_record(record);
        }
    }
    if (filter) {
        demand(expectation.has_value());
        demand(expectation->is_met() == any);
    }
    if (expectation) {
        demand(expectation->is_met() == expectation->unmet_reason().empty());
    }
    return 0;
}
