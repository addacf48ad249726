#pragma once

#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json.hpp>

namespace tw::snapshot::test {

/// Returns a file of tests/data/spec, which is parsed once.
const boost::json::object& spec_file(const std::string& name);

/// Returns a group of vectors.json.
const boost::json::array& vectors(std::string_view group);
/// Returns a group of vectors-0.7.json.
const boost::json::array& seven_vectors(std::string_view group);

std::vector<std::byte> from_hex(std::string_view hex);
std::string to_hex(const std::vector<std::byte>& bytes);
std::vector<std::int32_t> ints_of(const boost::json::value& list);
std::vector<std::byte> encode_ints(const std::vector<std::int32_t>& ints);

/// Returns the snapshot in a list of {type, id, data} in any order.
Snapshot snapshot_of(const boost::json::value& items);

} // namespace tw::snapshot::test
