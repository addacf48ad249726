#include "proxy/run/page_world.h"

#include "proxy/sink/json_lines.h"
#include "proxy/sink/output.h"

#include <string_view>
#include <variant>

namespace tw::run {

namespace {

constexpr record::Timestamp kWorldMillisecond = 1'000'000;
/// A server that is silent for so long leaves its place to another one, also by a clock that was set back.
constexpr record::Timestamp kSilence = 1000 * kWorldMillisecond;
/// Another one with so many more views takes its place: with one more they might change places with
/// every player who comes and goes.
constexpr std::uint32_t kLead = 2;
/// A line costs as much as a recording's; who asks for it takes one.
constexpr record::Timestamp kLineEvery = 200 * kWorldMillisecond;

/// Where a line goes.
class WorldLine final : public sink::Output {
  public:
    explicit WorldLine(std::string& text) : text_{&text} {}

    void write(std::string_view block) override { *text_ += block; }

  private:
    std::string* text_;
};

} // namespace

bool PageWorld::is_shown(const record::WorldRecord& world) {
    if (world.server != server_) {
        const record::Timestamp since = world.head.time - shown_;
        const bool is_silent = since > kSilence || since < -kSilence;
        if (!is_silent && world.views < views_ + kLead) {
            return false;
        }
        server_ = world.server;
        tick_ = snapshot::kNoBase;
    }
    views_ = world.views;
    shown_ = world.head.time;
    return true;
}

void PageWorld::on_record(const record::Record& record) {
    const auto* const* found = std::get_if<const record::WorldRecord*>(&record);
    if (found == nullptr || !feed_->watch.world() || !is_shown(**found)) {
        return;
    }
    const record::WorldRecord& world = **found;
    batch_.add({.time = world.head.time,
                .tick = world.tick,
                .delta_tick = tick_,
                .bytes = world.shown.items.size_bytes(),
                .parts = static_cast<std::int32_t>(world.views),
                .rebuilt = true},
               items_.of(world.shown));
    batch_.world_server = world.head.server_name;
    tick_ = world.tick;
    const record::Timestamp since = world.head.time - lined_;
    if (feed_->watch.world_line() && (since >= kLineEvery || since < 0)) {
        lined_ = world.head.time;
        write_line(world);
    }
}

void PageWorld::write_line(const record::WorldRecord& world) {
    batch_.world_line.clear();
    WorldLine line{batch_.world_line};
    sink::JsonLines json{{.items = sink::ItemChoice::all, .objects = objects_}, line};
    json.on_record(&world);
    json.flush();
}

void PageWorld::hand_over() {
    if (batch_.empty()) {
        return;
    }
    if (!feed_->watch.world()) {
        batch_.clear();
        tick_ = snapshot::kNoBase;
    } else if (feed_->try_put(feed_->world_box(), batch_)) {
        batch_.clear(); // what came back was read
    }
}

} // namespace tw::run
