#include "proxy/inspect/receiver_rules.h"

#include <doctest/doctest.h>

using tw::inspect::receiver_rules;

TEST_CASE(
    "what a receiver refuses is that of its version, and of today's where that is not known") {
    CHECK(receiver_rules(true, std::nullopt).program == "vanilla 0.6");
    CHECK(receiver_rules(false, std::nullopt).program == "DDNet since 19.4");
    CHECK(receiver_rules(false, 20010).program == "DDNet since 19.4");
    CHECK(receiver_rules(false, 19040).program == "DDNet since 19.4");
    CHECK(receiver_rules(false, 19030).program == "DDNet 10.3 to 19.3");
    CHECK(receiver_rules(false, 16040).program == "DDNet 10.3 to 19.3");
    CHECK(receiver_rules(false, -1).program == "DDNet since 19.4"); // says what nobody is
    CHECK_FALSE(receiver_rules(false, 16040).refuses_control_with_chunks);
    CHECK(receiver_rules(false, 16040).refuses_compressed_control);
}
