// Covers: proxy/store/file_queue.cpp
#include "proxy/store/recording.h"
#include "tests/proxy/store/faulty_disk.h"
#include "tests/proxy/store/recording_bytes.h"
#include "tests/support/program.h"

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <sys/stat.h>

using namespace tw::store;
using namespace tw::test;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

using StartMode = Recording::StartMode;

/// Calls the recording's do_due_work() with a clock that a test controls.
class ClockedRecording {
  public:
    explicit ClockedRecording(Recording& recording) : recording_{&recording} {}

    void advance_time(milliseconds time) {
        now_ += time;
        recording_->do_due_work(now_);
    }

    [[nodiscard]] OutputFile::Clock::time_point now() const { return now_; }

  private:
    Recording* recording_;
    OutputFile::Clock::time_point now_ = OutputFile::Clock::now();
};

RecordingOptions compressed_options(const std::string& path) {
    return {.path = path, .compressed = true};
}

/// Returns the text of a file, decompressed if its name ends with ".zst".
std::string read_file_text(const std::string& path) {
    const std::string bytes = read_text(path);
    return path.ends_with(".zst") ? decompressed_text(bytes) : bytes;
}

std::uint64_t count_records(std::string_view text) {
    return record_line_format().count_entries(text);
}

RecordingOptions segment_options(const TemporaryFolder& folder, bool packed = true) {
    return {.path = folder.path(),
            .compressed = packed,
            .segments = SegmentNames{.folder = folder.path(),
                                     .name = "game",
                                     .suffix = packed ? ".jsonl.zst" : ".jsonl"}};
}

/// Returns the texts of the segments, without the first record, which contains the segment's name.
std::vector<std::string> read_segment_texts(const TemporaryFolder& folder) {
    std::vector<std::string> texts;
    for (const Segment& segment : list_segments(folder.path())) {
        std::string text = read_file_text(folder.file(segment.file));
        if (text.substr(0, text.find('\n'))
                .ends_with("\"name\":\"" + segment.file +
                           "\",\"number\":" + std::to_string(segment.number) + "}")) {
            text.erase(0, text.find('\n') + 1);
        }
        texts.push_back(text);
    }
    return texts;
}

} // namespace

TEST_CASE("when a recording is continued, complete entries stay and an unfinished one is cut off") {
    const std::string line = "{\"v\":1}\n";
    const std::string one = frame_without_checksum(line);
    const std::string long_line = "{\"v\":1," + std::string(10'000, 'x') + '\n';

    struct Row {
        const char* name;
        std::string file;
        std::string before;
        std::string kept;
    };

    const Row rows[] = {
        {"nothing", "a.jsonl", "", ""},
        {"a line", "a.jsonl", line, line},
        {"a broken line", "a.jsonl", line + "{\"v", line},
        {"only a broken line", "a.jsonl", "{\"v\":1,\"never ended", ""},
        {"only the beginning of a line", "a.jsonl", "{\"", ""},
        {"only zeros", "a.jsonl", std::string(5'000, '\0'), ""},
        {"a long broken line", "a.jsonl", long_line + std::string(9'000, 'y'), long_line},
        {"no frame", "a.jsonl.zst", "", ""},
        {"a frame", "a.jsonl.zst", one, line},
        {"a broken frame", "a.jsonl.zst", one + frame_without_checksum("two\n").substr(0, 9), line},
        {"a magic number", "a.jsonl.zst", one + "\x28\xB5\x2F\xFD", line},
        {"zeros", "a.jsonl.zst", one + std::string(100, '\0'), line},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const TemporaryFolder folder;
        const std::string path = folder.file(row.file);
        const bool zst = path.ends_with(".zst");
        write_text(path, row.before);
        {
            Recording recording{{.path = path, .compressed = zst}, StartMode::append};
            const std::size_t whole = zst && !row.kept.empty() ? one.size() : row.kept.size();
            CHECK(recording.state.cut_off_bytes == row.before.size() - whole);
            recording.write("next\n");
            recording.finish_writing();
            CHECK_FALSE(recording.failed());
        }
        CHECK(read_file_text(path) == row.kept + "next\n");
    }
}

TEST_CASE(
    "a recording is readable by its owner and group, or only by its owner if it contains secrets") {
    const TemporaryFolder folder;
    for (const auto& [readers, mode] :
         {std::pair{AllowedReaders::group, 0640U}, {AllowedReaders::owner, 0600U}}) {
        const std::string path = folder.file(std::to_string(mode));
        const Recording recording{{.path = path, .readers = readers}, StartMode::append};
        CHECK(static_cast<unsigned>(std::filesystem::status(path).permissions()) == mode);
    }
}

TEST_CASE("a file with other data is not changed, and an error says why it was not opened") {
    const TemporaryFolder folder;
    const std::string path = folder.file("notes.zst");
    for (const std::string& text :
         {std::string{"dear diary\n"}, frame_without_checksum("one\n") + "dear diary\n"}) {
        write_text(path, text);
        CHECK_THROWS_AS(Recording(compressed_options(path), StartMode::append), std::runtime_error);
        CHECK(read_text(path) == text);
    }
    const std::string plain = folder.file("notes.txt");
    for (const std::string& text :
         {std::string{"dear diary"}, std::string{"dear diary\n{\"v\":1}\n"},
          frame_without_checksum("one\n"), std::string{"{\"t\":1}\n"},
          std::string(5'000, '\0') + "dear diary\n"}) {
        write_text(plain, text);
        CHECK_THROWS_AS(Recording({.path = plain}, StartMode::append), std::runtime_error);
        CHECK(read_text(plain) == text);
    }
    CHECK_THROWS_AS(Recording(compressed_options(folder.file("no/folder.zst")), StartMode::append),
                    std::system_error);
    RecordingOptions options = segment_options(folder);
    options.segments->folder = folder.file("no");
    CHECK_THROWS_AS(Recording(options, StartMode::append), std::system_error);
}

TEST_CASE("plain lines are written at once, and compressed lines within a second") {
    const TemporaryFolder folder;
    Recording plain{{.path = folder.file("a.jsonl")}, StartMode::append};
    plain.write("one\n");
    CHECK(read_text(folder.file("a.jsonl")) == "one\n");

    const std::string path = folder.file("a.jsonl.zst");
    Recording recording{compressed_options(path), StartMode::append};
    ClockedRecording clock{recording};
    std::string expected;
    for (int frame = 0; frame < 3; ++frame) {
        clock.advance_time(milliseconds{100});
        recording.write("one\n");
        clock.advance_time(milliseconds{500});
        recording.write("two\n");
        CHECK(read_file_text(path) == expected);
        clock.advance_time(milliseconds{250});
        expected += "one\ntwo\n";
        CHECK(read_file_text(path) == expected);
    }
    recording.write(std::string(kFrameTextBytes, 'x') + '\n'); // a full frame is written at once
    CHECK(read_file_text(path).size() > kFrameTextBytes);
}

TEST_CASE("a large block waits for room on the disk together with the frame that was begun") {
    const TemporaryFolder folder;
    const std::string path = folder.file("a.jsonl.zst");
    FaultyDisk disk;
    Recording recording{compressed_options(path), StartMode::append, disk};
    ClockedRecording clock{recording};
    std::string many;
    while (many.size() < kFrameTextBytes) {
        many += "one line as good as any other\n";
    }
    recording.write(many);
    clock.advance_time(seconds{1});
    disk.room = 0;
    recording.write("few\n");
    recording.write(many);
    CHECK(recording.error() == ENOSPC);
    CHECK_FALSE(recording.accepts_data());
    CHECK(read_file_text(path) == many);
    disk.room = UINT64_MAX;
    clock.advance_time(seconds{1});
    CHECK(recording.accepts_data());
    CHECK(read_file_text(path) == many + "few\n" + many);
    CHECK(recording.num_lost_entries() == 0);
}

TEST_CASE("no data is lost on a full or broken disk: unfinished writes are undone and retried") {
    struct Row {
        const char* name;
        bool zst;
        std::uint64_t room;
        int error;
        bool can_truncate;
        std::string meanwhile; ///< the text that can be read while the disk is full
    };

    const Row rows[] = {
        {"no room at all", false, 0, 0, true, "first\n"},
        {"room for half a line", false, 2, 0, true, "first\n"},
        {"room for a line and a half", false, 6, 0, true, "first\none\n"},
        {"room for half a line, which stays", false, 6, 0, false, "first\none\ntw"},
        {"broken", false, UINT64_MAX, EIO, true, "first\n"},
        {"over a quota", false, UINT64_MAX, EDQUOT, true, "first\n"},
        {"no room for a frame", true, 0, 0, true, "first\n"},
        {"room for half a frame", true, 9, 0, true, "first\n"},
        {"room for half a frame, which stays", true, 9, 0, false, "first\n"},
        {"broken while a frame is written", true, UINT64_MAX, EIO, true, "first\n"},
    };
    for (const Row& row : rows) {
        for (const std::uint64_t max_write_bytes :
             {UINT64_MAX, std::uint64_t{1}, std::uint64_t{3}}) {
            CAPTURE(row.name);
            CAPTURE(max_write_bytes);
            const TemporaryFolder folder;
            const std::string path = folder.file(row.zst ? "a.jsonl.zst" : "a.jsonl");
            FaultyDisk disk;
            disk.max_write_bytes = max_write_bytes;
            Recording recording{{.path = path, .compressed = row.zst}, StartMode::append, disk};
            ClockedRecording clock{recording};
            recording.write("first\n");
            clock.advance_time(seconds{2});
            const auto whole = std::filesystem::file_size(path);
            disk.room = row.room;
            disk.write_error = row.error;
            disk.can_truncate = row.can_truncate;
            recording.write("one\ntwo\nthree\n");
            clock.advance_time(seconds{2});
            CHECK_FALSE(recording.accepts_data());
            CHECK(recording.error() == (row.error != 0 ? row.error : ENOSPC));
            CHECK(read_file_text(path) == row.meanwhile);
            if (row.zst && row.can_truncate) {
                CHECK(std::filesystem::file_size(path) == whole);
            }
            clock.advance_time(seconds{2});
            CHECK_FALSE(recording.accepts_data());
            disk.room = UINT64_MAX;
            disk.write_error = 0;
            disk.can_truncate = true;
            disk.interrupted_writes = 2;
            clock.advance_time(seconds{2});
            CHECK(recording.accepts_data());
            recording.write("four\n");
            recording.finish_writing();
            CHECK(read_file_text(path) == "first\none\ntwo\nthree\nfour\n");
            CHECK(recording.num_lost_entries() == 0);
        }
    }
}

TEST_CASE("data that cannot be written until the end is lost and counted") {
    for (const bool zst : {false, true}) {
        const TemporaryFolder folder;
        const std::string path = folder.file(zst ? "a.jsonl.zst" : "a.jsonl");
        FaultyDisk disk;
        {
            Recording recording{{.path = path, .compressed = zst}, StartMode::append, disk};
            recording.write("first\n");
            recording.do_due_work(OutputFile::Clock::now() + seconds{2});
            disk.room = 7;
            recording.write("one\ntwo\nthree\n");
            recording.finish_writing();
            recording.write("four\n");
            CHECK(recording.error() == ENOSPC);
            CHECK(recording.num_lost_entries() == (zst ? 4 : 3));
        }
        CHECK(read_file_text(path) == (zst ? "first\n" : "first\none\n"));
    }
}

TEST_CASE("a recording that ends on a full disk says how many records are missing") {
    struct Row {
        const char* name;
        bool zst;
        bool scarce; ///< true if less disk space is free than must stay free
    };

    for (const Row row : {Row{"a file", false, false}, Row{"a compressed file", true, false},
                          Row{"least free", false, true}, Row{"compressed", true, true}}) {
        CAPTURE(row.name);
        const TemporaryFolder folder;
        const std::string path = folder.file(row.zst ? "a.jsonl.zst" : "a.jsonl");
        FaultyDisk disk;
        {
            Recording recording{{.path = path, .compressed = row.zst, .min_free_bytes = 100},
                                StartMode::append,
                                disk};
            recording.write("first\n");
            ClockedRecording{recording}.advance_time(seconds{2});
            (row.scarce ? disk.free : disk.room) = row.scarce ? 99 : 300;
            ClockedRecording{recording}.advance_time(seconds{4});
            QueuedOutput queue{recording};
            for (int i = 0; i < 10; ++i) { // no block fits on the disk, even if it is compressed
                std::string line;
                for (std::uint64_t number = 1; line.size() < 2000;
                     number = number * 6364136223846793005U + static_cast<unsigned>(i)) {
                    line += std::to_string(number);
                }
                queue.write(line + '\n');
            }
            queue.finish_writing();
            CHECK(queue.num_dropped_entries() + recording.num_lost_entries() == 10);
            CHECK(recording.error() == ENOSPC);
        }
        const std::string text = read_file_text(path);
        CHECK(text.starts_with("first\n{\"v\":1,\"t\":"));
        CHECK(contains(text, R"("type":"records_lost","session":0,"lost":10,)"));
        CHECK(text.ends_with("\"cause\":\"disk_full\"}\n"));
        CHECK(count_records(text) == 2);
    }
}

TEST_CASE("a segment with room for only its header says how many records are missing") {
    for (const bool compressed : {false, true}) {
        CAPTURE(compressed);
        const TemporaryFolder folder;
        FaultyDisk disk;
        {
            Recording recording{segment_options(folder, compressed), StartMode::append, disk};
            disk.room = 0;
            recording.write("one\n");
            recording.finish_writing();
            disk.room = 300;
            recording.write_loss_notice("lost\n");
        }
        CHECK(read_segment_texts(folder) == std::vector<std::string>{"lost\n"});
    }
}

TEST_CASE("a segment without room for a byte is removed") {
    for (const bool compressed : {false, true}) {
        CAPTURE(compressed);
        const TemporaryFolder folder;
        FaultyDisk disk;
        disk.room = 0;
        {
            Recording recording{segment_options(folder, compressed), StartMode::append, disk};
            recording.finish_writing();
        }
        CHECK(std::filesystem::is_empty(folder.path()));
    }
}

TEST_CASE("with small frames, little data is lost on a full disk") {
    const TemporaryFolder folder;
    const std::string path = folder.file("a.jsonl.zst");
    FaultyDisk disk;
    RecordingOptions options = compressed_options(path);
    options.frame_text_bytes = 50'000;
    Recording recording{options, StartMode::empty, disk};
    disk.room = 60'000;
    std::string all;
    std::uint64_t number = 1;
    for (int i = 0; i < 20'000; ++i) {
        number = number * 6364136223846793005U + 1442695040888963407U;
        const std::string line = std::to_string(number) + '\n';
        recording.write(line);
        all += line;
    }
    recording.finish_writing();
    CHECK(recording.error() == ENOSPC);
    const std::string kept = read_file_text(path);
    CHECK(kept.size() > 60'000);
    CHECK(all.starts_with(kept));
    CHECK(kept.ends_with('\n'));
    CHECK(recording.num_lost_entries() == count_records(all) - count_records(kept));
}

TEST_CASE("after the file was moved, removed or replaced, the recording continues at its path") {
    for (const std::string name : {"a.jsonl", "a.jsonl.zst"}) {
        CAPTURE(name);
        const TemporaryFolder folder;
        const std::string path = folder.file(name);
        Recording recording{{.path = path, .compressed = name.ends_with(".zst")},
                            StartMode::append};
        ClockedRecording clock{recording};
        recording.write("one\n");
        clock.advance_time(seconds{2});
        std::filesystem::rename(path, path + ".1");
        recording.write("two\n");
        clock.advance_time(milliseconds{10});
        recording.write("three\n");
        clock.advance_time(seconds{2});
        clock.advance_time(milliseconds{10});
        recording.write("four\n");
        recording.request_reopening(); // the path still names the same file
        clock.advance_time(seconds{2});
        std::filesystem::remove(path);
        recording.request_reopening();
        clock.advance_time(milliseconds{10});
        recording.write("five\n");
        recording.finish_writing();
        CHECK(decompressed_text(read_text(path + ".1")) +
                  (name.ends_with(".zst") ? "" : read_text(path + ".1")) ==
              "one\ntwo\nthree\n");
        CHECK(read_file_text(path) == "five\n");
    }
}

TEST_CASE("a file that is not a recording is never written to, and is reported once") {
    struct Row {
        const char* name;
        void (*replace)(const std::string& path);
        int error = EEXIST;
    };

    const Row rows[] = {
        {"a letter", [](const std::string& path) { write_text(path, "letter"); }},
        {"a pipe", [](const std::string& path) { REQUIRE(::mkfifo(path.c_str(), 0600) == 0); }},
        {"a folder", [](const std::string& path) { std::filesystem::create_directory(path); },
         EISDIR}};
    for (const Row& row : rows) {
        for (const std::string name : {"a.jsonl", "a.jsonl.zst"}) {
            CAPTURE(row.name);
            CAPTURE(name);
            const TemporaryFolder folder;
            const std::string path = folder.file(name);
            Recording recording{{.path = path, .compressed = name.ends_with(".zst")},
                                StartMode::append};
            ClockedRecording clock{recording};
            recording.write("one\n");
            clock.advance_time(seconds{2});
            std::filesystem::rename(path, folder.file("1-" + name));
            row.replace(path);
            clock.advance_time(seconds{2});
            recording.write("two\n");
            clock.advance_time(seconds{2});
            CHECK(recording.state.reopening_error.exchange(0) == row.error);
            clock.advance_time(seconds{2});
            CHECK(recording.state.reopening_error == 0);
            CHECK(recording.state.is_path_unusable);
            recording.finish_writing();
            CHECK(read_file_text(folder.file("1-" + name)) == "one\ntwo\n");
            CHECK(recording.state.is_path_unusable);
        }
    }
}

TEST_CASE("if something else takes a removed file's place, recording stops until it is gone") {
    for (const std::string name : {"a.jsonl", "a.jsonl.zst"}) {
        for (const bool is_freed : {true, false}) {
            CAPTURE(name);
            CAPTURE(is_freed);
            const TemporaryFolder folder;
            const std::string path = folder.file(name);
            Recording recording{{.path = path, .compressed = name.ends_with(".zst")},
                                StartMode::append};
            ClockedRecording clock{recording};
            recording.write("one\n");
            clock.advance_time(seconds{2});
            std::filesystem::remove(path);
            std::filesystem::create_directory(path);
            clock.advance_time(seconds{2});
            CHECK_FALSE(recording.accepts_data());
            CHECK(recording.error() == EISDIR);
            if (is_freed) {
                std::filesystem::remove(path);
            }
            clock.advance_time(seconds{2});
            CHECK(recording.accepts_data() == is_freed);
            recording.write("two\n");
            recording.finish_writing();
            CHECK(recording.num_lost_entries() == (is_freed ? 0 : 1));
            CHECK(is_freed ==
                  (!std::filesystem::is_directory(path) && read_file_text(path) == "two\n"));
        }
    }
}

TEST_CASE("data at the end is not written to a file that was removed just before") {
    for (const bool is_blocked : {false, true}) {
        const TemporaryFolder folder;
        const std::string path = folder.file("a.jsonl.zst");
        Recording recording{compressed_options(path), StartMode::append};
        recording.write("one\n");
        std::filesystem::remove(path);
        if (is_blocked) {
            std::filesystem::create_directory(path);
        }
        recording.finish_writing();
        CHECK(recording.num_lost_entries() == (is_blocked ? 1 : 0));
        CHECK((is_blocked || read_file_text(path) == "one\n"));
    }
}

TEST_CASE("after a file was copied and emptied, it starts with complete data") {
    for (const std::string name : {"a.jsonl", "a.jsonl.zst"}) {
        const TemporaryFolder folder;
        const std::string path = folder.file(name);
        Recording recording{{.path = path, .compressed = name.ends_with(".zst")},
                            StartMode::append};
        ClockedRecording clock{recording};
        recording.write("one\n");
        clock.advance_time(seconds{2});
        std::filesystem::resize_file(path, 0);
        recording.write("two\n");
        clock.advance_time(seconds{2});
        CHECK(read_file_text(path) == "two\n");
    }
}

TEST_CASE("data that could not be written to the previous file is written to the next one") {
    const TemporaryFolder folder;
    FaultyDisk disk;
    Recording recording{{.path = folder.file("a.jsonl")}, StartMode::append, disk};
    ClockedRecording clock{recording};
    disk.room = 6;
    disk.can_truncate = false;
    recording.write("one\ntwo\nthree\n");
    CHECK(recording.error() == ENOSPC);
    disk.room = UINT64_MAX;
    disk.can_truncate = true;
    std::filesystem::rename(folder.file("a.jsonl"), folder.file("b.jsonl"));
    recording.request_reopening();
    clock.advance_time(milliseconds{10});
    CHECK(recording.accepts_data());
    CHECK(read_text(folder.file("b.jsonl")) == "one\ntw");
    CHECK(read_text(folder.file("a.jsonl")) == "two\nthree\n");
    CHECK(recording.num_lost_entries() == 0);
}

TEST_CASE("a second process continues a shared file and repairs its unfinished line") {
    const TemporaryFolder folder;
    const std::string path = folder.file("a.jsonl");
    {
        Recording first{{.path = path}, StartMode::append};
        first.write("{\"v\":1}\n");
        Recording second{{.path = path}, StartMode::take_over};
        first.write("2\n");
        write_text(path, read_text(path) + "broken");
        second.request_repair();
        second.do_due_work(OutputFile::Clock::now());
        second.write("3\n");
    }
    CHECK(read_text(path) == "{\"v\":1}\n2\n3\n");
}

TEST_CASE("segments start by age, by size, on request, and when the current segment was removed") {
    struct Row {
        const char* name;
        RetentionLimits limits;
        void (*cause)(Recording& recording, ClockedRecording& clock, const std::string& current);
    };

    const Row rows[] = {
        {"time",
         {.age = seconds{60}},
         [](Recording&, ClockedRecording& clock, const std::string&) {
             clock.advance_time(seconds{60});
         }},
        {"size",
         {.bytes = 100},
         [](Recording& recording, ClockedRecording& clock, const std::string&) {
             recording.write(std::string(99, 'x') + '\n');
             clock.advance_time(seconds{1});
         }},
        {"a word",
         {},
         [](Recording& recording, ClockedRecording&, const std::string&) {
             recording.request_reopening();
         }},
        {"it was removed",
         {},
         [](Recording&, ClockedRecording& clock, const std::string& current) {
             std::filesystem::remove(current);
             clock.advance_time(seconds{2});
         }},
        {"it was moved",
         {},
         [](Recording&, ClockedRecording& clock, const std::string& current) {
             std::filesystem::rename(current, current + ".old");
             clock.advance_time(seconds{2});
         }},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const TemporaryFolder folder;
        FaultyDisk disk;
        RecordingOptions options = segment_options(folder, false);
        options.segment_limits = row.limits;
        Recording recording{options, StartMode::append, disk};
        ClockedRecording clock{recording};
        CHECK_FALSE(recording.is_segment_due(clock.now()));
        recording.write("one\n");
        clock.advance_time(seconds{2});
        CHECK_FALSE(recording.is_segment_due(clock.now()));
        row.cause(recording, clock, folder.file(list_segments(folder.path()).front().file));
        CHECK(recording.is_segment_due(clock.now()));
        CHECK(recording.start_segment());
        CHECK_FALSE(recording.is_segment_due(clock.now()));
        recording.write("two\n");
        recording.finish_writing();
        CHECK(read_segment_texts(folder).back() == "two\n");
        CHECK(list_segments(folder.path()).back().file == "game-20261121T161530Z-0002.jsonl");
    }
}

TEST_CASE("an existing segment is never overwritten, and creating a segment is retried") {
    const TemporaryFolder folder;
    FaultyDisk disk;
    write_text(folder.file("game-20261121T161530Z-0003.jsonl.zst"),
               frame_without_checksum("of another run\n"));
    Recording recording{segment_options(folder), StartMode::append, disk};
    ClockedRecording clock{recording};
    recording.write("one\n");
    disk.open_error = EACCES;
    CHECK(recording.start_segment());
    CHECK_FALSE(recording.accepts_data());
    CHECK(recording.error_text() ==
          "Permission denied (after its folder was replaced, restart twscope)");
    disk.open_error = ENOSPC;
    clock.advance_time(seconds{2});
    CHECK(recording.error_text() == "No space left on device");
    CHECK_FALSE(recording.accepts_data());
    disk.open_error = 0;
    disk.time += 60;
    clock.advance_time(seconds{2});
    CHECK(recording.accepts_data());
    recording.write("two\n");
    recording.finish_writing();
    CHECK(read_segment_texts(folder) ==
          std::vector<std::string>{"of another run\n", "one\n", "two\n"});
    CHECK(list_segments(folder.path()).back().file == "game-20261121T161630Z-0005.jsonl.zst");
}

TEST_CASE("segments differ in their first bytes, and a file without records is a valid zstd file") {
    const TemporaryFolder folder;
    const TemporaryFolder other_folder; // of a program that starts in the same second
    FaultyDisk disk;
    for (const bool packed : {false, true}) {
        for (const TemporaryFolder* each : {&folder, &other_folder}) {
            Recording recording{segment_options(*each, packed), StartMode::append, disk};
            CHECK(recording.start_segment());
            recording.finish_writing();
        }
        const auto segments = list_segments(folder.path());
        const std::string first = read_text(folder.file(segments.front().file));
        const std::string second = read_text(folder.file(segments.back().file));
        const std::string other = read_text(other_folder.file(segments.front().file));
        // Log shippers identify a file by these bytes: Vector by the first line, Filebeat by the
        // first 1,024 bytes, and the OpenTelemetry Collector by the first 1,000 bytes.
        for (const std::size_t bytes : {1024UL, 1000UL, 256UL, first.find('\n')}) {
            CHECK(first.substr(0, bytes) != second.substr(0, bytes));
            CHECK(first.substr(0, bytes) != other.substr(0, bytes));
        }
        for (const Segment& segment : segments) {
            CHECK(count_records(read_file_text(folder.file(segment.file))) == 1);
            std::filesystem::remove(folder.file(segment.file));
            std::filesystem::remove(other_folder.file(segment.file));
        }
    }
    const std::string path = folder.file("none.jsonl.zst");
    {
        Recording recording{compressed_options(path), StartMode::append};
        CHECK(read_text(path).empty()); // an empty frame at the start could stop readers
        recording.finish_writing();
    }
    CHECK_FALSE(read_text(path).empty());
    CHECK(read_file_text(path).empty());
}

TEST_CASE("the name of a segment that did not fit on the disk is not counted as a lost record") {
    for (const bool packed : {false, true}) {
        CAPTURE(packed);
        const TemporaryFolder folder;
        FaultyDisk disk;
        disk.room = 0;
        Recording recording{segment_options(folder, packed), StartMode::append, disk};
        CHECK_FALSE(recording.accepts_data());
        recording.write("one\n"); // lost at once, because an earlier write found the disk full
        recording.finish_writing();
        CHECK(recording.num_lost_entries() == 1);
    }
}

TEST_CASE(
    "a recording that waits for another process creates no segment until that process has ended") {
    const TemporaryFolder folder;
    Recording recording{segment_options(folder), StartMode::take_over};
    CHECK(list_segments(folder.path()).empty());
    recording.request_repair();
    recording.do_due_work(OutputFile::Clock::now());
    CHECK(list_segments(folder.path()).size() == 1);
    recording.write("one\n");
    recording.finish_writing();
    CHECK(read_segment_texts(folder) == std::vector<std::string>{"one\n"});
}

TEST_CASE("data is synced to the disk as often as the policy says") {
    struct Row {
        SyncPolicy policy;
        int after_frames; ///< number of syncs after three seconds of writing
        int at_end;       ///< number of syncs after a second segment was started and finished
    };

    const Row rows[] = {
        {SyncPolicy::none, 0, 0}, {SyncPolicy::segment, 0, 2}, {SyncPolicy::every_second, 3, 5}};
    for (const Row& row : rows) {
        const TemporaryFolder folder;
        FaultyDisk disk;
        RecordingOptions options = segment_options(folder, false);
        options.sync = row.policy;
        Recording recording{options, StartMode::append, disk};
        ClockedRecording clock{recording};
        for (int i = 0; i < 3; ++i) {
            recording.write("one\n");
            clock.advance_time(seconds{1});
        }
        clock.advance_time(seconds{1}); // without new data
        CHECK(disk.sync_count == row.after_frames);
        recording.write("one\n");
        CHECK(recording.start_segment());
        recording.write("two\n");
        recording.finish_writing();
        CHECK(disk.sync_count == row.at_end);
    }
    const TemporaryFolder folder;
    FaultyDisk disk;
    Recording recording{
        {.path = folder.file("a"), .sync = SyncPolicy::every_second}, StartMode::append, disk};
    ClockedRecording clock{recording};
    disk.sync_error = EIO;
    recording.write("one\n");
    clock.advance_time(seconds{2});
    CHECK(recording.error() == EIO);
    disk.sync_error = 0;
    clock.advance_time(seconds{2});
    CHECK(recording.accepts_data());
}

TEST_CASE("recording stops before the disk is full, and continues when there is room") {
    const TemporaryFolder folder;
    FaultyDisk disk;
    disk.free = 1000;
    Recording recording{{.path = folder.file("a"), .min_free_bytes = 500}, StartMode::append, disk};
    ClockedRecording clock{recording};
    recording.write("one\n");
    disk.free = 499;
    clock.advance_time(seconds{1});
    recording.write("two\n");
    CHECK(recording.error() == ENOSPC);
    CHECK_FALSE(recording.accepts_data());
    CHECK(read_text(folder.file("a")) == "one\n");
    disk.free = 500;
    clock.advance_time(seconds{2});
    CHECK(recording.accepts_data());
    recording.write("three\n");
    CHECK(read_text(folder.file("a")) == "one\ntwo\nthree\n");
    CHECK(recording.num_lost_entries() == 0);
}

TEST_CASE("a clock that was set is reported once, and new segments are not deleted because of it") {
    constexpr std::int64_t kJump = std::int64_t{40} * 86400;
    const TemporaryFolder folder;
    FaultyDisk disk;
    RecordingOptions options = segment_options(folder, false);
    options.keep.age = std::chrono::hours{30 * 24};
    Recording recording{options, StartMode::append, disk};
    ClockedRecording clock{recording};
    for (int i = 0; i < 3; ++i) {
        recording.write("one\n");
        disk.time += kJump;
        clock.advance_time(seconds{1});
        const std::int64_t told = recording.state.clock_jump.exchange(0);
        CHECK(told > kJump - 60);
        CHECK(told <= kJump);
        CHECK(recording.state.clock_jump.exchange(0) == 0);
        CHECK(recording.start_segment());
    }
    CHECK(list_segments(folder.path()).size() == 4);
    disk.time -= 2 * kJump;
    clock.advance_time(seconds{1});
    CHECK(recording.state.clock_jump.exchange(0) < 0);
}
