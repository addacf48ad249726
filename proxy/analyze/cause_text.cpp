#include "proxy/analyze/explanation.h"
#include "proxy/record/json.h"
#include "proxy/record/terminal_text.h"

#include <array>
#include <vector>

#include <fmt/format.h>

namespace tw::analyze {

namespace {

/// Tells users where to look for the cause of a finding. The first row with the finding's id and
/// name applies; an id that ends with a dot matches a family, and an empty name any name.
struct CauseHint {
    std::string_view id;
    std::string_view name;
    std::string_view text;
};

constexpr auto kCauseHints = std::to_array<CauseHint>({
    {"snapshot.crc_mismatch", "duplicate_update",
     "Two items had the same type and id in one tick. Check where items of this type are created "
     "(SnapNewItem): does each entity use its own id (SnapNewId), and is the client's id used for "
     "nothing else?"},
    {"snapshot.duplicate_update", "",
     "Two items had the same type and id in one tick. Check where items of this type are created "
     "(SnapNewItem): does each entity use its own id (SnapNewId)?"},
    {"snapshot.crc_mismatch", "odd_delta",
     "The server's own base differs from what it sent: an id that was freed (SnapFreeId) and "
     "reused while an entity still had it, or items with the same key."},
    {"snapshot.crc_mismatch", "damaged_checksum",
     "The engine writes the checksum, not the game: look for damage between the server and here."},
    {"snapshot.crc_mismatch", "",
     "Search the server's code for what writes to items after the snapshot is built. If nothing "
     "does, the snapshot was damaged on its way, or an object has another size than in 0.6: see "
     "what decode reports about sizes in a capture of the join."},
    {"snapshot.size_differs", "",
     "The object's definition (datasrc/network.py) has other fields than in 0.6. Clients of 0.6 "
     "hard-code the sizes of types 1 to 20: put new fields into your own object with a UUID."},
    {"snapshot.size_change", "",
     "One type and id was sent with two sizes. Look for an id reused by another kind of entity, "
     "and for SnapNewItem with a varying size."},
    {"snapshot.too_many_items", "",
     "More than 1024 items. Check what is sent to clients that cannot see it (NetworkClipped)."},
    {"snapshot.budget", "",
     "Look for entities of this type that are created and never destroyed, and for those sent to "
     "clients that cannot see them (NetworkClipped)."},
    {"snapshot.item_cap", "", "Check what is sent to clients that cannot see it (NetworkClipped)."},
    {"snapshot.unknown_base", "",
     "Nothing in the server: what is missing came earlier, or was rejected. See the lines above."},
    {"snapshot.missing_descriptor", "",
     "Nothing to mend if only the first snapshot with a type lacks it: DDNet 18.3 and later send "
     "it."},
    {"snapshot.client_stalled", "",
     "The name gives the cause, the detail its evidence. lost and late: look at the network "
     "between server and twscope; lost_behind: between twscope and the client. server_silent: look "
     "at what the server did at that time, and at its CPU. unacknowledged and client_silent: look "
     "at the client. rejected and unknown_base: see the findings above it."},
    {"snapshot.", "",
     "An object with a size other than agreed misaligns everything after it: compare the object "
     "definitions with 0.6, and see what decode reports about sizes in a capture of the join."},
});

} // namespace

std::string_view find_cause_hint(std::string_view id, std::string_view name) {
    for (const CauseHint& each : kCauseHints) {
        if ((each.id.ends_with('.') ? id.starts_with(each.id) : id == each.id) &&
            (each.name.empty() || each.name == name)) {
            return each.text;
        }
    }
    return {};
}

std::string size_cause_text(const Explanation& story) {
    if (story.causing_sizes.empty()) {
        return {};
    }
    const std::size_t others = story.num_other_resized_sessions;
    std::string text = fmt::format(
        "Cause: an object of another size than agreed ({} session {}{})\n",
        others == 0 ? "seen in" : "counted in", story.session,
        others == 0 ? "" : "; also seen in " + record::count_with_noun(others, "other session[s]"));
    for (const SizeDifference& each : story.causing_sizes) {
        text += fmt::format("  {}\n", each.text);
    }
    return text + "  Clients that do not know this size drop the snapshots.\n\n";
}

std::string size_change_text(const Explanation& story) {
    std::vector<std::string> objects;
    bool has_new_fields = false;
    for (const SizeDifference& each : story.causing_sizes) {
        objects.push_back(
            fmt::format("{} {}", each.object, record::count_with_noun(each.agreed_ints, "int[s]")));
        has_new_fields = has_new_fields || each.actual_ints > each.agreed_ints;
    }
    return objects.empty()
               ? std::string{}
               : fmt::format(
                     "Either give {} again{}: all clients then play. Or keep the size, if "
                     "only your own clients play, built with the same datasrc/network.py, and read "
                     "the traffic with an objects file.",
                     fmt::join(objects, ", "),
                     has_new_fields ? ", and move the new fields into an object of your "
                                      "own with a UUID, which may have any size"
                                    : "");
}

std::string first_snapshot_text(const Explanation& story) {
    if (record::text_of(story.finding, "id") != "snapshot.size_differs") {
        return {};
    }
    const std::int64_t first = story.datagram_tick();
    return fmt::format("twscope became certain of the size at tick {}. {}\n", story.finding_tick(),
                       first == story.finding_tick()
                           ? "The object was sent before."
                           : fmt::format("It first read the size in the snapshot of tick {}{}",
                                         first, story.datagrams.empty() ? "." : ":"));
}

} // namespace tw::analyze
