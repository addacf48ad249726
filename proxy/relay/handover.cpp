#include "proxy/relay/handover.h"

#include "proxy/base/archive.h"

#include <type_traits>

namespace tw::relay {

namespace {

/// The longest text of parse_impairment().
constexpr std::size_t kMaxText = 4000;

void archive_copy(auto& archive, auto& copy) {
    archive.number(copy.time);
    archive.choice(copy.direction, Direction::s2c);
    archive.bytes(copy.bytes, HeldCopies::kBytes);
}

void archive_session(auto& archive, auto& state) {
    archive_endpoint(archive, state.client);
    archive.number(state.id);
    archive.number(state.server);
    archive.number(state.number);
    archive.number(state.listener);
    archive.bytes(state.reply, ReplyControl{}.size());
    archive.choice(state.standing, Standing::player);
    archive.flag(state.has_place);
    archive.flag(state.answered);
    archive.flag(state.own_loopback);
    archive.raw(state.proof.bytes);
    archive.number(state.opened);
    archive.number(state.told);
    archive.number(state.begun_ns);
    archive.number(state.active_ns);
    archive.number(state.heard_ms);
    archive.number(state.played_ms);
    archive.number(state.repeats);
    archive.number(state.kernel_drops);
    archive.list(state.held, HeldCopies::kBytes,
                 [](auto& inner, auto& copy) { archive_copy(inner, copy); });
    archive.number(state.held_lost[0]);
    archive.number(state.held_lost[1]);
}

template <typename State>
void archive_server(auto& archive, State& state) {
    archive.number(state.server);
    static_assert(std::has_unique_object_representations_v<Counters>); // contains only numbers
    if constexpr (std::is_const_v<State>) {
        archive.raw(std::as_bytes(std::span{&state.counters, 1}));
    } else {
        archive.raw(std::as_writable_bytes(std::span{&state.counters, 1}));
    }
    archive.list(state.listener_drops, kMaxListeningSockets,
                 [](auto& inner, auto& drops) { inner.number(drops); });
}

void archive_relay(auto& archive, auto& state) {
    archive.number(state.last_session);
    archive.number(state.last_number);
    archive.number(state.impairment.seed);
}

} // namespace

void write(std::vector<std::byte>& out, const SessionState& state) {
    base::ArchiveWriter writer{out};
    archive_session(writer, state);
}

void write(std::vector<std::byte>& out, const ServerState& state) {
    base::ArchiveWriter writer{out};
    archive_server(writer, state);
}

void write(std::vector<std::byte>& out, const RelayState& state) {
    base::ArchiveWriter writer{out};
    archive_relay(writer, state);
    writer.bytes(to_string(state.impairment), kMaxText);
}

SessionState read_session(std::span<const std::byte> in) {
    base::ArchiveReader reader{in};
    SessionState state;
    archive_session(reader, state);
    const bool is_announced = state.id != 0;
    const bool may_be_told = state.standing >= Standing::verified;
    const bool has_to_be = state.standing >= Standing::weak;
    const bool fits = reader.done() && (is_announced ? may_be_told : !has_to_be) &&
                      state.number != 0 && state.client.port != 0 &&
                      (state.has_place || !may_be_told);
    if (!fits) {
        throw HandoverError{"a session that was handed over is damaged"};
    }
    return state;
}

ServerState read_server(std::span<const std::byte> in) {
    base::ArchiveReader reader{in};
    ServerState state;
    archive_server(reader, state);
    if (!reader.done()) {
        throw HandoverError{"the totals of a server that were handed over are damaged"};
    }
    return state;
}

RelayState read_relay(std::span<const std::byte> in) {
    base::ArchiveReader reader{in};
    RelayState state;
    archive_relay(reader, state);
    std::string text;
    reader.bytes(text, kMaxText);
    const auto impairment = parse_impairment(text, state.impairment.seed);
    if (!reader.done() || !impairment) {
        throw HandoverError{"the totals that were handed over are damaged"};
    }
    state.impairment = *impairment;
    return state;
}

} // namespace tw::relay
