// Valid and invalid descriptions of a mod.

#include "proxy/cli/flags.h"
#include "proxy/cli/objects_file.h"
#include "snapshot/names.h"
#include "tests/support/program.h"

#include <fstream>

#include <doctest/doctest.h>

namespace tw::test {
namespace {

using snapshot::Dialect;
using snapshot::FieldKind;
using snapshot::FieldMerge;
using snapshot::ObjectSpec;

/// Reads a file with this text. Returns the description or the error.
struct ReadObjectsFile {
    explicit ReadObjectsFile(std::string_view text) {
        const std::string path = folder.file("mod.json");
        std::ofstream{path} << text;
        try {
            cli::read_objects_file(path, mod);
        } catch (const cli::UsageError& error) {
            complaint = error.what();
        }
    }

    TemporaryFolder folder;
    wire::ModDescription mod;
    std::string complaint;
};

const snapshot::FieldSpec* find_field(const ObjectSpec& object, std::string_view name) {
    const auto found = std::ranges::find(object.fields, name, &snapshot::FieldSpec::name);
    return found == object.fields.end() ? nullptr : &*found;
}

std::string object_with_fields(int count) {
    std::string fields;
    for (int i = 0; i < count; ++i) {
        fields += fmt::format(R"({}{{"name": "f{}"}})", i == 0 ? "" : ",", i);
    }
    return fields;
}

} // namespace

TEST_CASE("the UUID of a name is the one that game programs compute") {
    for (const ObjectSpec& object : snapshot::object_table()) {
        if (!object.uuid_name.empty()) {
            CAPTURE(object.uuid_name);
            CHECK(cli::uuid_of_name(object.uuid_name) == object.uuid);
        }
    }
    std::size_t messages = 0;
    for (const wire::MessageSpec& message : wire::message_table()) {
        if (!message.uuid_name.empty()) {
            CAPTURE(message.uuid_name);
            CHECK(cli::uuid_of_name(message.uuid_name) == message.uuid);
            ++messages;
        }
    }
    CHECK(messages > 30);
}

TEST_CASE("an object is identified by a UUID, or by the name from which the UUID is made") {
    const ReadObjectsFile named{
        R"({"objects": [{"name": "thing", "uuid": "my-thing@netobj.test.example"}]})"};
    REQUIRE(named.complaint.empty());
    const snapshot::Uuid uuid = cli::uuid_of_name("my-thing@netobj.test.example");
    REQUIRE(named.mod.objects.find(uuid) != nullptr);
    CHECK(named.mod.objects.find(uuid)->name == "thing");
    CHECK(named.mod.objects.find(uuid)->uuid_name == "my-thing@netobj.test.example");
    const auto text = snapshot::format_uuid(uuid);
    const ReadObjectsFile spelt{fmt::format(R"({{"objects": [{{"name": "thing", "uuid": "{}"}}]}})",
                                            std::string_view{text.data(), text.size()})};
    CHECK(spelt.mod.objects.find(uuid) != nullptr);
}

TEST_CASE("an entry for a known type keeps the meaning of the type") {
    // The entry that decode --sizes writes for a server that leaves out the last int.
    const ReadObjectsFile shorter{
        R"({"objects": [{"name": "player_info", "type": 10, "agreed_size": true,
        "fields": [{"name": "local"}, {"name": "client_id"}, {"name": "team"}, {"name": "score"}]}]})"};
    REQUIRE(shorter.complaint == "");
    const ObjectSpec* const info = shorter.mod.objects.find(10, Dialect::six);
    REQUIRE(info != nullptr);
    CHECK(info->size == 4);
    CHECK(shorter.mod.objects.sizes(Dialect::six)[10] == 4);
    REQUIRE(info->client.has_value());
    CHECK(info->client->field == 1);
    CHECK(find_field(*info, "local")->kind == FieldKind::boolean);
    CHECK(find_field(*info, "local")->merge == FieldMerge::about_viewer);
    CHECK(find_field(*info, "client_id")->merge == FieldMerge::client_id);
    CHECK(find_field(*info, "team")->names == &snapshot::names::team);
    CHECK(find_field(*info, "score")->merge == FieldMerge::own_first);

    // An int at the start moves all others.
    const ReadObjectsFile moved{R"({"objects": [{"type": 4,
        "fields": [{"name": "glow"}, {"name": "x"}, {"name": "y"}, {"name": "type"}, {"name": "subtype"}]}]})"};
    REQUIRE(moved.complaint == "");
    const ObjectSpec* const pickup = moved.mod.objects.find(4, Dialect::six);
    CHECK(pickup->name == "pickup");
    CHECK(moved.mod.objects.sizes(Dialect::six)[4] == 5);
    CHECK(pickup->position->x == 1);
    CHECK(pickup->position->y == 2);
    CHECK(pickup->merge.family == snapshot::ObjectFamily::pickup);
    CHECK(find_field(*pickup, "subtype")->names_when != 0);
    // The subtype means a weapon only directly after the type.
    const ReadObjectsFile apart{R"({"objects": [{"type": 4,
        "fields": [{"name": "x"}, {"name": "y"}, {"name": "type"}, {"name": "glow"}, {"name": "subtype"}]}]})"};
    CHECK(find_field(*apart.mod.objects.find(4, Dialect::six), "subtype")->names == nullptr);

    // The entry's own value is used.
    const ReadObjectsFile told{
        R"({"objects": [{"name": "player_info", "type": 10, "agreed_size": false,
        "fields": [{"name": "client_id", "kind": "int"}, {"name": "team", "names": {"5": "green"}}]}]})"};
    const ObjectSpec* const own = told.mod.objects.find(10, Dialect::six);
    CHECK(told.mod.objects.sizes(Dialect::six)[10] == 0);
    CHECK(own->client->field == 0);
    CHECK(find_field(*own, "team")->names->find(5) == "green");
    CHECK_FALSE(find_field(*own, "team")->names->find(0));
}

TEST_CASE("an entry without fields extends the known object") {
    const ReadObjectsFile read{R"({"objects": [
        {"type": 6, "per_viewer": ["round_start_tick", "time_limit"]},
        {"type": 10, "protocol": "0.7", "per_viewer": true},
        {"uuid": "character@netobj.ddnet.tw", "name": "tee"}]})"};
    REQUIRE(read.complaint == "");
    const ObjectSpec* const info = read.mod.objects.find(6, Dialect::six);
    CHECK(info->name == "game_info");
    CHECK(info->size == 8);
    CHECK(read.mod.objects.sizes(Dialect::six) == snapshot::kAgreedSizes);
    CHECK(find_field(*info, "time_limit")->merge == FieldMerge::per_viewer);
    CHECK(find_field(*info, "warmup_timer")->merge == FieldMerge::race_timer);
    const ObjectSpec* const seven = read.mod.objects.find(10, Dialect::seven);
    CHECK(seven->merge.per_session);
    CHECK(seven->merge.six_name == "character");
    CHECK(read.mod.objects.sizes(Dialect::seven) == snapshot::kSevenAgreedSizes);
    const ObjectSpec* const tee =
        read.mod.objects.find(cli::uuid_of_name("character@netobj.ddnet.tw"));
    CHECK(tee->name == "tee");
    CHECK(tee->client.has_value());
    CHECK(find_field(*tee, "strong_weak_id")->merge == FieldMerge::untranslated);
}

TEST_CASE("an object can name its client, and the fields that differ for each viewer") {
    const ReadObjectsFile read{R"({"objects": [
        {"name": "a", "type": 40, "fields": [{"name": "owner"}], "client": "owner"},
        {"name": "b", "type": 41, "id_is_client": true, "fields": [{"name": "on", "kind": "bool"}]},
        {"name": "c", "type": 42, "fields": [{"name": "x"}, {"name": "y"}], "per_viewer": ["y"]},
        {"name": "d", "type": 43, "per_viewer": true}]})"};
    REQUIRE(read.complaint == "");
    const auto find = [&](std::uint16_t type) { return read.mod.objects.find(type, Dialect::six); };
    CHECK(find(40)->client->field == 0);
    CHECK(find(40)->fields[0].merge == FieldMerge::client_id);
    REQUIRE(find(41)->client.has_value());
    CHECK_FALSE(find(41)->client->field.has_value());
    CHECK(find(41)->fields[0].kind == FieldKind::boolean);
    CHECK(find(42)->fields[0].merge == FieldMerge::same_for_all);
    CHECK(find(42)->fields[1].merge == FieldMerge::per_viewer);
    CHECK(find(43)->merge.per_session);
}

TEST_CASE("a message is identified by number or UUID, and described by sender and fields") {
    const ReadObjectsFile read{R"({"messages": [
        {"name": "tile", "uuid": "modify-tile@msg.zillyhuhn.com", "from": "server",
         "fields": [{"name": "x"}, {"name": "why", "kind": "string", "optional": true}]},
        {"name": "cl_version", "number": 26, "from": "client", "fields": [{"name": "version"}]},
        {"name": "key", "number": 300, "protocol": "0.7", "system": true, "secret": true,
         "fields": [{"name": "size"}, {"name": "data", "kind": "bytes"}, {"name": "more", "kind": "ints"}]}]})"};
    REQUIRE(read.complaint == "");
    const wire::MessageSet& messages = read.mod.messages;
    const auto* const tile =
        messages.find_added(cli::uuid_of_name("modify-tile@msg.zillyhuhn.com"));
    REQUIRE(tile != nullptr);
    CHECK(tile->direction == wire::MessageDirection::s2c);
    CHECK(tile->fields.size() == 2);
    CHECK(tile->fields[1].optional);
    const auto* const version = messages.find_added(false, 26, Dialect::six);
    REQUIRE(version != nullptr);
    CHECK(version->name == "cl_version");
    CHECK(messages.find_added(false, 26, Dialect::seven) == nullptr);
    const auto* const key = messages.find_added(true, 300, Dialect::seven);
    REQUIRE(key != nullptr);
    CHECK(key->secrecy == wire::Secrecy::secret);
    CHECK(key->fields[1].type == wire::FieldType::raw);
    CHECK(key->fields[2].type == wire::FieldType::array);
    CHECK(key->fields[2].count == wire::MessageField::kUntilEnd);
}

TEST_CASE("an invalid file is rejected with a hint") {
    struct Row {
        std::string_view name;
        std::string text;
        std::string_view what;
    };

    const auto object = [](std::string_view rest) {
        return fmt::format(R"({{"objects": [{{"name": "a", "type": 40, {}}}]}})", rest);
    };
    const auto message = [](std::string_view rest) {
        return fmt::format(R"({{"messages": [{{"name": "a", "uuid": "a@b", {}}}]}})", rest);
    };
    std::string many;
    for (int i = 0; i < 257; ++i) {
        many += fmt::format(R"({}{{"name": "o{}", "type": {}}})", i == 0 ? "" : ",", i, 100 + i);
    }
    std::string many_messages;
    for (int i = 0; i < 257; ++i) {
        many_messages +=
            fmt::format(R"({}{{"name": "m{}", "uuid": "m{}@b"}})", i == 0 ? "" : ",", i, i);
    }
    const Row rows[] = {
        {"nothing", "{}", "no 'objects' and no 'messages'"},
        {"too many objects", fmt::format(R"({{"objects": [{}]}})", many), "at most 256 objects"},
        {"too many messages", fmt::format(R"({{"messages": [{}]}})", many_messages),
         "at most 256 messages"},
        {"too many ints", object(fmt::format(R"("fields": [{}])", object_with_fields(256))),
         "at most 255 ints"},
        {"a known count that does not fit",
         fmt::format(R"({{"objects": [{{"type": 11, "fields": [{},{{"name": "skin"}}]}}]}})",
                     object_with_fields(250)),
         "'count'"},
        {"two of one name",
         R"({"objects": [{"name": "a", "type": 40}, {"name": "a", "type": 41}]})",
         "the name 'a' is that of another object"},
        {"a known one's name", R"({"objects": [{"name": "character", "type": 40}]})",
         "the name 'character' is that of another object"},
        {"one type twice", R"({"objects": [{"type": 4}, {"name": "b", "type": 4}]})",
         "is the same as object 0"},
        {"one UUID twice",
         R"({"objects": [{"name": "a", "uuid": "a@b"}, {"name": "c", "uuid": "a@b"}]})",
         "is the same as object 0"},
        {"the type of descriptors", R"({"objects": [{"name": "a", "type": 0}]})",
         "'type' must be a number from 1 to 16383"},
        {"a type that stands for UUIDs", R"({"objects": [{"name": "a", "type": 32767}]})",
         "'type' must be a number from 1 to 16383"},
        {"a UUID that is too short", R"({"objects": [{"name": "a", "uuid": "0d2c"}]})",
         "'0d2c' is not a UUID (32 hexadecimal digits), nor the name of one"},
        {"a UUID with a letter",
         R"({"objects": [{"name": "a", "uuid": "0d2c5a3e-6a0f-3b6f-9d2e-6d1f0c8b7a5g"}]})",
         "is not a UUID"},
        {"a name of a UUID that cannot be", R"({"objects": [{"name": "a", "uuid": "a@b\n"}]})",
         "not the name of a UUID"},
        {"a protocol for a UUID",
         R"({"objects": [{"name": "a", "uuid": "a@b", "protocol": "0.7"}]})",
         "'protocol' is only for numbers"},
        {"another protocol", object(R"("protocol": "0.8")"), "must be one of 0.6, 0.7"},
        {"an agreed size of a UUID",
         R"({"objects": [{"name": "a", "uuid": "a@b", "agreed_size": true}]})",
         "only for numbers below 64"},
        {"an agreed size of nothing", object(R"("agreed_size": true)"), "needs 'fields'"},
        {"a position that is a text",
         object(R"("fields": [{"name": "x", "kind": "string"}], "position": {"x": "x", "y": "x"})"),
         "must be a single int"},
        {"a client that is no field", object(R"("client": "id")"),
         "client: there is no field 'id'"},
        {"two kinds of client",
         object(R"("fields": [{"name": "c"}], "client": "c", "id_is_client": true)"),
         "either 'client' (a field) or 'id_is_client'"},
        {"a viewer's field that is none", object(R"("per_viewer": ["x"])"),
         "names of the object's fields"},
        {"a viewer's number", object(R"("per_viewer": 5)"), "must be true, or a list of fields"},
        {"a value of 33 bits", object(R"("fields": [{"name": "x", "names": {"4294967296": "b"}}])"),
         "not a number of 32 bits"},
        {"flags without names", object(R"("fields": [{"name": "x", "flags": true}])"),
         "'flags' needs 'names'"},
        {"names of a tick",
         object(R"("fields": [{"name": "x", "kind": "tick", "names": {"1": "b"}}])"),
         "only a single int"},
        {"a message of no kind", R"({"messages": [{"name": "a"}]})", "either 'number' or 'uuid'"},
        {"a message that is read", R"({"messages": [{"name": "a", "number": 3}]})",
         "twscope itself reads the message"},
        {"a known UUID", R"({"messages": [{"name": "a", "uuid": "yourvote@netmsg.ddnet.org"}]})",
         "twscope itself reads the message"},
        {"a system message that is read",
         R"({"messages": [{"name": "a", "number": 1, "system": true}]})",
         "twscope itself reads the message"},
        {"a known message's name", R"({"messages": [{"name": "sv_chat", "uuid": "a@b"}]})",
         "the name 'sv_chat' is that of another message"},
        {"one message twice",
         R"({"messages": [{"name": "a", "uuid": "a@b"}, {"name": "c", "uuid": "a@b"}]})",
         "is the same as message 0"},
        {"from nobody", message(R"("from": "me")"), "must be one of both, server, client"},
        {"a field after the rest",
         message(R"("fields": [{"name": "x", "kind": "rest"}, {"name": "y"}])"),
         "nothing can follow 'x'"},
        {"a field after an optional one",
         message(R"("fields": [{"name": "x", "optional": true}, {"name": "y"}])"),
         "must be optional, too"},
        {"bytes of unknown length", message(R"("fields": [{"name": "x", "kind": "bytes"}])"),
         "bytes need an int directly before them"},
        {"a field's kind", message(R"("fields": [{"name": "x", "kind": "float"}])"),
         "'kind' must be one of int, bool"},
        {"two fields of one name", message(R"("fields": [{"name": "x"}, {"name": "x"}])"),
         "already has a field 'x'"},
        {"too many fields", message(fmt::format(R"("fields": [{}])", object_with_fields(256))),
         "at most 255 fields"},
        {"deep brackets", std::string(10'000, '['), "expected"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const ReadObjectsFile read{row.text};
        CAPTURE(read.complaint);
        CHECK(contains(read.complaint, row.what));
        CHECK(read.complaint.find("--objects ") == 0);
    }
}

TEST_CASE("the descriptions shipped with twscope agree with the sources of the mods") {
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator{TW_MODS}) {
        CAPTURE(entry.path().string());
        wire::ModDescription mod;
        CHECK_NOTHROW(cli::read_objects_file(entry.path().string(), mod));
        CHECK(mod.objects.custom().size() + mod.messages.custom().size() > 0);
        ++files;
    }
    CHECK(files == 4);
    wire::ModDescription infclass;
    cli::read_objects_file(TW_MODS "/infclass.json", infclass);
    const ObjectSpec* const thing = infclass.objects.find(cli::uuid_of_name("object@infclass"));
    REQUIRE(thing != nullptr);
    CHECK(thing->size == 11);
    CHECK(thing->position->x == 2);
    CHECK(thing->client->field == 1);
    CHECK(infclass.objects.sizes(Dialect::six) == snapshot::kAgreedSizes);
    CHECK(find_field(*infclass.objects.find(6, Dialect::six), "round_start_tick")->merge ==
          FieldMerge::per_viewer);
    wire::ModDescription ddrace;
    cli::read_objects_file(TW_MODS "/f-ddrace.json", ddrace);
    CHECK(ddrace.objects.sizes(Dialect::seven) == snapshot::kSevenAgreedSizes);
    CHECK(ddrace.objects.find(10, Dialect::seven)->position->x == 1);
}

} // namespace tw::test
