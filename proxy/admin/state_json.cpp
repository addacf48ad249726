#include "proxy/admin/state_json.h"

#include "proxy/sink/json_buffer.h"

#include <array>
#include <string_view>

namespace tw::admin {

namespace {

constexpr std::array<std::string_view, 2> kDirections{"c2s", "s2c"};

/// Objects and arrays with the commas put where they belong.
class Writer {
  public:
    void open(char bracket) {
        out_.append(bracket);
        first_ = true;
    }

    void close(char bracket) {
        out_.append(bracket);
        first_ = false;
    }

    void comma() {
        if (!first_) {
            out_.append(',');
        }
        first_ = false;
    }

    void key(std::string_view name) {
        comma();
        out_.append_string(name);
        out_.append(':');
    }

    void text(std::string_view name, std::string_view value) {
        key(name);
        out_.append_string(value);
    }

    void number(std::string_view name, std::uint64_t value) {
        signed_number(name, static_cast<std::int64_t>(value));
    }

    void signed_number(std::string_view name, std::int64_t value) {
        key(name);
        out_.append_int(value);
    }

    void decimal(std::string_view name, double value) {
        key(name);
        out_.append_fixed(value);
    }

    void boolean(std::string_view name, bool value) {
        key(name);
        out_.append(std::string_view{value ? "true" : "false"});
    }

    void element(std::string_view value) {
        comma();
        out_.append_string(value);
    }

    [[nodiscard]] std::string text() const { return std::string{out_.view()}; }

  private:
    sink::JsonBuffer out_;
    bool first_ = true;
};

void write_relay(Writer& out, const RelayState& relay) {
    out.key("relay");
    out.open('{');
    out.number("sessions", relay.sessions_open);
    out.number("opened", relay.sessions_opened);
    out.number("closed", relay.sessions_closed);
    out.number("refused", relay.sessions_refused);
    out.number("failed", relay.sessions_failed);
    out.number("icmp_refused", relay.icmp_refused);
    out.number("receive_errors", relay.receive_errors);
    out.number("kernel_dropped", relay.kernel_dropped);
    for (std::size_t i = 0; i < kDirections.size(); ++i) {
        const DirectionState& direction = relay.directions[i];
        out.key(kDirections[i]);
        out.open('{');
        out.number("datagrams", direction.datagrams);
        out.number("bytes", direction.bytes);
        out.number("dropped", direction.dropped);
        out.number("refused", direction.refused);
        out.number("copies_lost", direction.copies_lost);
        out.close('}');
    }
    out.close('}');
}

void write_session(Writer& out, const SessionView& session) {
    out.comma();
    out.open('{');
    out.number("number", session.number);
    out.text("client", session.client);
    out.text("protocol", session.protocol);
    out.text("map", session.map);
    out.text("name", session.name);
    out.text("place", session.place);
    out.boolean("closed", session.closed);
    out.signed_number("opened_ms", session.opened_ms);
    for (std::size_t i = 0; i < kDirections.size(); ++i) {
        out.key(kDirections[i]);
        out.open('{');
        out.number("datagrams", session.datagrams[i]);
        out.number("bytes", session.bytes[i]);
        out.number("recovered", session.recovered[i]);
        out.close('}');
    }
    out.number("snapshots", session.snapshots);
    out.number("verified", session.verified);
    out.number("missed", session.missed);
    out.decimal("ack_lag_ticks", session.ack_lag_ticks);
    out.signed_number("largest_snapshot", session.largest_snapshot);
    out.number("findings", session.findings);
    out.close('}');
}

void write_snapshots(Writer& out, const record::SessionStats& totals) {
    out.key("snapshots");
    out.open('{');
    out.number("total", totals.snapshots);
    out.number("verified", totals.verified);
    out.number("mismatched", totals.mismatched);
    out.number("undecodable", totals.undecodable);
    out.number("unknown_base", totals.unknown_base);
    out.number("incomplete", totals.incomplete);
    out.number("missed", totals.missed);
    out.close('}');
}

void write_findings(Writer& out, const View& view) {
    out.key("findings");
    out.open('[');
    for (const record::FindingInfo& info : record::finding_table()) {
        const std::uint64_t count = view.totals.findings[static_cast<std::size_t>(info.id)];
        if (count == 0) {
            continue;
        }
        out.comma();
        out.open('{');
        out.text("id", info.name);
        out.text("severity", record::severity_name(info.severity));
        out.text("sentence", info.sentence);
        out.number("count", count);
        out.close('}');
    }
    out.close(']');
    out.key("recent");
    out.open('[');
    for (const FindingLine& line : view.findings) {
        out.comma();
        out.open('{');
        out.signed_number("time_ms", line.time_ms);
        out.number("session", line.session);
        out.text("severity", line.severity);
        out.text("text", line.text);
        out.close('}');
    }
    out.close(']');
}

} // namespace

std::string state_json(const State& state) {
    Writer out;
    out.open('{');
    out.number("v", 1);
    out.text("version", state.version);
    out.signed_number("now_ms", state.now_ms);
    out.signed_number("started_ms", state.started_ms);
    out.key("listen");
    out.open('[');
    for (const std::string& listen : state.listen) {
        out.element(listen);
    }
    out.close(']');
    out.text("server", state.server);
    out.text("impairment", state.impairment);
    out.boolean("inspecting", state.inspecting);
    write_relay(out, state.relay);
    out.key("recording");
    out.open('{');
    out.text("output", state.recording.output);
    out.boolean("failed", state.recording.failed);
    out.number("lost", state.recording.lost);
    out.close('}');
    write_snapshots(out, state.view.totals);
    out.number("sessions_seen_by_inspection", state.view.sessions_open);
    out.key("sessions");
    out.open('[');
    for (const SessionView& session : state.view.sessions) {
        write_session(out, session);
    }
    out.close(']');
    write_findings(out, state.view);
    out.key("items");
    out.open('{');
    for (const auto& [type, count] : state.view.items) {
        out.number(type, count);
    }
    out.close('}');
    out.close('}');
    return out.text() + '\n';
}

} // namespace tw::admin
