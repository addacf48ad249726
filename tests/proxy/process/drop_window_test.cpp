// Covers: proxy/process/tap_run.cpp
#include "proxy/process/tap_run.h"

#include <optional>

#include <doctest/doctest.h>

using tw::process::DropWindow;

TEST_CASE("drops between two readings are reported before the first and after the last frame "
          "between them") {
    DropWindow drops{100};
    drops.on_drop_count(200, 0);
    drops.on_drop_count(300, 7);
    CHECK(drops.is_open());
    CHECK_FALSE(drops.take_missing(150));
    CHECK_FALSE(drops.take_missing(200)); // the frame was captured before the last reading
    CHECK(drops.take_missing(201) == 7);
    CHECK_FALSE(drops.take_missing(250));
    CHECK_FALSE(drops.take_missing(300));
    CHECK(drops.take_missing(301) == 0);
    CHECK_FALSE(drops.is_open());
    CHECK_FALSE(drops.take_missing(302));
}

TEST_CASE("continuing drops make one window, and each drop is counted once") {
    DropWindow drops{0};
    drops.on_drop_count(10, 5);
    CHECK(drops.take_missing(5) == 5);
    drops.on_drop_count(20, 9);
    drops.on_drop_count(30, 9);
    CHECK_FALSE(drops.take_missing(15));
    CHECK(drops.take_missing(21) == 4);
    CHECK_FALSE(drops.is_open());
}

TEST_CASE("if no frame of the interval arrives, the drops are reported before the next frame") {
    DropWindow drops{0};
    drops.on_drop_count(10, 3);
    CHECK(drops.take_missing(11) == 3);
    CHECK_FALSE(drops.is_open());
    drops.on_drop_count(20, 3);
    CHECK_FALSE(drops.is_open());
    drops.on_drop_count(30, 4);
    CHECK_FALSE(drops.take_missing(20));
    CHECK(drops.take_missing(1000) == 1);
}
