#pragma once

#include "proxy/record/records.h"
#include "proxy/record/roster.h"
#include "proxy/world/view.h"
#include "snapshot/objects.h"
#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tw::world {

/// Assigns a unique id to each player name of a server. A name keeps its id in later ticks until
/// the id is known to belong to another name.
class PlayerNameIds {
  public:
    /// The first made-up id. Made-up ids are for players without a known id. No server uses such
    /// high ids.
    static constexpr std::uint16_t kFirstMadeUpId = 128;
    /// The maximum number of names. A further name replaces the name that was not seen for the
    /// longest time.
    static constexpr std::size_t kMaxNames = 1024;

    PlayerNameIds() = default;
    PlayerNameIds(const PlayerNameIds&) = delete;
    PlayerNameIds& operator=(const PlayerNameIds&) = delete;
    ~PlayerNameIds() = default;

    /// Forgets all names and ids. Called when the server restarted or changed the map.
    void reset();

    /// Begins a tick. All ids assigned in one tick are different.
    void begin_tick() { ++current_tick_; }

    /// Records that the server uses this id for the name. Another name with this id loses the id.
    void learn_id(const std::string& name, std::uint16_t id);

    /// Returns whether learn_id() was called for the name in this tick.
    [[nodiscard]] bool was_id_learned_for(const std::string& name) const;
    /// Returns whether learn_id() was called with this id in this tick.
    [[nodiscard]] bool was_id_learned(std::uint16_t id) const;

    /// Returns the id that was most recently learned for the name; nullopt if none was learned.
    [[nodiscard]] std::optional<std::uint16_t> last_learned_id(const std::string& name) const;
    /// Makes the name keep its most recently learned id in this tick. A later assign_id_if_free()
    /// for the name has no effect in this tick.
    void reuse_last_learned_id(const std::string& name);

    /// Gives an id from a view to a name whose server id is unknown. Has no effect if the name or
    /// the id is already assigned in this tick.
    void assign_id_if_free(const std::string& name, std::uint16_t id);

    struct AssignedId {
        std::uint16_t id = 0;
        record::IdKind kind = record::IdKind::server;
    };

    /// Returns the name's previous id, or assigns a free id; nullopt if the tick has more than
    /// kMaxNames names.
    [[nodiscard]] std::optional<AssignedId> assign_id(const std::string& name);

  private:
    struct NameEntry {
        std::uint16_t id = 0;
        record::IdKind kind = record::IdKind::server;
        std::uint64_t last_seen_tick = 0; ///< the last tick in which the name had this id
        /// The last tick in which the server was known to use this id.
        std::uint64_t last_learned_tick = 0;
    };

    using Names = std::map<std::string, NameEntry>;
    using NameIterator = Names::iterator;

    /// Made-up ids stay below this limit if possible, because a roster has only this many entries.
    static constexpr std::size_t kMadeUpIdLimit = record::Roster::kMaxPlayers;

    void forget_name(NameIterator known);
    /// If there are kMaxNames names, forgets the one that was not seen for the longest time.
    /// Returns false if all names were seen in this tick.
    [[nodiscard]] bool make_room_for_name();
    [[nodiscard]] std::uint16_t generate_id();
    NameIterator add_name(const std::string& name, std::uint16_t id, record::IdKind kind);
    /// Gives the id to the name, and takes it from any other name. Returns names_.end() if there is
    /// no room for the name.
    NameIterator give_id(const std::string& name, std::uint16_t id, record::IdKind kind);

    Names names_;
    std::map<std::uint16_t, NameIterator> names_by_id_;
    std::uint64_t current_tick_ = 0;
};

/// Maps the client numbers of a translated view to client ids that are equal in all views. A number
/// that belongs to no player is mapped to nullopt.
using ClientIds = std::map<std::uint16_t, std::optional<std::uint16_t>>;

/// Returns the client id for a number of a translated view; nullopt if no player has the number.
[[nodiscard]] std::optional<std::uint16_t> find_client_id(const ClientIds& ids,
                                                          std::int32_t number);

/// Gives each player the same id in all translated views (sessions' snapshots with changed client
/// ids). If a server has more players than a client supports, it sends the client only some
/// players, under changing numbers. Players are identified by their names, which are unique on a
/// server. A player's id is the first available of:
///
/// 1. the server's id, from an untranslated view or as sent to the player's own client;
/// 2. the number that is the same in all views that seem to use the server's ids;
/// 3. the number in the view of the player's own client;
/// 4. the player's previous id;
/// 5. an id that no server uses.
class IdRestorer {
  public:
    /// Forgets all players and ids. Called when the server restarted or changed the map.
    void reset();

    /// Replaces the items and rosters of a tick's translated views by copies with the players' ids.
    /// The copies are valid until the next call.
    void restore_ids(std::vector<View>& views, const record::ItemTypes& types);

    /// Returns the client ids of the tick's translated view with this index; null for an
    /// untranslated view.
    [[nodiscard]] const ClientIds* client_ids_of_view(std::size_t view) const {
        return view < numberings_of_views_.size() && !numberings_of_views_[view]->ids.empty()
                   ? &numberings_of_views_[view]->ids
                   : nullptr;
    }

    /// Returns where the client ids come from, as in record::ItemSightings::id_kinds.
    [[nodiscard]] std::span<const record::IdKind> id_kinds() const { return id_kinds_; }

    [[nodiscard]] std::span<const record::RenumberedClient> renumbered_clients() const {
        return renumbered_clients_;
    }

    /// Frees the copies that restore_ids() made.
    void free_rewritten_views() { rewritten_views_.clear(); }

    /// Returns the memory use of the remembered numberings (see ClientNumbering), in bytes.
    [[nodiscard]] std::size_t memory_bytes() const { return numbering_bytes_; }

    /// Forgets which numbers the views use for which players, but not the ids of names.
    void forget_client_numberings();

  private:
    static constexpr std::size_t kNumberingBytes = 256;
    /// The estimated memory of a player in bytes, including the entry in ClientNumbering::ids.
    static constexpr std::size_t kPlayerBytes = 128;

    /// A session's numbering is forgotten if the session had no view for more than this many ticks.
    static constexpr std::uint64_t kRememberedTicks = 50;

    struct Player {
        std::uint16_t number = 0;
        std::string name;
    };

    /// The client numbers in a session's latest view, and the players with these numbers.
    struct ClientNumbering {
        /// The view's ints from which the other members were read. A later view with equal ints is
        /// not read again.
        std::vector<std::int32_t> source_ints{};
        bool is_translated = false;
        std::optional<std::uint16_t> own_number{}; ///< client number of the viewer's player
        /// The server's id of the viewer's player, from items about the viewer.
        std::optional<std::uint16_t> server_id{};
        std::vector<Player> players{}; ///< sorted by client number
        std::string own_name{};        ///< name of the viewer's player; empty if there is none
        bool has_placeholder = false;  ///< one number stands for all players without a number
        std::uint64_t last_tick = 0;   ///< value of num_ticks_ at the session's last view
        ClientIds ids{};               ///< client id of each number; empty for an untranslated view
    };

    [[nodiscard]] bool read_numbering(const View& view, const record::ItemTypes& types,
                                      ClientNumbering& into);
    [[nodiscard]] static std::size_t memory_bytes_of(const ClientNumbering& numbering);
    [[nodiscard]] bool forget_absent_sessions();
    void assign_ids();
    void learn_ids();
    void assign_ids_from_agreed_numbers();
    void assign_ids_from_own_numbers();
    [[nodiscard]] bool uses_server_ids(const ClientNumbering& numbering) const;
    void collect_renumbered_clients();
    /// Calls `use(numbering)` for each session with a view in this tick.
    template <typename Use>
    void for_each_present_session(const Use& use);

    PlayerNameIds name_ids_;
    std::map<std::uint32_t, ClientNumbering> numberings_; ///< by session
    /// The numberings of the current tick's views, in the order of the views.
    std::vector<const ClientNumbering*> numberings_of_views_;
    std::vector<std::uint32_t> sessions_present_; ///< sessions with a view in the previous tick
    std::size_t numbering_bytes_ = 0;             ///< memory use of numberings_
    std::uint64_t num_ticks_ = 0;
    /// True if the server puts the client's own number, not the server's id, into the items about
    /// the viewer. This is the case if the clients of two players received the same value.
    bool server_id_is_number_ = false;
    std::vector<std::int32_t> numbering_source_; ///< a buffer; a member only to reuse its memory
    std::vector<record::IdKind> id_kinds_;
    std::vector<record::RenumberedClient> renumbered_clients_;
    std::vector<ViewCopy> rewritten_views_;
};

} // namespace tw::world
