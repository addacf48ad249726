#pragma once

#include "proxy/record/records.h"
#include "proxy/record/roster.h"
#include "proxy/world/open_world.h"
#include "snapshot/objects.h"
#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tw::world {

/// Assigns ids to the players of a world by name; ids are unique. A name keeps its id in later
/// ticks until the id is known to belong to another name.
class NameIds {
  public:
    /// Players without a known id get ids from here on, which no server uses.
    static constexpr std::uint16_t kFirstMadeUp = 128;
    /// The limit of names. If it is exceeded, the name not seen for the longest time is forgotten.
    static constexpr std::size_t kMaxNames = 1024;

    NameIds() = default;
    NameIds(const NameIds&) = delete;
    NameIds& operator=(const NameIds&) = delete;
    ~NameIds() = default;

    /// Starts a new run of the server.
    void reset();

    /// Begins a tick. All ids assigned in one tick are different.
    void begin_tick() { ++tick_; }

    /// Notes that the server uses this id for the name. A previous name with this id loses it.
    void learn_id(const std::string& name, std::uint16_t id);

    /// Whether an id was learned for the name in this tick; whether this id was learned in this tick.
    [[nodiscard]] bool was_learned(const std::string& name) const;
    [[nodiscard]] bool was_learned(std::uint16_t id) const;

    /// Returns the server's id of a name, as learned last; nullopt if it was never learned.
    [[nodiscard]] std::optional<std::uint16_t> last_learned_id(const std::string& name) const;
    /// Makes a name keep its learned id in this tick, whatever ids are offered later.
    void keep_learned(const std::string& name);

    /// Offers an id from a view for a name whose server id is unknown. Has no effect if the name
    /// already has an id in this tick, or if another name has this id.
    void offer_id(const std::string& name, std::uint16_t id);

    struct AssignedId {
        std::uint16_t id = 0;
        record::IdKind kind = record::IdKind::server;
    };

    /// Returns the name's last id, or a free one; nullopt if the tick has more than kMaxNames
    /// names.
    [[nodiscard]] std::optional<AssignedId> id_of(const std::string& name);

  private:
    struct NameEntry {
        std::string name;
        std::uint16_t id = 0;
        record::IdKind kind = record::IdKind::server;
        std::uint64_t seen = 0;    ///< the last tick in which the name had this id
        std::uint64_t learned = 0; ///< the last tick in which the server was known to use this id
    };

    using Entry = std::list<NameEntry>::iterator;

    /// The usual number of made-up ids, because a roster has this many entries.
    static constexpr std::size_t kFewMadeUp = record::Roster::kMaxPlayers;

    void forget_name(Entry known);
    /// Marks the entry as the one seen most recently.
    void mark_seen(Entry known);
    /// Forgets an entry if there are kMaxNames. Returns false if all entries were seen in this
    /// tick.
    [[nodiscard]] bool make_room();
    [[nodiscard]] std::uint16_t make_up_id();
    Entry add_name(const std::string& name, std::uint16_t id, record::IdKind kind);

    std::list<NameEntry> known_; ///< sorted: the entry not seen for the longest time is first
    std::map<std::string, Entry> by_name_;
    std::map<std::uint16_t, Entry> by_id_;
    std::uint64_t tick_ = 0;
};

/// Finds stand-ins. If a client cannot show a player because it has no free client id, the server
/// sends it a weapon at the position of the player's tee, and a laser from there in place of the
/// hook. These stand-ins have separate item ids.
class StandIns {
  public:
    /// Examines the views of a tick, before ids are rewritten.
    void find_stand_ins(std::span<const View> views, const record::TypeNames& types);

    /// Returns whether an item of a translated view is a stand-in: it is at a tee's position, and no
    /// untranslated view contains it. To be called only for views that lack players; in other
    /// views, such an item is a real laser.
    [[nodiscard]] bool is_stand_in(const snapshot::ObjectSpec& object,
                                   const snapshot::ItemView& item) const;

  private:
    using Place = std::pair<std::int32_t, std::int32_t>;
    using Entity = std::pair<snapshot::ObjectFamily, std::uint16_t>; ///< family and id

    void learn_items(const snapshot::SnapshotView& items, bool translated,
                     const record::TypeNames& types);

    std::vector<Place> tees_;   ///< positions of the tees in all views, sorted
    std::vector<Entity> known_; ///< the items of untranslated views, sorted
};

/// Maps a view's client numbers to the world's client ids. A number is mapped to nullopt if it
/// belongs to the game and not to a client.
using ClientIds = std::map<std::uint16_t, std::optional<std::uint16_t>>;

/// Returns the world's client id for a view's number; nullopt if no player has the number.
[[nodiscard]] std::optional<std::uint16_t> find_client(const ClientIds& ids, std::int32_t number);

/// Gives each player the same id in all translated views. If a server has more players than a client
/// supports, it sends the client only some players, under changing numbers. Players are identified
/// by their names, which are unique on a server. A player's id is the first available of:
///
/// 1. the server's id, from an untranslated view or as sent to the player's own client;
/// 2. the number in those views whose numbers are the server's ids, as far as known;
/// 3. the number in the view of the player's own client;
/// 4. the player's previous id;
/// 5. an id that no server uses.
class Translation {
  public:
    /// Starts a new run of the server.
    void reset();

    /// Replaces the items and rosters of a tick's translated views by copies with the world's ids,
    /// which are valid until the next call.
    void restore_ids(std::vector<View>& views, const record::TypeNames& types);

    /// The client ids of the tick's translated view with this index; null for an untranslated view.
    [[nodiscard]] const ClientIds* ids_of(std::size_t view) const {
        return view < current_.size() && !current_[view]->ids.empty() ? &current_[view]->ids
                                                                      : nullptr;
    }

    /// The origins of the client ids, see record::SeenBy::id_kinds.
    [[nodiscard]] std::span<const record::IdKind> id_kinds() const { return id_kinds_; }

    [[nodiscard]] std::span<const record::Renumbered> renumbered() const { return renumbered_; }

    /// Frees the rewritten views.
    void release_views() { rewritten_.clear(); }

    /// Memory use of the remembered numberings, in bytes.
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

    /// Forgets the numberings of the views, but not the ids of names.
    void forget_views();

  private:
    static constexpr std::size_t kNumberingBytes = 256;
    /// Memory counted for a player in bytes, including the entry in ClientNumbering::ids.
    static constexpr std::size_t kPlayerBytes = 128;

    /// A numbering is forgotten if its session had no view for more than this many ticks.
    static constexpr std::uint64_t kRemembered = 50;

    /// A view with its ids replaced by those of the world.
    struct RewrittenView {
        snapshot::Snapshot items;
        std::vector<std::uint32_t> untold;
        record::Roster roster;
    };

    struct Player {
        std::uint16_t number = 0;
        std::string name;
    };

    /// Which client numbers a session's view uses for which players.
    struct ClientNumbering {
        std::vector<std::int32_t> read{};
        bool translated = false;
        std::optional<std::uint16_t> own{}; ///< number of the viewer's player
        /// The server's id of the viewer's player, from items about the viewer.
        std::optional<std::uint16_t> told{};
        std::vector<Player> players{}; ///< sorted by number
        std::string own_name{};        ///< name of the viewer's player; empty if there is none
        bool others = false;           ///< the view says that it lacks players
        std::uint64_t seen = 0;
        ClientIds ids{}; ///< the world's id of each number; empty for an untranslated view
    };

    [[nodiscard]] bool read_numbering(const View& view, const record::TypeNames& types,
                                      ClientNumbering& into);
    [[nodiscard]] static std::size_t bytes_of(const ClientNumbering& numbering);
    [[nodiscard]] bool forget_absent_sessions();
    void assign_ids();
    void learn_ids();
    void offer_agreed_ids();
    void offer_own_ids();
    [[nodiscard]] bool uses_server_ids(const ClientNumbering& numbering) const;
    void gather_renumbered();
    void rewrite(View& view, const ClientNumbering& numbering, const record::TypeNames& types,
                 RewrittenView& out) const;

    /// Calls `use(session, numbering)` for each session with a view in this tick.
    template <typename Use>
    void each_present(const Use& use);

    NameIds ids_;
    StandIns stand_ins_; ///< the tick's stand-ins, if a view may contain some
    std::map<std::uint32_t, ClientNumbering> numberings_; ///< by session
    std::vector<const ClientNumbering*> current_;         ///< by index of the tick's view
    std::vector<std::uint32_t> present_; ///< sessions with a view in the previous tick
    std::size_t bytes_ = 0;              ///< memory use of numberings_
    std::uint64_t ticks_ = 0;
    /// The ids in items about the viewer are not the server's ids, but the client's own numbers.
    /// Detected because several clients receive the same id.
    bool told_is_number_ = false;
    std::vector<std::int32_t> reading_; ///< a member only to reuse its memory
    std::vector<record::IdKind> id_kinds_;
    std::vector<record::Renumbered> renumbered_;
    std::vector<RewrittenView> rewritten_;
};

} // namespace tw::world
