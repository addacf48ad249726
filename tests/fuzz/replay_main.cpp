#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

/// Replays every file of the folders named on the command line, in order of their names. A corpus
/// that is not there is a mistake, not a success.
int main(int argc, char** argv) {
    std::vector<std::filesystem::path> files;
    for (int i = 1; i < argc; ++i) {
        std::error_code error;
        for (const auto& entry : std::filesystem::directory_iterator{argv[i], error}) {
            files.push_back(entry.path());
        }
    }
    if (files.empty()) {
        std::fputs("no files to replay; name a folder of corpus files\n", stderr);
        return 2;
    }
    std::sort(files.begin(), files.end());
    for (const auto& path : files) {
        std::fprintf(stderr, "%s\n", path.c_str()); // the last one named is the one that failed
        std::ifstream file{path, std::ios::binary};
        const std::vector<char> text{std::istreambuf_iterator<char>{file}, {}};
        const std::vector<std::uint8_t> bytes(text.begin(), text.end());
        LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    }
    return 0;
}
