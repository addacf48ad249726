// Recordings that end too early, as a crash or a full disk leaves them: every reader reads what
// there is, and says once that there is no more.

#include "map/identity.h"
#include "tests/map/writer.h"
#include "tests/proxy/cli/program_runs.h"
#include "tests/proxy/sink/zstd_text.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

using namespace tw::test;

namespace {

/// Returns the records of one player on the small map.
std::string some_records(const TemporaryFolder& folder) {
    const std::string capture = folder.file("stay.pcap");
    const std::string records = folder.file("stay.jsonl");
    Recording recording;
    recording.play(kAnn, tee_at(50, 80), "tiny", tw::map::continue_crc(0, small_map()));
    recording.save(capture);
    REQUIRE(twscope({"decode", capture, "-o", records}).status == 0);
    return read_text(records);
}

/// Compresses a text as gzip(1) does.
std::string gzipped(const TemporaryFolder& folder, const std::string& text) {
    const std::string plain = folder.file("plain");
    write_text(plain, text);
    REQUIRE(run_program("/bin/sh", {"-c", "gzip -nf " + plain}).status == 0);
    return read_text(plain + ".gz");
}

struct Cut {
    std::string_view name;
    std::string bytes;
    std::string_view said;
    int status = 0;
};

} // namespace

TEST_CASE("a truncated recording is read to its end, which is reported once") {
    const TemporaryFolder folder;
    const std::string all = some_records(folder);
    const std::string whole = folder.file("stay.jsonl");
    const std::string map = folder.file("tiny.map");
    REQUIRE(tw::map::test::write_file(map, small_map()));

    // All lines except the last one can be read.
    const std::size_t last = all.rfind('\n', all.size() - 2) + 1;
    const std::string lines = all.substr(0, last);
    const std::string rest = all.substr(last);
    const std::string number = std::to_string(std::count(lines.begin(), lines.end(), '\n'));
    const std::string frame = packed(rest);
    const std::string gzip = gzipped(folder, rest);
    const Cut cuts[] = {
        {"plain.jsonl", lines + rest.substr(0, rest.size() / 2),
         "ends in the middle of a line: truncated, or still being written; {} lines were "
         "read"},
        {"zstd.jsonl.zst", packed(lines) + frame.substr(0, frame.size() / 2),
         "ends in the middle of compressed data: truncated, or still being written; {} lines "
         "were read"},
        {"gzip.jsonl.gz", gzipped(folder, lines) + gzip.substr(0, 12),
         "ends in the middle of compressed data: truncated, or still being written; {} lines "
         "were read"},
        {"damaged.jsonl.zst", packed(lines) + "this is no frame",
         "damaged: skipped 16 bytes of compressed data; {} lines were read", 3},
    };
    for (const Cut& cut : cuts) {
        const std::string file = folder.file(std::string{cut.name});
        write_text(file, cut.bytes);
        std::string said = "twscope: " + file + ": " + std::string{cut.said} + "\n";
        said.replace(said.find("{}"), 2, number);

        const Arguments readers[] = {
            {"records", file},
            {"records", file, "--filter", "snapshot"},
            {"records", file, "--columns", "t,type"},
            {"explain", file},
            {"compare", file, whole},
            {"compare", whole, file},
            {"map", map, "--png", folder.file("way.png"), "--path", file},
        };
        for (const Arguments& reader : readers) {
            CAPTURE(cut.name);
            CAPTURE(reader.front());
            const Finished done = twscope(reader);
            CHECK(done.err.starts_with(said));
            const std::string rest = done.err.substr(std::min(said.size(), done.err.size()));
            CHECK((rest.empty() || (reader.front() == "map" && rest.starts_with("wrote "))));
            CHECK(done.status == cut.status);
        }
        CHECK(twscope({"records", file}).out == lines);
        CHECK(twscope({"records", file, "--verify"}).status == 3);
    }
    const Finished piped = run_program(
        "/bin/sh", {"-c", std::string{TW_TWSCOPE} + " explain - < " + folder.file("plain.jsonl")});
    CHECK(piped.err ==
          "twscope: standard input: ends in the middle of a line: truncated, or still being "
          "written; " +
              number + " lines were read\n");
    CHECK(piped.status == 0);
}
