#include "tests/support/spec_vectors.h"

#include "tests/support/test_data.h"

#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>

#include <boost/json.hpp>

namespace tw::test {

const boost::json::object& spec_file(const std::string& name) {
    static std::map<std::string, boost::json::object> files;
    if (const auto known = files.find(name); known != files.end()) {
        return known->second;
    }
    std::ifstream in{test_data("spec/" + name)};
    if (!in) {
        throw std::runtime_error{"missing test data: " + name};
    }
    const std::string text{std::istreambuf_iterator<char>{in}, {}};
    return files.emplace(name, boost::json::parse(text).as_object()).first->second;
}

const boost::json::array& vectors(std::string_view group) {
    return spec_file("vectors.json").at(group).as_array();
}

const boost::json::array& seven_vectors(std::string_view group) {
    return spec_file("vectors-0.7.json").at(group).as_array();
}

std::string text_at(const boost::json::object& row, std::string_view key,
                    std::string_view otherwise) {
    const auto* const found = row.if_contains(key);
    return std::string{
        found != nullptr && found->is_string() ? std::string_view{found->get_string()} : otherwise};
}

std::int64_t integer_at(const boost::json::object& row, std::string_view key,
                        std::int64_t otherwise) {
    const auto* const found = row.if_contains(key);
    return found == nullptr ? otherwise : found->as_int64();
}

Bytes hex_at(const boost::json::value& row, std::string_view key) {
    return from_hex(row.at(key).as_string());
}

Bytes prefix(std::span<const std::byte> bytes, std::size_t size) {
    const auto part = bytes.first(size);
    return {part.begin(), part.end()};
}

} // namespace tw::test
