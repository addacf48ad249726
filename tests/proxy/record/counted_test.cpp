// Covers: proxy/record/counted.cpp
#include "proxy/record/counted.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>

using namespace tw::record;

TEST_CASE("a text has the forms for its count") {
    struct Row {
        std::string_view text;
        std::string_view one;
        std::string_view many;
    };

    const Row rows[] = {
        {"file[s]", "1 file", "2 files"},
        {"entr[y|ies]", "1 entry", "2 entries"},
        {"line[s] that [is|are] not [a record|records]", "1 line that is not a record",
         "2 lines that are not records"},
        {"fish", "1 fish", "2 fish"},
        {"", "1 ", "2 "},
        {"open [", "1 open ", "2 open "}, // no such text is written; nothing is read past its end
    };
    for (const Row& row : rows) {
        CAPTURE(row.text);
        CHECK(counted(1, row.text) == row.one);
        CHECK(counted(2, row.text) == row.many);
        CHECK(counted(0, row.text) == '0' + std::string{row.many.substr(1)});
    }
}
