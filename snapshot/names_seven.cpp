#include "snapshot/names_seven.h"

#include <array>

namespace tw::snapshot::names::seven {

namespace {

constexpr std::array kPickup{
    NamedValue{0, "health"},  NamedValue{1, "armor"},  NamedValue{2, "grenade"},
    NamedValue{3, "shotgun"}, NamedValue{4, "laser"},  NamedValue{5, "ninja"},
    NamedValue{6, "gun"},     NamedValue{7, "hammer"},
};

constexpr std::array kVote{
    NamedValue{0, "unknown"},    NamedValue{1, "start_op"},  NamedValue{2, "start_kick"},
    NamedValue{3, "start_spec"}, NamedValue{4, "end_abort"}, NamedValue{5, "end_pass"},
    NamedValue{6, "end_fail"},
};

constexpr std::array kChat{
    NamedValue{0, "none"},
    NamedValue{1, "all"},
    NamedValue{2, "team"},
    NamedValue{3, "whisper"},
};

constexpr std::array kGamemsg{
    NamedValue{0, "team_swap"},    NamedValue{1, "spec_invalidid"},
    NamedValue{2, "team_shuffle"}, NamedValue{3, "team_balance"},
    NamedValue{4, "ctf_drop"},     NamedValue{5, "ctf_return"},
    NamedValue{6, "team_all"},     NamedValue{7, "team_balance_victim"},
    NamedValue{8, "ctf_grab"},     NamedValue{9, "ctf_capture"},
    NamedValue{10, "game_paused"},
};

constexpr std::array kSpecMode{
    NamedValue{0, "freeview"},
    NamedValue{1, "player"},
    NamedValue{2, "flag_red"},
    NamedValue{3, "flag_blue"},
};

constexpr std::array kPlayerflag{
    NamedValue{0x1, "admin"}, NamedValue{0x2, "chatting"}, NamedValue{0x4, "scoreboard"},
    NamedValue{0x8, "ready"}, NamedValue{0x10, "dead"},    NamedValue{0x20, "watching"},
    NamedValue{0x40, "bot"},  NamedValue{0x80, "aim"},
};

constexpr std::array kGameflag{
    NamedValue{0x1, "teams"},
    NamedValue{0x2, "flags"},
    NamedValue{0x4, "survival"},
    NamedValue{0x8, "race"},
};

constexpr std::array kGamestateflag{
    NamedValue{0x1, "warmup"},   NamedValue{0x2, "suddendeath"}, NamedValue{0x4, "roundover"},
    NamedValue{0x8, "gameover"}, NamedValue{0x10, "paused"},     NamedValue{0x20, "startcountdown"},
};

constexpr std::array kCoreeventflag{
    NamedValue{0x1, "ground_jump"},        NamedValue{0x2, "air_jump"},
    NamedValue{0x4, "hook_attach_player"}, NamedValue{0x8, "hook_attach_ground"},
    NamedValue{0x10, "hook_hit_nohook"},
};

constexpr std::array kRaceflag{
    NamedValue{0x1, "hide_killmsg"},
    NamedValue{0x2, "finishmsg_as_chat"},
    NamedValue{0x4, "keep_wanted_weapon"},
};

constexpr std::array kServerinfoflag{
    NamedValue{0x1, "password"},
    NamedValue{0x2, "timescore"},
};

} // namespace

constexpr NameTable pickup{"pickup", false, kPickup};
constexpr NameTable vote{"vote", false, kVote};
constexpr NameTable chat{"chat", false, kChat};
constexpr NameTable gamemsg{"gamemsg", false, kGamemsg};
constexpr NameTable spec_mode{"spec_mode", false, kSpecMode};

constexpr NameTable playerflag{"playerflag", true, kPlayerflag};
constexpr NameTable gameflag{"gameflag", true, kGameflag};
constexpr NameTable gamestateflag{"gamestateflag", true, kGamestateflag};
constexpr NameTable coreeventflag{"coreeventflag", true, kCoreeventflag};
constexpr NameTable raceflag{"raceflag", true, kRaceflag};
constexpr NameTable serverinfoflag{"serverinfoflag", true, kServerinfoflag};

} // namespace tw::snapshot::names::seven
