#include "proxy/cli/proxy_flags.h"
#include "proxy/cli/settings.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/memory_file.h"

#include <cstddef>
#include <cstdint>
#include <string>

/// The input is a configuration file of `proxy`. It must either set flags that are converted to the relay's
/// options, or give an error of one line. No other exception may be thrown.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace tw::cli;
    using tw::fuzz::demand;
    const tw::fuzz::MemoryFile file{data, size};
    Command command{"proxy"};
    ProxyFlags flags;
    Settings settings{command};
    flags.add_to(command);
    command.parse_arguments({"--config", file.path()});
    try {
        settings.fill_missing_flags();
        demand(flags.relay_options().max_sessions == flags.max_sessions);
        static_cast<void>(flags.records.findings_to_fail_on());
        static_cast<void>(flags.http.page_addresses());
    } catch (const UsageError& error) {
        demand(!std::string{error.what()}.empty());
    }
    return 0;
}
