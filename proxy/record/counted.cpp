#include "proxy/record/counted.h"

namespace tw::record {

std::string for_count(std::uint64_t count, std::string_view text) {
    std::string out;
    for (;;) {
        const std::size_t open = text.find('[');
        const std::size_t close = text.find(']', open);
        out += text.substr(0, open);
        if (open == std::string_view::npos || close == std::string_view::npos) {
            return out;
        }
        const std::string_view forms = text.substr(open + 1, close - open - 1);
        const std::size_t bar = forms.find('|');
        const std::string_view one = bar == std::string_view::npos ? "" : forms.substr(0, bar);
        out += count == 1 ? one : forms.substr(bar == std::string_view::npos ? 0 : bar + 1);
        text.remove_prefix(close + 1);
    }
}

std::string counted(std::uint64_t count, std::string_view noun) {
    return std::to_string(count) + ' ' + for_count(count, noun);
}

} // namespace tw::record
