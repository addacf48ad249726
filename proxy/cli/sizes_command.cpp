#include "proxy/capture/capture_run.h"
#include "proxy/cli/capture_flags.h"
#include "proxy/cli/commands.h"
#include "proxy/cli/output_file.h"
#include "proxy/cli/outputs_apart.h"
#include "proxy/cli/settings.h"
#include "proxy/report/type_sizes.h"
#include "proxy/run/map_folders.h"
#include "proxy/sink/complaint.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace tw::cli {

namespace {

struct SizesFlags {
    CaptureFlags captures;
    std::string output;
};

int run_sizes(const SizesFlags& flags) {
    const auto files = flags.captures.files();
    check_outputs(files, {{"--output", flags.output}});
    inspect::MemoryBudget memory{flags.captures.memory_bytes()};
    run::MapFolders maps{{}, {.memory = &memory}};
    capture::CaptureRun captures{files, flags.captures.servers()};
    report::TypeSizes sizes;
    std::atomic<std::uint32_t> numbers{0};
    inspect::Inspector inspector{
        {.messages = false, .learn_sizes = true, .memory = &memory}, maps, sizes, numbers};
    captures.read(inspector);
    if (!sizes.any_snapshot()) {
        sink::complain("no snapshot with known items");
        return captures.damaged() ? kExitFailed : kExitUsage;
    }
    std::FILE* const people = flags.output == "-" ? stderr : stdout;
    sink::say(people, sizes.table());
    if (!sizes.any_differs()) {
        sink::say(people, "All sizes are as agreed in 0.6.\n");
    }
    // Not before: without a snapshot, a file that is there stays as it is.
    std::optional<sink::FileOutput> file;
    open_output_file("--output", flags.output, file);
    if (file) {
        file->write(sizes.objects_json());
        if (file->failed()) {
            sink::complain("--output {}: {}", file->path(),
                           std::generic_category().message(file->error()));
            return kExitFailed;
        }
    }
    return captures.damaged() ? kExitFailed : 0;
}

} // namespace

Action add_sizes_command(CLI::App& app) {
    CLI::App* command = app.add_subcommand(
        "sizes", "Find a server's snapshot objects whose sizes differ from those agreed in 0.6");
    auto flags = std::make_shared<SizesFlags>();
    auto settings = std::make_shared<Settings>(*command);
    flags->captures.add_to(*command);
    command
        ->add_option("-o,--output", flags->output,
                     "Write what differs in the format of --objects; - means standard output")
        ->type_name("FILE");
    return [flags, settings] {
        settings->complete();
        return run_sizes(*flags);
    };
}

} // namespace tw::cli
