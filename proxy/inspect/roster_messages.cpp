#include "proxy/inspect/roster_messages.h"

#include "proxy/wire/bodies.h"

namespace tw::inspect {

void follow_roster(const wire::MessageHead& head, record::Roster& roster) {
    switch (head.spec->id) {
    case wire::MessageId::sv_client_info:
        if (const auto player = wire::decode_client_info(head.body)) {
            roster.join({.client_id = player->client_id,
                         .own = player->local != 0,
                         .team = player->team,
                         .name = player->name});
        }
        break;
    case wire::MessageId::sv_team:
        if (const auto change = wire::decode_team(head.body)) {
            roster.change_team(change->client_id, change->team);
        }
        break;
    case wire::MessageId::sv_client_drop:
        if (const auto drop = wire::decode_client_drop(head.body)) {
            roster.leave(drop->client_id);
        }
        break;
    default:
        break;
    }
}

} // namespace tw::inspect
