// Covers: proxy/process/relay_run.cpp
#include "proxy/process/relay_run.h"

#include <doctest/doctest.h>

TEST_CASE("rejected datagrams are reported once, with the reason") {
    tw::process::AdmissionReport report;
    tw::relay::Counters counters;
    CHECK_FALSE(report.check(counters));
    counters.admission.flood = 17;
    counters.admission.proven = 3;
    CHECK(report.check(counters) ==
          "datagrams rejected at the door: 17 (too many from one address)");
    CHECK_FALSE(report.check(counters));
    counters.admission.flood = 18;
    counters.admission.crowd = 5;
    counters.sessions_refused = 2;
    CHECK(report.check(counters) ==
          "datagrams rejected at the door: 1 (too many from one address), 5 (too many unknown "
          "clients at once), 2 (no session is free)");
    counters.repeated_answers = 7;
    CHECK(report.check(counters) == "requests answered with the server's last answer: 7");
    counters.repeated_answers = 8;
    counters.admission.own = 1;
    CHECK(report.check(counters) ==
          "datagrams rejected at the door: 1 (sent in the proxy's or the server's own name); "
          "requests answered with the server's last answer: 1");
}
