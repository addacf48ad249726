#pragma once

#include "proxy/wire/message.h"
#include "tests/support/spec_vectors.h"

#include <string>

namespace tw::wire::test {

using namespace tw::test;

/// Formats decoded fields as one line, for the tables of tests:
/// `name=5`, `name="text"`, `name=x0a0b` (raw, UUID), `name[ 1 2 ]`, `name{ x=1 }`; a secret value
/// ends with `*`, and a value out of range ends with `!`. Then `+3` for trailing bytes, or `error@offset`.
[[nodiscard]] std::string to_text(const DecodedFields& fields);

/// Returns whether each array and object that begins also ends, exactly once.
[[nodiscard]] bool is_balanced(const DecodedFields& fields);

} // namespace tw::wire::test
