#include "proxy/sink/demo_seven.h"

#include "proxy/wire/text.h"
#include "snapshot/objects.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

namespace tw::sink {

namespace {

using snapshot::FieldSpec;
using snapshot::ItemKey;
using wire::FieldValue;
using Values = std::span<const FieldValue>;
using Ints = std::span<std::int32_t>;

std::optional<std::int64_t> integer_in(Values values, std::string_view name) {
    const auto found = std::ranges::find(values, name, &FieldValue::name);
    return found == values.end() ? std::nullopt : std::optional{found->integer};
}

/// The client a message is about; nothing for one that 0.7 cannot name.
std::optional<std::uint16_t> client_in(Values values) {
    const auto id = integer_in(values, "client_id");
    const bool valid =
        id && *id >= 0 && *id < static_cast<std::int64_t>(record::Roster::kMaxClients);
    return valid ? std::optional{static_cast<std::uint16_t>(*id)} : std::nullopt;
}

void put_value(const FieldValue& value, Ints ints) {
    if (value.kind == FieldValue::Kind::string) {
        snapshot::encode_int_string(
            wire::sanitize_string(value.bytes, wire::kCleanAllControl | wire::kSkipBlanks), ints);
    } else {
        ints.front() = static_cast<std::int32_t>(value.integer);
    }
}

/// Puts the values of a message where the fields of these names stand in an item.
void put_values(Values values, std::span<const FieldSpec> fields, Ints ints) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto field = std::ranges::find(fields, values[i].name, &FieldSpec::name);
        if (field == fields.end() || std::size_t{field->offset} + field->count > ints.size()) {
            continue;
        }
        const Ints room = ints.subspan(field->offset, field->count);
        if (values[i].kind != FieldValue::Kind::array_begin) {
            put_value(values[i], room);
            continue;
        }
        const auto end =
            std::ranges::find(values.subspan(i), FieldValue::Kind::end, &FieldValue::kind);
        const auto count = static_cast<std::size_t>(end - values.begin()) - i - 1;
        for (std::size_t k = 0; k < count && count <= room.size(); ++k) {
            const std::size_t each = room.size() / count;
            put_value(values[i + 1 + k], room.subspan(k * each, each));
        }
        i += count;
    }
}

std::span<const FieldSpec> fields_of(std::uint16_t type) {
    const auto* const object = snapshot::find_object(type, snapshot::Dialect::seven);
    return object == nullptr ? std::span<const FieldSpec>{} : object->fields;
}

} // namespace

SevenDemoItems::ClientInfo SevenDemoItems::unknown_client() {
    ClientInfo info{};
    const Ints ints{info};
    for (const FieldSpec& field : fields_of(kClientInfo)) {
        if (field.kind == snapshot::FieldKind::int_string) { // which 0 is none of
            snapshot::encode_int_string({}, ints.subspan(field.offset, field.count));
        }
    }
    for (std::size_t part = 0; part < kSkinParts; ++part) {
        snapshot::encode_int_string(
            {}, ints.subspan(kSkinPartNames + part * kSkinPartInts, kSkinPartInts));
    }
    info[kCountry] = -1;
    return info;
}

void SevenDemoItems::on_message(const record::MessageRecord& record) {
    if (record.system || record.layer != record::MessageLayer::chunk ||
        record.head.direction != wire::Direction::s2c) {
        return;
    }
    const Values values = record.values;
    const auto client = client_in(values);
    if (record.name == "sv_client_info" && client) {
        put_values(values, fields_of(kClientInfo), clients_[*client] = unknown_client());
    } else if (record.name == "sv_client_drop" && client) {
        clients_.erase(*client);
    } else if ((record.name == "sv_team" || record.name == "sv_skin_change") && client) {
        if (const auto known = clients_.find(*client); known != clients_.end()) {
            put_values(values, fields_of(kClientInfo), known->second);
        }
    } else if (record.name == "sv_game_info") {
        put_values(values, fields_of(kGameInfo), game_.emplace());
    } else if (record.name == "sv_tune_params") {
        TuneParams& tuning = tuning_.emplace();
        std::size_t next = 0;
        for (const FieldValue& value : values) {
            // DDNet appends its own, and older ones leave one in that 0.7 does not know.
            if (next < tuning.size() && value.name != "laser_damage") {
                tuning[next++] = static_cast<std::int32_t>(value.integer);
            }
        }
    }
}

void SevenDemoItems::add_own(const record::Roster* roster, snapshot::Snapshot& out) const {
    auto clients = clients_;
    if (roster != nullptr) {
        roster->each([&](std::uint16_t client, const record::Roster::Entry& entry) {
            if (client < record::Roster::kMaxClients && !clients.contains(client)) {
                ClientInfo& info = clients[client] = unknown_client();
                info[kTeam] = entry.team;
                std::ranges::copy(entry.name, info.begin() + kName);
            }
        });
    }
    for (const auto& [client, info] : clients) {
        out.append({.type = kClientInfo, .id = client}, info);
    }
    if (game_) {
        out.append({.type = kGameInfo, .id = 0}, *game_);
    }
    if (tuning_) {
        out.append({.type = kTuneParams, .id = 0}, *tuning_);
    }
}

DemoRoom SevenDemoItems::room_of(const record::Roster* roster) {
    constexpr std::size_t kHead = 8; // an item's key, and where it ends
    DemoRoom room;
    if (roster != nullptr) {
        roster->each([&](std::uint16_t client, const record::Roster::Entry& /*entry*/) {
            if (client < record::Roster::kMaxClients) {
                ++room.items;
                room.bytes += kHead + sizeof(ClientInfo);
            }
        });
    }
    return room;
}

void SevenDemoItems::take_from(const snapshot::ItemView& item) {
    const auto fill = [&](auto& own) {
        if (item.data.size() == own.size()) {
            std::ranges::copy(item.data, own.begin());
        }
    };
    if (item.key.type == kClientInfo && item.key.id < record::Roster::kMaxClients) {
        if (const auto [place, is_new] = clients_.try_emplace(item.key.id); is_new) {
            fill(place->second);
        }
    } else if (item.key.type == kGameInfo && !game_) {
        fill(game_.emplace());
    } else if (item.key.type == kTuneParams && !tuning_) {
        fill(tuning_.emplace());
    }
}

void SevenDemoItems::add(const snapshot::SnapshotView& items, const record::Roster* roster,
                         snapshot::Snapshot& out, Theirs theirs) const {
    out.clear();
    std::size_t i = 0;
    for (; i < items.size() && items[i].key.type < kClientInfo; ++i) {
        out.append(items[i].key, items[i].data);
    }
    const std::size_t own = i;
    for (; i < items.size() && items[i].key.type <= kTuneParams; ++i) {
    }
    if (own == i || theirs == Theirs::left_out) {
        add_own(roster, out);
    } else {
        SevenDemoItems with = *this;
        for (std::size_t each = own; each < i; ++each) {
            with.take_from(items[each]);
        }
        with.add_own(roster, out);
    }
    for (; i < items.size(); ++i) {
        out.append(items[i].key, items[i].data);
    }
}

} // namespace tw::sink
