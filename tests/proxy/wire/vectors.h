#pragma once

#include "tests/support/spec_vectors.h"

namespace tw::wire::test {

using namespace tw::test;

} // namespace tw::wire::test
