#include "proxy/admin/recordings.h"

#include "proxy/admin/query.h"
#include "proxy/record/json.h"

#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace tw::admin {

namespace {

constexpr unsigned kConflict = 409;
constexpr std::string_view kNoFolder =
    "there is no folder for recordings; twscope is given one at start\n";

struct Switch {
    std::string_view name;
    RecordingKind kind;
};

constexpr std::array<Switch, 2> kSwitches{
    {{"capture", RecordingKind::capture}, {"demos", RecordingKind::demos}}};

struct Wanted {
    std::string_view name;
    RecordingKind kind;
    bool on;
};

/// Nothing: it is none, or more than one.
std::optional<Wanted> switch_in(std::string_view query) {
    std::optional<Wanted> wanted;
    for (const auto& [name, kind] : kSwitches) {
        const auto value = value_in(query, name);
        if (!value) {
            continue;
        }
        if (wanted || (*value != "on" && *value != "off")) {
            return std::nullopt;
        }
        wanted = Wanted{.name = name, .kind = kind, .on = *value == "on"};
    }
    return wanted;
}

Response no_folder() {
    return {.status = kConflict, .body = std::string{kNoFolder}};
}

} // namespace

void show_recordings(const RecordingSources& sources, const Request& /*request*/,
                     const Respond& respond) {
    if (!sources.list) {
        return respond(no_folder());
    }
    boost::json::array files;
    for (const RecordedFile& file : sources.list()) {
        files.push_back(boost::json::object{
            {"name", file.name}, {"bytes", file.bytes}, {"time_ms", file.time_ms}});
    }
    respond({.content_type = "application/json",
             .body = record::json_text(boost::json::object{{"v", 1}, {"files", std::move(files)}}) +
                     '\n'});
}

void switch_recordings(const RecordingSources& sources, const Request& request,
                       const Respond& respond) {
    if (!sources.set) {
        return respond(no_folder());
    }
    const auto wanted = switch_in(request.query);
    if (!wanted) {
        return respond({.status = 400,
                        .body = "expected one of capture or demos, on or off, for example "
                                "/api/recordings?capture=on\n"});
    }
    if (const auto done = sources.set(wanted->kind, wanted->on); !done) {
        return respond({.status = kConflict, .body = done.error() + '\n'});
    }
    respond({.body = fmt::format("{} {}\n", wanted->name, wanted->on ? "on" : "off")});
}

void send_recording(const RecordingSources& sources, const Request& request,
                    const Respond& respond) {
    const auto name = text_in(request.query, "name");
    auto file = name && sources.open ? sources.open(*name) : nullptr;
    if (file == nullptr) {
        return respond({.status = 404, .body = "no such recording; /api/recordings lists them\n"});
    }
    respond({.content_type = "application/octet-stream",
             .body = {},
             .file = std::move(file),
             .file_name = *name});
}

} // namespace tw::admin
