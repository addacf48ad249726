
#include "proxy/world/world_messages.h"
#include "tests/support/message_builder.h"
#include "tests/support/snapshot_messages.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace tw::test {

namespace {

using snapshot::Dialect;

std::vector<std::byte> chat_message(std::int32_t client, std::string_view text,
                                    std::int32_t team = 0) {
    return message("sv_chat").number(team).number(client).string(text).bytes();
}

std::vector<std::byte> seven_chat_message(std::int32_t client, std::string_view text,
                                          std::int32_t mode = 1) {
    return message("sv_chat", Dialect::seven)
        .number(mode)
        .number(client)
        .number(-1)
        .string(text)
        .bytes();
}

std::vector<std::byte> kill_message(std::int32_t killer, std::int32_t victim,
                                    Dialect dialect = Dialect::six) {
    return message("sv_kill_msg", dialect)
        .number(killer)
        .number(victim)
        .number(4)
        .number(0)
        .bytes();
}

/// Stores the messages of each world as text: "100 sv_chat 0 3 hi".
class MessageScript final : public record::WorldMessageSink {
  public:
    explicit MessageScript(Dialect world = Dialect::six) : dialect_{world} {}

    void on_world_message(const record::WorldMessage& message) override {
        CHECK(message.payload.size() > 1);
        std::string line = fmt::format("{} {}", tick_, message.spec->name);
        for (const wire::FieldValue& value : message.values) {
            if (value.kind == wire::FieldValue::Kind::string) {
                line += ' ';
                for (const std::byte letter : value.bytes) {
                    line += static_cast<char>(letter);
                }
            } else {
                line += fmt::format(" {}", value.integer);
            }
        }
        lines.push_back(line);
    }

    void add_message(std::uint32_t session, snapshot::Tick tick,
                     const std::vector<std::byte>& payload, Dialect dialect = Dialect::six,
                     std::uint32_t run = 1) {
        messages.add_message(session, {.map_run = run, .tick = tick, .dialect = dialect}, 0,
                             payload);
    }

    /// Writes a world with views of these sessions.
    void write_world(snapshot::Tick tick, const std::vector<std::uint32_t>& sessions,
                     std::uint32_t run = 1) {
        for (const std::uint32_t session : sessions) {
            const auto known = ids.find(session);
            messages.add_viewing_session(session, known == ids.end() ? nullptr : &known->second);
        }
        tick_ = tick;
        messages.pass_on_messages(
            {.server = "a:1", .map_run = run, .tick = tick, .dialect = dialect_}, *this);
    }

    world::WorldMessages messages;
    std::map<std::uint32_t, world::ClientIds>
        ids; ///< for sessions whose numbers are not the server's ids
    Lines lines;

  private:
    Dialect dialect_;
    snapshot::Tick tick_ = 0;
};

} // namespace

TEST_CASE("only messages to all players are passed on") {
    struct Row {
        std::string_view name;
        std::vector<std::byte> payload;
        bool by_one; ///< passed on if only one of two sessions received it
        bool by_two;
    };

    const Row rows[] = {
        {"chat", chat_message(3, "hi"), true, true},
        {"team chat", chat_message(3, "hi", 1), false, false},
        {"a whisper that was sent", chat_message(3, "hi", 2), false, false},
        {"a whisper that was received", chat_message(3, "hi", 3), false, false},
        {"a line of the server", chat_message(-1, "'bob' entered"), false, true},
        {"a code in one", chat_message(-1, "load it with /load abc"), false, false},
        {"a kill", kill_message(1, 2), true, true},
        {"an emoticon", message("sv_emoticon").number(1).number(2).bytes(), true, true},
        {"a finish",
         message("sv_race_finish").number(1).number(2000).number(0).number(1).number(0).bytes(),
         true, true},
        {"a kill of a team", message("sv_kill_msg_team").number(4).number(1).bytes(), true, true},
        {"a broadcast", message("sv_broadcast").string("five minutes").bytes(), false, true},
        {"the message of the day", message("sv_motd").string("hello").bytes(), false, false},
        {"a sound", message("sv_sound_global").number(3).bytes(), false, false},
        {"the state of a vote",
         message("sv_vote_status").number(1).number(2).number(3).number(6).bytes(), false, false},
        {"a weapon", message("sv_weapon_pickup").number(3).bytes(), false, false},
        {"a system message", {std::byte{5}, std::byte{1}}, false, false},
        {"a cut one", {chat_message(3, "hi").front(), std::byte{0}}, false, false},
        {"a client beyond all", chat_message(200, "hi"), false, false},
        {"nothing", {}, false, false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        for (const bool both : {false, true}) {
            CAPTURE(both);
            MessageScript stage;
            stage.add_message(1, 100, row.payload);
            if (both) {
                stage.add_message(2, 100, row.payload);
            }
            stage.write_world(100, {1, 2});
            CHECK(stage.lines.size() == ((both ? row.by_two : row.by_one) ? 1 : 0));
        }
    }
}

TEST_CASE("a message is passed on as often as one session received it") {
    struct Row {
        std::string_view name;
        std::vector<std::pair<std::uint32_t, snapshot::Tick>> told; ///< each session with its tick
        Lines lines;
    };

    const std::string hi = "sv_chat 0 3 hi";
    const auto at = [&](std::initializer_list<int> ticks) {
        Lines lines;
        for (const int tick : ticks) {
            lines.push_back(fmt::format("{} {}", tick, hi));
        }
        return lines;
    };
    const Row rows[] = {
        {"once, to one", {{1, 100}}, at({100})},
        {"once, to all", {{1, 100}, {2, 100}, {3, 100}}, at({100})},
        {"one hears it late", {{1, 100}, {2, 104}, {3, 140}}, at({100})},
        {"twice", {{1, 100}, {1, 100}, {2, 100}, {2, 100}}, at({100, 100})},
        {"twice, and one hears both late",
         {{1, 100}, {2, 110}, {2, 110}, {1, 106}, {3, 120}, {3, 120}},
         at({100, 106})},
        {"again after the window", {{1, 100}, {2, 100}, {1, 252}, {2, 252}}, at({100, 252})},
        {"three times, and one came in between",
         {{1, 100}, {1, 110}, {2, 110}, {1, 120}, {2, 120}},
         at({100, 110, 120})},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        MessageScript stage;
        for (const auto& [session, tick] : row.told) {
            stage.add_message(session, tick, chat_message(3, "hi"));
        }
        for (snapshot::Tick tick = 100; tick <= 260; tick += 2) {
            stage.write_world(tick, {1, 2, 3});
        }
        CHECK(stage.lines == row.lines);
        for (snapshot::Tick tick = 262; tick <= 420; tick += 2) {
            stage.write_world(tick, {1, 2, 3});
        }
        CHECK(stage.messages.memory_bytes() == 0);
    }
}

TEST_CASE("the server's own messages need a second recipient unless one session plays alone") {
    MessageScript stage;
    stage.add_message(1, 100, chat_message(-1, "welcome"));
    stage.write_world(100, {1});
    stage.add_message(1, 102, chat_message(-1, "for you"));
    stage.add_message(1, 102, chat_message(-1, "for all"));
    stage.write_world(102, {1, 2});
    stage.add_message(2, 110, chat_message(-1, "for all"));
    stage.write_world(110, {1, 2});
    stage.messages.remove_session(2);
    stage.add_message(1, 112, chat_message(-1, "alone again"));
    stage.write_world(112, {1});
    CHECK(stage.lines == Lines{"100 sv_chat 0 -1 welcome", "110 sv_chat 0 -1 for all",
                               "112 sv_chat 0 -1 alone again"});
}

TEST_CASE("messages wait for their tick's world, or follow the next one") {
    MessageScript stage;
    stage.add_message(1, 104, kill_message(1, 2));
    stage.write_world(102, {1});
    CHECK(stage.lines.empty());
    stage.write_world(104, {1});
    stage.add_message(1, 102, kill_message(3, 4));
    stage.write_world(106, {1});
    CHECK(stage.lines == Lines{"104 sv_kill_msg 1 2 4 0", "106 sv_kill_msg 3 4 4 0"});
}

TEST_CASE("messages dropped to free memory are counted as lost") {
    MessageScript stage;
    stage.add_message(1, 100, kill_message(1, 2));
    stage.write_world(100, {1});
    stage.add_message(1, 104, kill_message(1, 3));
    stage.add_message(2, 104, kill_message(1, 3));
    stage.messages.clear();
    CHECK(stage.messages.memory_bytes() == 0);
    CHECK(stage.messages.lost_message_count() == 2);
    stage.write_world(104, {1, 2});
    CHECK(stage.lines == Lines{"100 sv_kill_msg 1 2 4 0"});
}

TEST_CASE("the last messages of a closed session are passed on") {
    MessageScript stage;
    stage.ids[1] = {{0, 20}, {1, 33}};
    stage.write_world(100, {1});
    stage.add_message(1, 104, kill_message(0, 1));
    stage.messages.remove_session(1);
    stage.write_world(102, {});
    stage.write_world(104, {});
    CHECK(stage.lines == Lines{"104 sv_kill_msg 20 33 4 0"});
    stage.add_message(1, 104,
                      kill_message(1, 0)); // the session has left, so its message is ignored
    stage.write_world(106, {});
    CHECK(stage.lines.size() == 1);
}

TEST_CASE("translated client ids in messages are restored") {
    for (const bool first : {false, true}) {
        CAPTURE(first);
        MessageScript stage;
        stage.ids[2] = {{0, 20}, {1, 33}, {15, std::nullopt}};
        const auto own = [&] {
            stage.add_message(1, 100, kill_message(20, 33));
            stage.add_message(1, 100, chat_message(20, "hi"));
            stage.add_message(1, 100, chat_message(40, "far away"));
        };
        if (first) {
            own();
        }
        stage.add_message(2, 100, kill_message(0, 1));
        stage.add_message(2, 100, chat_message(0, "hi"));
        stage.add_message(2, 100, chat_message(15, "who is far: far away")); // the nameless speaker
        stage.add_message(2, 100, chat_message(9, "whoever that is"));
        stage.add_message(2, 100, chat_message(-1, "for all"));
        if (!first) {
            own();
        }
        stage.add_message(1, 100, chat_message(-1, "for all"));
        stage.write_world(100, {1, 2});
        std::ranges::sort(stage.lines);
        CHECK(stage.lines == Lines{"100 sv_chat 0 -1 for all", "100 sv_chat 0 20 hi",
                                   "100 sv_chat 0 40 far away", "100 sv_kill_msg 20 33 4 0"});
    }
}

TEST_CASE("0.7 messages are converted for a 0.6 world") {
    MessageScript stage;
    stage.add_message(1, 100, chat_message(3, "hi"));
    stage.add_message(2, 100, seven_chat_message(3, "hi"), Dialect::seven);
    stage.add_message(2, 100, seven_chat_message(3, "to my team", 2), Dialect::seven);
    stage.add_message(2, 100, seven_chat_message(3, "psst", 3), Dialect::seven);
    stage.add_message(2, 100, seven_chat_message(4, "first"), Dialect::seven);
    stage.add_message(1, 100, kill_message(1, 2));
    stage.add_message(2, 100, kill_message(1, 2, Dialect::seven), Dialect::seven);
    stage.add_message(2, 100, kill_message(-1, 2, Dialect::seven),
                      Dialect::seven); // 0.6 has no such killer
    stage.add_message(2, 100, message("sv_game_msg", Dialect::seven).number(8).number(0).bytes(),
                      Dialect::seven);
    stage.write_world(100, {1, 2});
    CHECK(stage.lines ==
          Lines{"100 sv_chat 0 3 hi", "100 sv_chat 0 4 first", "100 sv_kill_msg 1 2 4 0"});
}

TEST_CASE("messages of a 0.7 world are not converted") {
    MessageScript stage{Dialect::seven};
    stage.add_message(1, 100, seven_chat_message(3, "hi"), Dialect::seven);
    stage.add_message(1, 100, kill_message(-1, 2, Dialect::seven), Dialect::seven);
    stage.add_message(1, 100, message("sv_game_msg", Dialect::seven).number(8).number(1).bytes(),
                      Dialect::seven);
    stage.write_world(100, {1});
    CHECK(stage.lines ==
          Lines{"100 sv_chat 1 3 -1 hi", "100 sv_kill_msg -1 2 4 0", "100 sv_game_msg 8 0 1 0"});
}

TEST_CASE("messages of the previous map run are not passed on") {
    MessageScript stage;
    stage.add_message(1, 5000, chat_message(3, "late"));
    stage.write_world(4998, {1});
    stage.messages.begin_map_run();
    stage.add_message(1, 10, chat_message(3, "hi"), Dialect::six, 2);
    stage.write_world(10, {1}, 2);
    CHECK(stage.lines == Lines{"10 sv_chat 0 3 hi"});
    CHECK(stage.messages.memory_bytes() > 0);
    stage.messages.clear();
    CHECK(stage.messages.memory_bytes() == 0);
}

TEST_CASE("the memory for messages is limited, and lost messages are counted") {
    MessageScript stage;
    std::uint64_t said = 0;
    for (snapshot::Tick tick = 100; tick < 130; tick += 2) {
        for (int i = 0; i < 1000; ++i, ++said) {
            stage.add_message(1, tick, chat_message(3, fmt::format("{}", said)));
        }
        stage.write_world(tick, {1});
        CHECK(stage.messages.memory_bytes() <= world::WorldMessages::kMaxBytes);
    }
    CHECK(stage.messages.lost_message_count() > 0);
    CHECK(stage.lines.size() + stage.messages.lost_message_count() == said);
}

} // namespace tw::test
