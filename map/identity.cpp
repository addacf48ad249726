#include "map/identity.h"

#include "map/text.h"

#include <algorithm>
#include <bit>
#include <cctype>

#include <openssl/evp.h>
#include <zlib.h>

namespace tw::map {
namespace {

/// The maximum size of a map name that a server can announce. The message map_change has 128 bytes
/// for the name and its NUL.
constexpr std::size_t kMaxNameBytes = 127;

constexpr std::string_view kRefusedChars = "\\/|:*?<>\"";

struct CodePoints {
    char32_t first;
    char32_t last;
};

/// White space that is not ASCII. Names must not contain it, because it makes different names look
/// alike.
constexpr std::array<CodePoints, 9> kWideSpaces{{{0x85, 0x85},
                                                 {0xa0, 0xa0},
                                                 {0x1680, 0x1680},
                                                 {0x2000, 0x200f},
                                                 {0x2028, 0x2029},
                                                 {0x202f, 0x202f},
                                                 {0x205f, 0x205f},
                                                 {0x3000, 0x3000},
                                                 {0xfeff, 0xfeff}}};

bool is_wide_space(char32_t c) {
    return std::ranges::any_of(kWideSpaces, [c](const CodePoints& spaces) {
        return spaces.first <= c && c <= spaces.last;
    });
}

/// Whether Windows treats the name as a device. Only the name up to the first dot counts.
bool is_reserved_by_windows(std::string_view name) {
    std::string stem{name.substr(0, name.find('.'))};
    std::ranges::transform(stem, stem.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const bool is_numbered = stem.size() == 4 && stem.back() >= '0' && stem.back() <= '9' &&
                             (stem.starts_with("com") || stem.starts_with("lpt"));
    return is_numbered || stem == "con" || stem == "prn" || stem == "aux" || stem == "nul";
}

} // namespace

Sha256 sha256_of(std::span<const std::byte> bytes) {
    Sha256 sha256{};
    EVP_Digest(bytes.data(), bytes.size(), sha256.data(), nullptr, EVP_sha256(), nullptr);
    return sha256;
}

Identity identify(std::span<const std::byte> file) {
    return {.crc = continue_crc(0, file), .sha256 = sha256_of(file), .size = file.size()};
}

std::string to_hex(const Sha256& sha256) {
    return hex_digits(sha256);
}

std::uint32_t continue_crc(std::uint32_t before, std::span<const std::byte> piece) {
    return static_cast<std::uint32_t>(
        crc32_z(before, reinterpret_cast<const Bytef*>(piece.data()), piece.size()));
}

std::string to_hex(std::uint32_t crc) {
    std::array<std::uint8_t, 4> bytes{};
    for (std::uint8_t& byte : bytes) {
        crc = std::rotl(crc, 8);
        byte = static_cast<std::uint8_t>(crc & 0xffU);
    }
    return hex_digits(bytes);
}

bool is_valid_map_name(std::string_view name) {
    if (name.empty() || name.size() > kMaxNameBytes || name.front() == ' ' || name.back() == ' ' ||
        name.back() == '.' || name.find("  ") != std::string_view::npos ||
        is_reserved_by_windows(name)) {
        return false;
    }
    while (!name.empty()) {
        const auto c = take_code_point(name);
        if (!c || *c < 32 || *c == 127 || is_wide_space(*c) ||
            (*c < 128 && kRefusedChars.find(static_cast<char>(*c)) != std::string_view::npos)) {
            return false;
        }
    }
    return true;
}

std::optional<std::filesystem::path> find_map(std::span<const std::filesystem::path> folders,
                                              std::string_view name, std::uint32_t crc,
                                              const std::optional<Sha256>& sha256,
                                              std::vector<WrongMap>* wrong, const Limits& limits) {
    if (!is_valid_map_name(name)) {
        return std::nullopt;
    }
    const std::string base{name};
    std::vector<std::string> names{base + ".map"};
    if (sha256) {
        names.push_back(base + "_" + to_hex(*sha256) + ".map");
    }
    names.push_back(base + "_" + to_hex(crc) + ".map");
    for (const std::filesystem::path& folder : folders) {
        for (const char* const subfolder : {"", "maps", "downloadedmaps"}) {
            for (const std::string& file : names) {
                std::filesystem::path path = folder / subfolder / file;
                const auto bytes = read_file(path, limits.max_file_bytes);
                if (!bytes) {
                    continue;
                }
                const Identity identity = identify(*bytes);
                if (sha256 ? identity.sha256 == *sha256 : identity.crc == crc) {
                    return path;
                }
                if (wrong != nullptr) {
                    wrong->push_back({std::move(path), identity});
                }
            }
        }
    }
    return std::nullopt;
}

} // namespace tw::map
