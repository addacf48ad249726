// Covers: proxy/wire/connless.cpp
#include "proxy/wire/connless.h"

#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

namespace {

using namespace tw::wire;
using namespace std::string_view_literals;

using Bytes = std::vector<std::byte>;

constexpr auto kPlainHeader = "\xff\xff\xff\xff\xff\xff"sv;
constexpr auto kMark = "\xff\xff\xff\xff"sv;

Bytes datagram(std::string_view header, std::string_view behind_mark) {
    Bytes bytes;
    for (const std::string_view text : {header, kMark, behind_mark}) {
        for (const char each : text) {
            bytes.push_back(static_cast<std::byte>(each));
        }
    }
    return bytes;
}

TEST_CASE("a request for server info is read with its token") {
    const auto plain = read_info_request(datagram(kPlainHeader, "gie3\xfe"sv));
    REQUIRE(plain);
    CHECK(plain->kind == InfoRequestKind::plain);
    CHECK(plain->token == 0xfe);
    const auto extended = read_info_request(datagram("xe\x12\x34\0\0"sv, "gie3\x56"sv));
    REQUIRE(extended);
    CHECK(extended->kind == InfoRequestKind::extended);
    CHECK(extended->token == 0x123456);
}

TEST_CASE("what servers might answer in another way is not read") {
    struct Row {
        std::string_view name;
        Bytes bytes;
    };

    const Row rows[]{
        {"nothing", {}},
        {"no token", datagram(kPlainHeader, "gie3"sv)},
        {"more behind the token", datagram(kPlainHeader, "gie312"sv)},
        {"another request", datagram(kPlainHeader, "fstd1"sv)},
        {"another mark", datagram(kPlainHeader.substr(1), "\0gie31"sv)},
        {"a header of neither kind", datagram("\x20\0\0\0\0\0"sv, "gie31"sv)},
        {"an extension that is not known", datagram("xe\x12\x34\0\1"sv, "gie31"sv)},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK_FALSE(read_info_request(row.bytes));
    }
}

TEST_CASE("a part of an answer is told by its token") {
    const InfoRequest plain{.kind = InfoRequestKind::plain, .token = 0x56};
    const InfoRequest extended{.kind = InfoRequestKind::extended, .token = 0x123456};

    struct Row {
        std::string_view name;
        InfoRequest request;
        std::string_view answer; ///< the bytes after ff ff ff ff
        std::optional<InfoPart> part;
    };

    const Row rows[]{
        {"plain", plain, "inf386\0name\0"sv, InfoPart::first},
        {"another token", plain, "inf387\0name\0"sv, std::nullopt},
        {"that nobody asked for", plain, "inf3-1\0name\0"sv, std::nullopt},
        {"extended to a plain request", plain, "iext86\0name\0"sv, std::nullopt},
        {"extended", extended, "iext1193046\0name\0"sv, InfoPart::first},
        {"more of it", extended, "iex+1193046\0001\0"sv, InfoPart::more},
        {"with the low byte alone", extended, "iext86\0name\0"sv, std::nullopt},
        {"plain, of a server without the extension", extended, "inf386\0name\0"sv, InfoPart::first},
        {"a request", plain, "gie386\0"sv, std::nullopt},
        {"a token without an end", plain, "inf386"sv, InfoPart::first},
        {"nothing behind the magic", plain, "inf3"sv, std::nullopt},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(classify_info_part(datagram(kPlainHeader, row.answer), row.request) == row.part);
    }
    CHECK_FALSE(
        classify_info_part(datagram(kPlainHeader, "inf386" + std::string(1400, 'a')), plain));
    CHECK_FALSE(classify_info_part({}, plain));
}

TEST_CASE("a part is written as the server would have written it for another token") {
    const auto answer = datagram(kPlainHeader, "iext1193046\0name\0map\0"sv);
    const auto plain = datagram(kPlainHeader, "inf386\0name\0"sv);

    struct Row {
        std::string_view name;
        Bytes part;
        std::uint32_t token;
        Bytes written;
    };

    const Row rows[]{
        {"shorter", answer, 7, datagram(kPlainHeader, "iext7\0name\0map\0"sv)},
        {"longer", answer, 0xffffff, datagram(kPlainHeader, "iext16777215\0name\0map\0"sv)},
        {"the same", answer, 0x123456, answer},
        {"plain, from the low byte", plain, 0x1234ff, datagram(kPlainHeader, "inf3255\0name\0"sv)},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        Bytes out(1400);
        const InfoRequest request{.kind = InfoRequestKind::extended, .token = row.token};
        out.resize(write_info_part(row.part, request, out));
        CHECK((out == row.written));
        Bytes small(row.written.size() - 1);
        CHECK(write_info_part(row.part, request, small) == 0);
    }
    Bytes out(1400);
    for (std::size_t size = 0; size < answer.size(); ++size) {
        CAPTURE(size);
        const std::size_t written = write_info_part(std::span{answer}.first(size), {}, out);
        CHECK(written <= size); // the token has only one digit, so the answer gets shorter
    }
}

TEST_CASE("no answer is written that is longer than any datagram of the game") {
    Bytes longest = datagram(kPlainHeader, "inf37\0"sv);
    longest.resize(1400, std::byte{'a'});
    Bytes out(2000);
    CHECK(write_info_part(longest, {.token = 8}, out) == 1400);
    CHECK(write_info_part(longest, {.token = 88}, out) == 0);
}

} // namespace
