// Recordings that are switched on and off from the page.

#include "proxy/pipeline/page_recordings.h"
#include "tests/support/inspect_file.h"
#include "tests/support/program.h"
#include "tests/support/record_log.h"
#include "tests/support/session_script.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <sys/stat.h>

using namespace tw;
using snapshot::kNoBase;
using test::Items;
using test::kMovedPickup;
using test::kOnePickup;
using web::RecordingKind;

namespace {

/// A worker with a session, and the folder of its recordings.
template <bool AllowsCaptures = true, std::uint64_t MaxFolderBytes = 1 << 20>
struct RecordingWorker {
    RecordingWorker() {
        script.join_ddnet();
        script.enter_game("dm1");
    }

    void switch_recording(RecordingKind kind, bool on) {
        CHECK(recordings.switch_recording(kind, on).has_value());
        recorder.update_recordings(0);
    }

    std::vector<std::filesystem::path> finish_and_list_files() {
        recorder.end_recordings(0);
        recordings.write_queued_data();
        return folder.files();
    }

    test::TemporaryFolder folder;
    pipeline::PageRecordings recordings{
        {.demos = {.folder = folder.path()}, .allows_captures = AllowsCaptures}, MaxFolderBytes};
    pipeline::PageRecorder recorder{recordings};
    inspect::Observers observers = [this] {
        inspect::Observers all;
        all.add_observer(recorder);
        return all;
    }();
    test::SessionScript script{{.observers = &observers}, recorder};
};

std::vector<std::string> read_snapshots(const std::filesystem::path& file) {
    test::RecordLog log;
    test::inspect_file(file, log);
    return log.lines({"snapshot"});
}

} // namespace

TEST_CASE_FIXTURE(RecordingWorker<>,
                  "a capture from the page has the traffic between its start and its end") {
    script.snap(10, kNoBase, kOnePickup);
    switch_recording(RecordingKind::capture, true);
    CHECK(recordings.state().capture_since_ms.has_value());
    script.snap(12, kNoBase, kMovedPickup);
    script.snap(14, 12, kOnePickup);
    switch_recording(RecordingKind::capture, false);
    CHECK_FALSE(recordings.state().capture_since_ms.has_value());
    script.snap(16, kNoBase, kOnePickup);
    switch_recording(RecordingKind::capture, true);
    script.snap(18, kNoBase, kOnePickup);
    const auto files = finish_and_list_files();
    REQUIRE(files.size() == 2);
    std::vector<std::vector<std::string>> captured;
    for (const auto& file : files) {
        CHECK(file.filename().string().starts_with("capture-"));

        struct stat found {};

        CHECK(::stat(file.c_str(), &found) == 0);
        CHECK((found.st_mode & 0777U) == 0600U);
        captured.push_back(read_snapshots(file));
    }
    std::ranges::sort(captured);
    CHECK(captured[0] == std::vector<std::string>{"snapshot 12<--1 ok 1", "snapshot 14<-12 ok 1"});
    CHECK(captured[1] == std::vector<std::string>{"snapshot 18<--1 ok 1"});
    CHECK(recordings.state().lost == 0);
}

TEST_CASE_FIXTURE(RecordingWorker<false>,
                  "demos from the page can begin in the middle of a game and end on request") {
    script.snap(10, kNoBase, kOnePickup);
    script.snap(12, 10, kMovedPickup);
    switch_recording(RecordingKind::demos, true);
    script.snap(14, 12, kOnePickup);
    script.snap(16, 14, kMovedPickup);
    switch_recording(RecordingKind::demos, false);
    script.snap(18, 16, kOnePickup);
    script.snap(20, 18, kMovedPickup);
    const auto files = finish_and_list_files();
    REQUIRE(files.size() == 1);
    CHECK(files[0].filename().string().ends_with("-s1-dm1.demo"));
    const auto seen = read_snapshots(files[0]);
    REQUIRE(seen.size() == 2);
    CHECK(seen[0].starts_with("snapshot 14<-"));
    CHECK(seen[1].starts_with("snapshot 16<-"));
}

TEST_CASE_FIXTURE(
    RecordingWorker<false>,
    "without a recording there is no file, and captures need the permission to contain secrets") {
    script.snap(10, kNoBase, kOnePickup);
    const auto refused = recordings.switch_recording(RecordingKind::capture, true);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().find("show secrets") != std::string::npos);
    CHECK(recordings.switch_recording(RecordingKind::capture, false).has_value());
    recorder.update_recordings(0);
    CHECK(finish_and_list_files().empty());
}

TEST_CASE_FIXTURE(RecordingWorker<>,
                  "the next capture may begin while a worker still writes to the previous one") {
    pipeline::PageRecorder slow{recordings};
    switch_recording(RecordingKind::capture, true);
    slow.update_recordings(0);
    switch_recording(RecordingKind::capture, false);
    switch_recording(RecordingKind::capture, true);
    script.snap(10, kNoBase, kOnePickup);
    slow.end_recordings(0);
    const auto files = finish_and_list_files();
    REQUIRE(files.size() == 2);
    CHECK(read_snapshots(files[0]).size() + read_snapshots(files[1]).size() == 1);
}

using WorkerWithSmallFolder = RecordingWorker<true, 4096>;

TEST_CASE_FIXTURE(WorkerWithSmallFolder,
                  "a full folder stops recordings with a reason, and new ones are rejected") {
    switch_recording(RecordingKind::capture, true);
    switch_recording(RecordingKind::demos, true);
    recordings.stop_if_failed_or_full();
    CHECK(recordings.state().stop_reason.empty());
    test::write_text(folder.file("old.pcapng"), std::string(5000, 'x'));
    recordings.stop_if_failed_or_full();
    const auto state = recordings.state();
    CHECK(state.stop_reason.find("take") != std::string::npos);
    CHECK_FALSE(state.capture_since_ms.has_value());
    CHECK_FALSE(state.demos_since_ms.has_value());
    recorder.update_recordings(0);
    const auto refused = recordings.switch_recording(RecordingKind::demos, true);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().find("move some away") != std::string::npos);
    std::filesystem::remove(folder.file("old.pcapng"));
    CHECK(recordings.switch_recording(RecordingKind::demos, true).has_value());
    CHECK(recordings.state().stop_reason.empty());
}

TEST_CASE_FIXTURE(RecordingWorker<>, "a write error stops recordings with a reason") {
    std::filesystem::remove_all(folder.path());
    switch_recording(RecordingKind::capture, true);
    for (int i = 0; i < 1000 && recordings.state().stop_reason.empty(); ++i) {
        std::this_thread::sleep_for(
            std::chrono::milliseconds{10}); // the writing thread notices the error
        recordings.stop_if_failed_or_full();
    }
    CHECK(recordings.state().stop_reason.find("No such file") != std::string::npos);
    CHECK_FALSE(recordings.state().capture_since_ms.has_value());
}

TEST_CASE("recordings are listed, the newest first, and opened by name only") {
    test::TemporaryFolder first;
    test::TemporaryFolder second;
    const auto secret = second.file("secret.txt");
    test::write_text(secret, "secret");
    test::write_text(first.file("a.demo"), "demo");
    test::write_text(second.file("flight-1.pcapng"), "capture");
    test::write_text(first.file(".hidden.demo"), "x");
    test::write_text(first.file("with space.demo"), "x");
    std::filesystem::create_directory(first.file("folder.demo"));
    std::filesystem::create_symlink(secret, first.file("link.demo"));
    CHECK(::mkfifo(first.file("pipe.demo").c_str(), 0600) == 0);
    std::filesystem::last_write_time(first.file("a.demo"),
                                     std::filesystem::file_time_type::clock::now() -
                                         std::chrono::hours{1});
    const pipeline::RecordingFolders folders{
        {first.path(), second.path(), "/no/such/folder", first.file(".")}};
    const auto files = folders.list_recordings();
    REQUIRE(files.size() == 2);
    CHECK(files[0].name == "flight-1.pcapng");
    CHECK(files[0].bytes == 7);
    CHECK(files[1].name == "a.demo");
    REQUIRE(folders.open_recording("a.demo") != nullptr);
    CHECK(folders.open_recording("a.demo")->bytes == 4);
    CHECK(pipeline::recording_folder_bytes(first.path()) == 4);
    const std::string other =
        "../" + std::filesystem::path{second.path()}.filename().string() + "/flight-1.pcapng";
    for (const std::string& name :
         {std::string{}, std::string{"."}, std::string{".."}, std::string{"../secret.txt"},
          std::string{"secret.txt"}, std::string{".hidden.demo"}, std::string{"with space.demo"},
          std::string{"folder.demo"}, std::string{"link.demo"}, std::string{"pipe.demo"},
          std::string{"b.demo"}, std::string{"/etc/passwd"}, std::string{"/etc/passwd\0.demo", 17},
          std::string{"a.demo\0", 7}, std::string{"./a.demo"}, other, std::string(5000, 'a')}) {
        CAPTURE(name);
        CHECK(folders.open_recording(name) == nullptr);
    }
}
