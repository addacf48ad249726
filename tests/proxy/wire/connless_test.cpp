#include "proxy/wire/connless.h"
#include "tests/proxy/wire/fields_text.h"
#include "tests/support/message_builder.h"

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

namespace tw::wire::test {
namespace {

using tw::test::MessageBuilder;

MessageBuilder begin_connless(std::string_view magic) {
    return MessageBuilder{}.text("\xFF\xFF\xFF\xFF").text(magic);
}

std::string decode_connless_text(std::span<const std::byte> payload,
                                 std::span<const std::byte> extra = {}) {
    const auto* const spec = find_connless(payload, Dialect::six);
    REQUIRE(spec != nullptr);
    Packet packet;
    packet.kind = PacketKind::connless;
    packet.payload = payload;
    packet.connless_extra = extra;
    DecodedFields fields;
    decode_connless(*spec, packet, fields);
    CHECK(is_balanced(fields));
    return to_text(fields);
}

MessageBuilder& append_client(MessageBuilder& out, std::string_view name, bool extended) {
    out.string(name).string("clan").decimal(276).decimal(-9999).decimal(1);
    return extended ? out.string("") : out;
}

MessageBuilder info_sample() {
    auto out = begin_connless("inf3");
    out.decimal(-1).string("0.6.4").string("my server").string("dm1").string("DM");
    out.decimal(1).decimal(1).decimal(8).decimal(2).decimal(16);
    append_client(out, "one", false);
    append_client(out, "two", false);
    return out;
}

MessageBuilder extended_sample() {
    auto out = begin_connless("iext");
    out.decimal(65793).string("0.6.4, 16.4").string("my server").string("Kobra");
    out.decimal(-233464210).decimal(4096).string("DDraceNetwork");
    out.decimal(0).decimal(1).decimal(64).decimal(1).decimal(64).string("");
    append_client(out, "one", true);
    return out;
}

} // namespace

TEST_CASE("connless packets stand in the table as in the reference") {
    for (const Dialect dialect : {Dialect::six, Dialect::seven}) {
        const auto& wanted =
            spec_file(dialect == Dialect::six ? "gamenet-0.6-ddnet.json" : "gamenet-0.7.json")
                .at("connless_messages")
                .as_array();
        REQUIRE(wanted.size() == connless_table(dialect).size());
        for (const auto& value : wanted) {
            const auto& row = value.as_object();
            const auto* spec = find_connless(hex_at(row, "magic"), dialect);
            REQUIRE(spec != nullptr);
            CAPTURE(spec->name);
            CHECK(spec->magic == text_at(row, "ascii"));
            CHECK(spec->name == text_at(row, "name"));
            const auto* const fields = row.if_contains("fields");
            const std::size_t count = fields == nullptr ? 0 : fields->as_array().size();
            REQUIRE(spec->fields.size() == count);
            for (std::size_t j = 0; j < count; ++j) {
                CHECK(spec->fields[j].name == text_at(fields->as_array()[j].as_object(), "name"));
            }
        }
    }
    CHECK(connless_table(Dialect::six).size() == 16);
    CHECK(find_connless(from_hex("ffffffff69657874"), Dialect::seven) ==
          nullptr); // exists in DDNet's 0.6 only
}

TEST_CASE("unknown connless packets are not found") {
    for (const std::string_view hex :
         {"", "ffffffff", "ffffffff67696", "ffffffff676965", "feffffff67696533", "ffffffff67696534",
          "67696533ffffffff", "ffffff0067696533"}) {
        CAPTURE(hex);
        CHECK(find_connless(from_hex(hex), Dialect::six) == nullptr);
    }
}

TEST_CASE("requests carry a token of 8 bits, or 24 with the extended header") {
    const auto extra = from_hex("01020000");
    CHECK(decode_connless_text(begin_connless("gie3").byte(0xAB).bytes()) == "token=171");
    CHECK(decode_connless_text(begin_connless("gie3").byte(0xAB).bytes(), extra) ==
          "token=" + std::to_string(0x0102AB));
    CHECK(decode_connless_text(begin_connless("gie3").byte(1).bytes(), from_hex("ffff0000")) ==
          "token=" + std::to_string(0xFFFF01));
    CHECK(decode_connless_text(begin_connless("gie3").byte(1).byte(2).bytes()) == "token=1 +1");
    CHECK(decode_connless_text(begin_connless("gie3").bytes()) == "truncated@0");
    CHECK(decode_connless_text(begin_connless("gie3").bytes(), extra) == "truncated@0");
    CHECK(decode_connless_text(begin_connless("fstd").byte(7).bytes(), extra) == "token=7");
}

TEST_CASE("server info of each kind lists its players") {
    CHECK(decode_connless_text(info_sample().bytes()) ==
          "token=-1 version=\"0.6.4\" name=\"my server\" map=\"dm1\" game_type=\"DM\" flags=1 "
          "num_players=1 max_players=8 num_clients=2 max_clients=16 clients[ "
          "{ name=\"one\" clan=\"clan\" country=276 score=-9999 is_player=1 } "
          "{ name=\"two\" clan=\"clan\" country=276 score=-9999 is_player=1 } ]");
    CHECK(decode_connless_text(extended_sample().bytes()) ==
          "token=65793 version=\"0.6.4, 16.4\" name=\"my server\" map=\"Kobra\" "
          "map_crc=-233464210 map_size=4096 game_type=\"DDraceNetwork\" flags=0 num_players=1 "
          "max_players=64 num_clients=1 max_clients=64 reserved=\"\" clients[ "
          "{ name=\"one\" clan=\"clan\" country=276 score=-9999 is_player=1 reserved=\"\" } ]");

    auto sixty_four = begin_connless("dtsf");
    sixty_four.decimal(5).string("v").string("n").string("m").string("t");
    sixty_four.decimal(0).decimal(1).decimal(2).decimal(3).decimal(4).number(-70);
    CHECK(decode_connless_text(append_client(sixty_four, "x", false).bytes()) ==
          "token=5 version=\"v\" name=\"n\" map=\"m\" game_type=\"t\" flags=0 num_players=1 "
          "max_players=2 num_clients=3 max_clients=4 offset=-70 clients[ "
          "{ name=\"x\" clan=\"clan\" country=276 score=-9999 is_player=1 } ]");

    auto more = begin_connless("iex+");
    more.decimal(5).decimal(63).string("");
    CHECK(decode_connless_text(more.bytes()) == "token=5 packet_no=63 reserved=\"\" clients[ ]");
    CHECK(decode_connless_text(append_client(more, "x", true).bytes()) ==
          "token=5 packet_no=63 reserved=\"\" clients[ "
          "{ name=\"x\" clan=\"clan\" country=276 score=-9999 is_player=1 reserved=\"\" } ]");
}

TEST_CASE("server info of 0.7 lists its players, and tells its version") {
    PacketScratch scratch;
    DecodedFields fields;
    int seen = 0;
    for (const auto& row : seven_vectors("packets")) {
        if (row.at("kind").as_string() != "connless") {
            continue;
        }
        const Bytes datagram = hex_at(row, "bytes");
        const auto packet = decode_packet(datagram, Protocol::unknown, scratch).value();
        const auto* const spec = find_connless(packet.payload, Dialect::seven);
        REQUIRE(spec != nullptr);
        decode_connless(*spec, packet, fields);
        CHECK_FALSE(fields.error);
        CHECK(fields.trailing.empty());
        CHECK(fields.values.front().name == "token");
        if (spec->name == "info") {
            CHECK(find_server_version(packet.payload, Dialect::seven) == "0.7.5");
            CHECK(std::ranges::any_of(
                fields.values, [](const FieldValue& value) { return value.name == "kind"; }));
            ++seen;
        }
        for (std::size_t size = 8; size < packet.payload.size(); ++size) {
            Packet cut = packet;
            cut.payload = packet.payload.first(size);
            decode_connless(*spec, cut, fields);
            CHECK(is_balanced(fields));
        }
    }
    CHECK(seen == 1);
    CHECK_FALSE(find_server_version({}, Dialect::seven));
}

TEST_CASE("malformed decimal numbers are marked texts") {
    struct Row {
        std::string_view text, shown;
    };

    const Row rows[] = {
        {"0", "0"},
        {"-1", "-1"},
        {"2147483647", "2147483647"},
        {"", R"(""!)"},
        {"x", R"("x"!)"},
        {"1x", R"("1x"!)"},
        {" 1", R"(" 1"!)"},
        {"+1", R"("+1"!)"},
        {"-", R"("-"!)"},
        {"1.5", R"("1.5"!)"},
        {"0x10", R"("0x10"!)"},
        {"2147483648", "2147483648!"},
        {"-2147483649", "-2147483649!"},
        {"99999999999999999999", R"("99999999999999999999"!)"},
    };
    for (const auto& row : rows) {
        CAPTURE(row.text);
        auto body = begin_connless("iex+");
        body.string(row.text).decimal(1).string("");
        CHECK(decode_connless_text(body.bytes()) ==
              "token=" + std::string{row.shown} + " packet_no=1 reserved=\"\" clients[ ]");
    }
}

TEST_CASE("only server infos contain the server's version") {
    const auto version_of = [](const MessageBuilder& packet) -> std::optional<std::string> {
        const auto version = find_server_version(packet.bytes(), Dialect::six);
        return version ? std::optional{std::string{*version}} : std::nullopt;
    };
    CHECK(version_of(begin_connless("inf3").string("7").string("0.6.4, 18.0")) == "0.6.4, 18.0");
    CHECK_FALSE(version_of(begin_connless("inf3").string("7").text("cut")));
    CHECK_FALSE(version_of(begin_connless("inf3")));
    CHECK_FALSE(version_of(begin_connless("gie3").byte(7)));
    CHECK_FALSE(version_of(begin_connless("nope").string("7").string("0.6.4")));
    CHECK_FALSE(find_server_version({}, Dialect::six));
    for (const ConnlessSpec& spec : connless_table(Dialect::six)) {
        CAPTURE(spec.magic);
        const bool is_info = spec.fields.size() >= 2 && spec.fields[1].name == "version";
        CHECK(version_of(begin_connless(spec.magic).string("7").string("v")).has_value() ==
              is_info);
    }
}

TEST_CASE("the packets of master servers are decoded") {
    const auto address = from_hex("00000000000000000000ffff7f000001");
    auto list = begin_connless("lis2");
    list.raw(address).u16_be(8303);
    CHECK(decode_connless_text(list.bytes()) ==
          "servers[ { address=x00000000000000000000ffff7f000001 port=8303 } ]");
    CHECK(decode_connless_text(list.text("half a record").bytes()) ==
          "servers[ { address=x00000000000000000000ffff7f000001 port=8303 } ] +13");
    CHECK(decode_connless_text(begin_connless("lis2").bytes()) == "servers[ ]");
    CHECK(decode_connless_text(begin_connless("siz2").u16_be(65535).bytes()) == "count=65535");
    CHECK(decode_connless_text(begin_connless("siz2").byte(1).bytes()) == "length_out_of_range@0");
    CHECK(decode_connless_text(begin_connless("bea2").u16_be(0x1234).bytes()) == "alt_port=4660");
    CHECK(decode_connless_text(begin_connless("chal").text("token").bytes()) == " +5");
    for (const std::string_view magic : {"req2", "cou2", "fw\?\?", "fw!!", "fwok", "fwer"}) {
        CAPTURE(magic);
        CHECK(decode_connless_text(begin_connless(magic).bytes()).empty());
    }
}

TEST_CASE("a server info cut at any byte is an error inside it, or has fewer players") {
    for (const auto& sample : {info_sample(), extended_sample()}) {
        const auto& wire = sample.bytes();
        for (std::size_t size = 8; size < wire.size(); ++size) {
            CAPTURE(size);
            const auto cut = prefix(wire, size);
            Packet packet;
            packet.payload = cut;
            DecodedFields fields;
            decode_connless(*find_connless(cut, Dialect::six), packet, fields);
            CHECK(is_balanced(fields));
            if (fields.error) {
                CHECK(fields.error->offset <= cut.size() - 8);
            } else {
                // The packet ends between two players or before the first one.
                CHECK(cut.back() == std::byte{0});
                CHECK(fields.trailing.empty());
            }
        }
    }
}

TEST_CASE("random connless packets are decoded within limits") {
    std::mt19937 random{13};
    DecodedFields fields;
    for (int round = 0; round < 300; ++round) {
        for (const auto& spec : connless_table(Dialect::six)) {
            auto body = begin_connless(spec.magic);
            const auto size = random() % 300;
            for (std::size_t i = 0; i < size; ++i) {
                body.byte(static_cast<std::uint8_t>(random() % 3 == 0 ? 0 : random()));
            }
            Packet packet;
            packet.payload = body.bytes();
            decode_connless(spec, packet, fields);
            CHECK(is_balanced(fields));
            CHECK(fields.values.size() <= 3 * size + 16);
        }
    }
}

} // namespace tw::wire::test

namespace {

using namespace tw::wire;
using namespace std::string_view_literals;

using Bytes = std::vector<std::byte>;

constexpr auto kPlainHeader = "\xff\xff\xff\xff\xff\xff"sv;
constexpr auto kMark = "\xff\xff\xff\xff"sv;

Bytes connless_datagram(std::string_view header, std::string_view behind_mark) {
    Bytes bytes;
    for (const std::string_view text : {header, kMark, behind_mark}) {
        for (const char each : text) {
            bytes.push_back(static_cast<std::byte>(each));
        }
    }
    return bytes;
}

TEST_CASE("a request for server info is read with its token") {
    const auto plain = read_info_request(connless_datagram(kPlainHeader, "gie3\xfe"sv)).value();
    CHECK(plain.kind == InfoRequestKind::plain);
    CHECK(plain.token == 0xfe);
    const auto extended =
        read_info_request(connless_datagram("xe\x12\x34\0\0"sv, "gie3\x56"sv)).value();
    CHECK(extended.kind == InfoRequestKind::extended);
    CHECK(extended.token == 0x123456);
}

TEST_CASE("other datagrams and ambiguous requests for server info are not decoded") {
    struct Row {
        std::string_view name;
        Bytes bytes;
    };

    const Row rows[]{
        {"nothing", {}},
        {"no token", connless_datagram(kPlainHeader, "gie3"sv)},
        {"more behind the token", connless_datagram(kPlainHeader, "gie312"sv)},
        {"another request", connless_datagram(kPlainHeader, "fstd1"sv)},
        {"another mark", connless_datagram(kPlainHeader.substr(1), "\0gie31"sv)},
        {"a header of neither kind", connless_datagram("\x20\0\0\0\0\0"sv, "gie31"sv)},
        {"an extension that is not known", connless_datagram("xe\x12\x34\0\1"sv, "gie31"sv)},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK_FALSE(read_info_request(row.bytes));
    }
}

TEST_CASE("the token shows to which request a part belongs") {
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
        CHECK(classify_info_part(connless_datagram(kPlainHeader, row.answer), row.request) ==
              row.part);
    }
    CHECK_FALSE(classify_info_part(
        connless_datagram(kPlainHeader, "inf386" + std::string(1400, 'a')), plain));
    CHECK_FALSE(classify_info_part({}, plain));
}

TEST_CASE("a part is rewritten for another token") {
    const auto answer = connless_datagram(kPlainHeader, "iext1193046\0name\0map\0"sv);
    const auto plain = connless_datagram(kPlainHeader, "inf386\0name\0"sv);

    struct Row {
        std::string_view name;
        Bytes part;
        std::uint32_t token;
        Bytes written;
    };

    const Row rows[]{
        {"shorter", answer, 7, connless_datagram(kPlainHeader, "iext7\0name\0map\0"sv)},
        {"longer", answer, 0xffffff,
         connless_datagram(kPlainHeader, "iext16777215\0name\0map\0"sv)},
        {"the same", answer, 0x123456, answer},
        {"plain, from the low byte", plain, 0x1234ff,
         connless_datagram(kPlainHeader, "inf3255\0name\0"sv)},
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

TEST_CASE("an answer longer than any datagram of the game is not written") {
    Bytes longest = connless_datagram(kPlainHeader, "inf37\0"sv);
    longest.resize(1400, std::byte{'a'});
    Bytes out(2000);
    CHECK(write_info_part(longest, {.token = 8}, out) == 1400);
    CHECK(write_info_part(longest, {.token = 88}, out) == 0);
}

} // namespace
