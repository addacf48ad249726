#pragma once

#include "proxy/wire/message.h"

#include <string>

namespace tw::wire::test {

/// Decoded fields in one line, so that tables of tests can say what they expect:
/// `name=5`, `name="text"`, `name=x0a0b` (raw, UUID), `name[ 1 2 ]`, `name{ x=1 }`; a secret value
/// ends with `*`, one out of range with `!`. Then `+3` for trailing bytes, or `error@offset`.
[[nodiscard]] std::string to_text(const DecodedFields& fields);

/// Whether every bracket that is opened is closed, and none is closed twice.
[[nodiscard]] bool is_balanced(const DecodedFields& fields);

} // namespace tw::wire::test
