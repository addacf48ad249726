// The lock of a recording: only one process at a time can write to it.
// Covers: proxy/store/recording.cpp, proxy/base/files.cpp
#include "proxy/base/descriptors.h"
#include "proxy/base/files.h"
#include "proxy/store/recording.h"
#include "tests/proxy/store/recording_bytes.h"
#include "tests/support/program.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tw::store;
using namespace tw::test;
using namespace std::chrono_literals;

namespace {

using StartMode = Recording::StartMode;

constexpr std::string_view kLine = "{\"v\":1}\n";

RecordingOptions single_file_options(const TemporaryFolder& folder, bool compressed = false) {
    return {.path = folder.file(compressed ? "game.jsonl.zst" : "game.jsonl"),
            .compressed = compressed,
            .other_writer_timeout = 0ms};
}

RecordingOptions named_segment_options(const TemporaryFolder& folder,
                                       const std::string& name = "records",
                                       const std::string& suffix = ".jsonl") {
    return {.path = folder.path() + "/",
            .segments = SegmentNames{.folder = folder.path(), .name = name, .suffix = suffix},
            .other_writer_timeout = 0ms};
}

/// Opens the recording, and returns the error text; empty without an error.
std::string opening_error(const RecordingOptions& options, StartMode begin = StartMode::append) {
    try {
        const Recording opened{options, begin};
        return {};
    } catch (const std::system_error& error) {
        return std::string{"system: "} + error.what();
    } catch (const std::runtime_error& error) {
        return error.what();
    }
}

/// Another process that has opened the recording. The destructor kills it.
class RecordingProcess {
  public:
    explicit RecordingProcess(const RecordingOptions& options) {
        std::array<int, 2> pipe{};
        REQUIRE(::pipe(pipe.data()) == 0);
        child_ = ::fork();
        if (child_ == 0) {
            Recording recording{options, StartMode::append};
            recording.write(kLine);
            const bool told = ::write(pipe[1], "x", 1) == 1;
            while (told) {
                ::pause();
            }
            ::_exit(1);
        }
        char told = 0;
        REQUIRE(::read(pipe[0], &told, 1) == 1);
        ::close(pipe[0]);
        ::close(pipe[1]);
    }

    ~RecordingProcess() { kill(); }

    RecordingProcess(const RecordingProcess&) = delete;
    RecordingProcess& operator=(const RecordingProcess&) = delete;

    void kill() {
        if (child_ > 0) {
            ::kill(child_, SIGKILL);
            ::waitpid(child_, nullptr, 0);
            child_ = -1;
        }
    }

  private:
    pid_t child_ = -1;
};

} // namespace

TEST_CASE("only one process can open a recording; the next one can when that process is killed") {
    struct Row {
        std::string_view name;
        RecordingOptions (*options)(const TemporaryFolder& folder);
        StartMode begin;
        bool refused;
    };

    const auto segment_folder_options = [](const TemporaryFolder& folder) {
        return named_segment_options(folder);
    };
    const auto plain_file_options = [](const TemporaryFolder& folder) {
        return single_file_options(folder);
    };
    const auto compressed_file_options = [](const TemporaryFolder& folder) {
        return single_file_options(folder, true);
    };
    const Row rows[] = {
        {"a folder of segments", segment_folder_options, StartMode::append, true},
        {"a folder of segments, to begin anew", segment_folder_options, StartMode::empty, true},
        {"a folder of segments, taken over", segment_folder_options, StartMode::take_over, false},
        {"a file", plain_file_options, StartMode::append, true},
        {"a file, to be emptied", plain_file_options, StartMode::empty, true},
        {"a file, taken over", plain_file_options, StartMode::take_over, false},
        {"a compressed file", compressed_file_options, StartMode::append, true},
        {"a compressed file, taken over", compressed_file_options, StartMode::take_over, false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const TemporaryFolder folder;
        const RecordingOptions options = row.options(folder);
        RecordingProcess other{options};
        const auto before = list_segments(folder.path()).size();
        const std::string refusal = opening_error(options, row.begin);
        CHECK(refusal == (row.refused ? options.path +
                                            ": another process is recording to it; stop "
                                            "that one, or name another " +
                                            (options.segments ? "folder" : "file or folder")
                                      : ""));
        CHECK(list_segments(folder.path()).size() == before);
        if (!options.segments && !options.compressed) {
            CHECK(read_text(options.path) == kLine);
        }
        other.kill();
        CHECK(opening_error(options) == "");
    }
}

TEST_CASE(
    "recordings with different names can share a folder, and can be closed and opened again") {
    const TemporaryFolder folder;
    const RecordingOptions options = named_segment_options(folder);
    auto first = std::make_unique<Recording>(options, StartMode::append);
    CHECK(opening_error(options) != "");
    CHECK(opening_error(named_segment_options(folder, "other")) == "");
    CHECK(opening_error(named_segment_options(folder, "capture", ".pcapng")) == "");
    // Each next segment is locked as well.
    for (int cuts = 0; cuts < 3; ++cuts) {
        first->write(kLine);
        CHECK(first->start_segment());
        CHECK(opening_error(options) != "");
    }
    first.reset();
    CHECK(opening_error(options) == "");
}

TEST_CASE("a process that takes over a recording locks it when the other process has ended") {
    for (const bool is_segmented : {false, true}) {
        CAPTURE(is_segmented);
        const TemporaryFolder folder;
        const RecordingOptions options =
            is_segmented ? named_segment_options(folder) : single_file_options(folder);
        std::optional<RecordingProcess> other{std::in_place, options};
        Recording successor{options, StartMode::take_over};
        auto now = OutputFile::Clock::now() + 10s;
        successor.do_due_work(now);
        other.reset();
        CHECK(opening_error(options) == "");
        successor.request_repair();
        successor.do_due_work(now += 2s);
        CHECK(opening_error(options) != "");
        if (is_segmented) { // the three processes have made a segment each
            const auto all = list_segments(folder.path());
            REQUIRE(all.size() == 3);
            CHECK(all.back().number == 3);
        }
    }
}

TEST_CASE("opening a recording waits for a process that is about to end") {
    const TemporaryFolder folder;
    RecordingOptions options = named_segment_options(folder);
    auto first = std::make_unique<Recording>(options, StartMode::append);
    options.other_writer_timeout = 60s;
    std::string refusal = "none";
    std::thread second{[&] { refusal = opening_error(options); }};
    first.reset();
    second.join();
    CHECK(refusal == "");
}

TEST_CASE("if several processes open a recording at the same time, one succeeds") {
    constexpr int kRounds = 50;
    constexpr int kStarts = 4;
    for (int round = 0; round < kRounds; ++round) {
        const TemporaryFolder folder;
        RecordingOptions options =
            round % 2 == 0 ? named_segment_options(folder) : single_file_options(folder);
        std::atomic<int> waiting{kStarts};
        std::array<std::unique_ptr<Recording>, kStarts> opened;
        std::vector<std::thread> starts;
        for (auto& own : opened) {
            starts.emplace_back([&] {
                --waiting;
                while (waiting > 0) {
                    std::this_thread::yield();
                }
                try {
                    own = std::make_unique<Recording>(options, StartMode::append);
                } catch (const std::
                             runtime_error&) { // another thread has the lock, so `own` stays empty
                }
            });
        }
        for (std::thread& start : starts) {
            start.join();
        }
        CHECK(std::count(opened.begin(), opened.end(), nullptr) == kStarts - 1);
    }
}

TEST_CASE("a process that fails to lock the file does not change it") {
    /// A disk on which another process starts to record just before this process opens the file.
    class RacingDisk final : public Disk {
      public:
        explicit RacingDisk(RecordingOptions options) : options_{std::move(options)} {}

        int open(const std::string& path, OpenMode how, AllowedReaders readers) override {
            first.emplace(options_, StartMode::empty);
            first->write(kLine);
            first->finish_writing();
            return Disk::open(path, how, readers);
        }

        std::optional<Recording> first;

      private:
        RecordingOptions options_;
    };

    for (const bool compressed : {false, true}) {
        CAPTURE(compressed);
        const TemporaryFolder folder;
        const RecordingOptions options = single_file_options(folder, compressed);
        RacingDisk disk{options};
        CHECK_THROWS_AS((Recording{options, StartMode::empty, disk}), std::runtime_error);
        disk.first->write(kLine);
        disk.first.reset();
        const std::string bytes = read_text(options.path);
        CHECK((compressed ? decompressed_text(bytes) : bytes).starts_with(kLine));
    }
}

TEST_CASE("a recording opens in a folder that another program has locked, but not in a read-only "
          "folder") {
    const TemporaryFolder folder;
    const RecordingOptions options = named_segment_options(folder);
    const tw::base::UniqueFd stranger{::open(folder.path().c_str(), O_RDONLY | O_CLOEXEC)};
    REQUIRE(::flock(stranger.get(), LOCK_EX) == 0);
    CHECK(opening_error(options) == "");

    RecordingOptions nowhere = options;
    for (const char* const path :
         {"/proc", "/no/such/folder"}) { // folders in which no file can be created
        nowhere.segments->folder = path;
        CHECK(opening_error(nowhere).starts_with("system: "));
    }
}

TEST_CASE("a lock belongs to a descriptor and ends with it") {
    const TemporaryFolder folder;
    const std::string path = folder.file("locked");
    CHECK_FALSE(tw::base::is_locked(path));
    const auto open = [&path] {
        return tw::base::UniqueFd{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
    };
    std::optional<tw::base::UniqueFd> first{open()};
    const tw::base::UniqueFd second{open()};
    CHECK_FALSE(tw::base::is_locked(path));
    CHECK(tw::base::lock_file(first->get()));
    CHECK(tw::base::lock_file(first->get()));
    CHECK_FALSE(tw::base::lock_file(second.get()));
    CHECK(tw::base::is_locked(path));
    first.reset();
    CHECK_FALSE(tw::base::is_locked(path));
    CHECK_FALSE(tw::base::lock_file(-1));
}
