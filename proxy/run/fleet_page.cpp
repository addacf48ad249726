#include "proxy/run/fleet_page.h"

#include "proxy/filter/line_record.h"
#include "proxy/relay/clock.h"
#include "proxy/run/page_address.h"
#include "proxy/run/page_records.h"

#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace tw::run {

namespace {

std::int64_t now_ms() {
    constexpr std::int64_t kNanoseconds = 1'000'000;
    return relay::now_utc() / kNanoseconds;
}

} // namespace

FleetPage::FleetPage(PageOptions options, Stream stream, const wire::ModDescription& mod)
    : stream_{std::move(stream)}, token_{std::move(options.token)},
      log_is_private_{options.log_is_private}, open_reading_{options.admin.access.open_reading},
      host_{options.admin.hosts.empty() ? "" : options.admin.hosts.front()}, mod_{&mod},
      started_ms_{now_ms()}, admin_{std::move(options.admin), options.listening, sources()} {
    admin_.set_token(token_.value);
}

void FleetPage::start() {
    admin_.start();
    for (const admin::HttpAddress& where : admin_.server().where()) {
        tell_address(where);
    }
}

void FleetPage::tell_address(const admin::HttpAddress& where) const {
    if (!where.path.empty()) {
        spdlog::info("page of all servers on unix:{}", where.path);
        return;
    }
    const PageAddress page = page_address(where, host_, open_reading_);
    spdlog::info("page of all servers on port {}: {}{}", where.port, page.url,
                 page.reads_freely ? ""
                                   : fmt::format("#token={} (without the token it shows nothing)",
                                                 token_.shown(log_is_private_)));
    if (page.is_open) {
        spdlog::warn("anyone who can reach the page sees the players' names and addresses");
    }
}

void FleetPage::add(const Sender& from, std::string_view line) {
    if (!filter::is_sound_record(line)) {
        return; // somebody else publishes to the stream, too
    }
    {
        const std::scoped_lock lock{mutex_};
        board_.add(from, line, now_ms());
    }
    if (!feed_.watch.log()) {
        return;
    }
    const std::string text = log_line(from.server, line);
    if (batch_.lines.size() + text.size() < admin::Batch::kMaxLineBytes) {
        batch_.lines.append(text).push_back('\n');
    } else {
        ++batch_.lost_lines;
    }
}

void FleetPage::hand_over() {
    if (!batch_.empty() && feed_.try_put(0, batch_)) {
        batch_.clear();
    }
}

void FleetPage::set_trouble(std::string trouble) {
    const std::scoped_lock lock{mutex_};
    trouble_ = std::move(trouble);
}

admin::State FleetPage::state(std::string_view server) const {
    admin::State state;
    state.version = TWSCOPE_VERSION;
    state.now_ms = now_ms();
    state.started_ms = started_ms_;
    state.server = stream_.name;
    const std::scoped_lock lock{mutex_};
    state.stream = admin::StreamState{.name = stream_.name, .trouble = trouble_};
    board_.show(state, stream_.pages, server);
    state.http_turned_away = admin_.server().turned_away();
    return state;
}

admin::Health FleetPage::ready() const {
    const std::scoped_lock lock{mutex_};
    return {.ok = trouble_.empty(),
            .text = trouble_.empty() ? "ok" : fmt::format("no records from the bus: {}", trouble_)};
}

admin::Sources FleetPage::sources() {
    return {
        .state = [this] { return state(); },
        .state_of = [this](const std::string& server) { return state(server); },
        .live = [] { return admin::Health{.ok = true, .text = "ok"}; },
        .ready = [this](const std::function<void(admin::Health)>& done) { done(ready()); },
        .set_impairment = [](const std::string& /*text*/) -> tl::expected<void, std::string> {
            return tl::unexpected{
                std::string{"nothing is forwarded here; ask the twscope in front of that server"}};
        },
        .explain = [](std::uint32_t /*session*/, std::int64_t /*tick*/) { return std::nullopt; },
        .api = {.map = [](std::uint32_t /*session*/) { return nullptr; },
                .keys_json = [this] { return filter_keys_json(*mod_); },
                .make_filter =
                    [this](const std::string& text) { return make_line_filter(text, *mod_); }},
        .view = {.feed = &feed_,
                 .objects = &mod_->objects,
                 .snapshot_line = [](const admin::SeenSnapshot& /*seen*/,
                                     const snapshot::SnapshotView& /*items*/) {
                     return std::string{};
                 }}};
}

} // namespace tw::run
