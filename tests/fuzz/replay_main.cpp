#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Input = std::vector<std::uint8_t>;

/// The longest mutated input; files of the corpus may be longer.
constexpr std::size_t kMaxInput = 1 << 16U;

/// Makes one small change; `other` provides bytes to insert.
void mutate(Input& input, const Input& other, std::mt19937& random) {
    constexpr std::uint8_t kTelling[] = {0, 1, 0x3f, 0x40, 0x7f, 0x80, 0xff};
    const auto below = [&random](std::size_t end) {
        return end == 0 ? 0 : static_cast<std::size_t>(random()) % end;
    };
    const auto at = [&input](std::size_t index) {
        return input.begin() + static_cast<std::ptrdiff_t>(index);
    };
    const std::size_t begin = below(input.size());
    const std::size_t length = below(std::min<std::size_t>(input.size() - begin, 64) + 1);
    switch (random() % 6) {
    case 0:
        if (!input.empty()) {
            input[begin] ^= static_cast<std::uint8_t>(1U << random() % 8);
        }
        break;
    case 1:
        if (!input.empty()) {
            input[begin] = kTelling[below(std::size(kTelling))];
        }
        break;
    case 2:
        input.erase(at(begin), at(begin + length));
        break;
    case 3: {
        const Input again(at(begin), at(begin + length));
        input.insert(at(begin), again.begin(), again.end());
        break;
    }
    case 4: {
        const std::size_t from = below(other.size());
        const std::size_t count = below(std::min<std::size_t>(other.size() - from, 64) + 1);
        const auto source = other.begin() + static_cast<std::ptrdiff_t>(from);
        input.insert(at(begin), source, source + static_cast<std::ptrdiff_t>(count));
        break;
    }
    default:
        input.resize(begin);
        break;
    }
    input.resize(std::min(input.size(), kMaxInput));
}

Input read_input_file(const std::filesystem::path& path) {
    std::ifstream file{path, std::ios::binary};
    const std::vector<char> text{std::istreambuf_iterator<char>{file}, {}};
    return {text.begin(), text.end()};
}

} // namespace

/// Replays every file of the folders on the command line, sorted by name. With --mutations=N, also replays
/// N mutations of each file, which are the same in every run. A missing corpus is an error.
int main(int argc, char** argv) {
    constexpr std::string_view kMutations = "--mutations=";
    std::vector<std::filesystem::path> files;
    unsigned long mutations = 0;
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument{argv[i]};
        if (argument.starts_with(kMutations)) {
            mutations = std::strtoul(argv[i] + kMutations.size(), nullptr, 10);
            continue;
        }
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
    Input before;
    for (const auto& path : files) {
        std::fprintf(
            stderr, "%s",
            path.c_str()); // after a crash, the last printed name is that of the failed input
        const Input seed = read_input_file(path);
        LLVMFuzzerTestOneInput(seed.data(), seed.size());
        std::mt19937 random{static_cast<std::mt19937::result_type>(seed.size())};
        for (unsigned long i = 1; i <= mutations; ++i) {
            std::fprintf(stderr, " %lu", i);
            Input input = seed;
            for (auto changes = 1 + random() % 8; changes > 0; --changes) {
                mutate(input, before, random);
            }
            LLVMFuzzerTestOneInput(input.data(), input.size());
        }
        std::fputc('\n', stderr);
        before = seed;
    }
    return 0;
}
