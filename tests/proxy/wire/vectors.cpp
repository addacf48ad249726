#include "tests/proxy/wire/vectors.h"

#include "tests/support/test_data.h"

#include <fstream>
#include <iterator>
#include <stdexcept>

#include <boost/json.hpp>

namespace tw::wire::test {

namespace {

boost::json::object load(const std::string& name) {
    std::ifstream file{tw::test::test_data("spec/" + name)};
    if (!file) {
        throw std::runtime_error{name + " is missing"};
    }
    const std::string text{std::istreambuf_iterator<char>{file}, {}};
    return boost::json::parse(text).as_object();
}

} // namespace

const boost::json::array& vectors(std::string_view group) {
    static const boost::json::object all = load("vectors.json");
    return all.at(group).as_array();
}

const boost::json::array& seven_vectors(std::string_view group) {
    static const boost::json::object all = load("vectors-0.7.json");
    return all.at(group).as_array();
}

Bytes from_hex(std::string_view hex) {
    Bytes out;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
        out.push_back(
            static_cast<std::byte>(std::stoul(std::string{hex.substr(i, 2)}, nullptr, 16)));
    }
    return out;
}

std::string to_hex(std::span<const std::byte> bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string out;
    for (const std::byte byte : bytes) {
        const auto value = std::to_integer<std::size_t>(byte);
        out += kDigits[value >> 4U];
        out += kDigits[value & 15U];
    }
    return out;
}

Bytes hex_at(const boost::json::value& row, std::string_view key) {
    return from_hex(row.at(key).as_string());
}

Bytes prefix(std::span<const std::byte> bytes, std::size_t size) {
    const auto part = bytes.first(size);
    return {part.begin(), part.end()};
}

} // namespace tw::wire::test
