#include "vectors.h"

#include "snapshot/cursor.h"
#include "tests/support/test_data.h"

#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>

#include <boost/json.hpp>

namespace tw::snapshot::test {

const boost::json::object& spec_file(const std::string& name) {
    static std::map<std::string, boost::json::object> files;
    const auto known = files.find(name);
    if (known != files.end()) {
        return known->second;
    }
    std::ifstream in{tw::test::test_data("spec/" + name)};
    if (!in) {
        throw std::runtime_error{"missing test data: " + name};
    }
    const std::string text{std::istreambuf_iterator<char>{in}, {}};
    return files.emplace(name, boost::json::parse(text).as_object()).first->second;
}

const boost::json::array& seven_vectors(std::string_view group) {
    return spec_file("vectors-0.7.json").at(group).as_array();
}

const boost::json::array& vectors(std::string_view group) {
    return spec_file("vectors.json").at(group).as_array();
}

std::vector<std::byte> from_hex(std::string_view hex) {
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
        bytes.push_back(
            static_cast<std::byte>(std::stoi(std::string{hex.substr(i, 2)}, nullptr, 16)));
    }
    return bytes;
}

std::string to_hex(const std::vector<std::byte>& bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    for (const std::byte byte : bytes) {
        text += kDigits[std::to_integer<std::size_t>(byte >> 4)];
        text += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
    }
    return text;
}

std::vector<std::int32_t> ints_of(const boost::json::value& list) {
    std::vector<std::int32_t> ints;
    for (const auto& value : list.as_array()) {
        ints.push_back(value.to_number<std::int32_t>());
    }
    return ints;
}

std::vector<std::byte> encode_ints(const std::vector<std::int32_t>& ints) {
    std::vector<std::byte> bytes;
    for (const std::int32_t value : ints) {
        encode_varint(value, bytes);
    }
    return bytes;
}

Snapshot snapshot_of(const boost::json::value& items) {
    std::map<ItemKey, std::vector<std::int32_t>> sorted;
    for (const auto& item : items.as_array()) {
        const ItemKey key{item.at("type").to_number<std::uint16_t>(),
                          item.at("id").to_number<std::uint16_t>()};
        sorted[key] = ints_of(item.at("data"));
    }
    Snapshot snapshot;
    for (const auto& [key, data] : sorted) {
        snapshot.append(key, data);
    }
    return snapshot;
}

} // namespace tw::snapshot::test
