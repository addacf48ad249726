#include "proxy/run/page_records.h"

#include "proxy/filter/filter.h"
#include "proxy/filter/line_record.h"
#include "proxy/record/json.h"
#include "proxy/sink/json_lines.h"

#include <utility>

#include <fmt/format.h>

namespace tw::run {

namespace json = boost::json;

namespace {

/// Where one line goes.
class Line final : public sink::Output {
  public:
    void write(std::string_view block) override { text += block; }

    std::string text;
};

json::object words_json(filter::KeyScope scope, filter::Described described) {
    json::object words;
    for (const std::string& name : filter::all_keys(scope, described)) {
        const auto key = filter::find_key(scope, name, described);
        const auto known =
            key ? filter::words_of(*key, described) : std::vector<std::string_view>{};
        if (!known.empty()) {
            words[name] = json::array(known.begin(), known.end());
        }
    }
    return words;
}

} // namespace

tl::expected<admin::LineFilter, admin::Complaint>
make_line_filter(const std::string& text, const wire::ModDescription& mod) {
    auto filter = filter::Filter::parse(text, {.described = filter::described_in(mod)});
    if (!filter) {
        return tl::unexpected{admin::Complaint{.message = std::move(filter.error().message),
                                               .offset = filter.error().offset}};
    }
    if (const std::string_view key = filter::key_of_no_line(*filter); !key.empty()) {
        return tl::unexpected{
            admin::Complaint{.message = fmt::format("'{}' is not in the lines of the log", key)}};
    }
    return [filter = *std::move(filter)](std::string_view line) {
        return filter::matches_line(filter, line);
    };
}

std::string filter_keys_json(const wire::ModDescription& mod) {
    const filter::Described own = filter::described_in(mod);
    const auto records = filter::all_keys(filter::KeyScope::record, own);
    const auto items = filter::all_keys(filter::KeyScope::item, own);
    const auto types = filter::item_type_words(own);
    return record::json_text(
               json::object{{"v", 1},
                            {"keys", json::array(records.begin(), records.end())},
                            {"item_keys", json::array(items.begin(), items.end())},
                            {"item_types", json::array(types.begin(), types.end())},
                            {"words", words_json(filter::KeyScope::record, own)},
                            {"item_words", words_json(filter::KeyScope::item, own)}}) +
           '\n';
}

std::string snapshot_line(const admin::SeenSnapshot& seen, const snapshot::SnapshotView& items,
                          std::shared_ptr<const map::Physics> physics,
                          const snapshot::ObjectSet& objects) {
    record::TypeNames types{objects};
    types.learn(items);
    const bool has_map = physics != nullptr;
    const record::World world{std::move(physics)};
    const record::SnapshotRecord record{
        .head = {.time = seen.time, .session = seen.session, .direction = wire::Direction::s2c},
        .tick = seen.tick,
        .delta_tick = seen.delta_tick,
        .crc_wanted = seen.crc_wanted,
        .crc_got = seen.crc_got,
        .bytes = seen.bytes,
        .parts = seen.parts,
        .rebuilt = seen.rebuilt,
        .items = items,
        .types = &types,
        .world = has_map ? &world : nullptr};
    Line line;
    sink::JsonLines lines{{.items = sink::ItemChoice::all, .objects = &objects}, line};
    lines.on_record(&record);
    lines.flush();
    return std::move(line.text);
}

} // namespace tw::run
