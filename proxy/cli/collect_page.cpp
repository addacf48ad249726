#include "proxy/cli/collect_page.h"

#include "proxy/bus/subjects.h"
#include "proxy/cli/log.h"
#include "proxy/cli/relay_flags.h"
#include "proxy/cli/settings.h"
#include "proxy/relay/start_error.h"
#include "proxy/sink/complaint.h"

#include <string_view>
#include <tuple>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace tw::cli {

void CollectPageFlags::add_to(CLI::App& command) {
    http.add_access(
        command,
        "Serve a page of all servers, /healthz, /readyz, /metrics and /api/state at this address");
    repeatable(
        command
            .add_option(
                "--http-server-page", server_pages,
                "Link to each server's own page, with {server} for its name: "
                "http://{server}.example.org:9303/; NAME=URL sets that of one server (repeatable)")
            ->type_name("[NAME=]URL"));
    command
        .add_option("--state", state,
                    "Folder for the page's token [$STATE_DIRECTORY, $XDG_STATE_HOME/twscope or "
                    "~/.local/state/twscope]")
        ->type_name("DIR");
}

void CollectPageFlags::check() const {
    std::ignore = http.where();
    std::ignore = pages();
}

run::ServerPages CollectPageFlags::pages() const {
    const auto is_address = [](std::string_view text) {
        return text.starts_with("http://") || text.starts_with("https://");
    };
    run::ServerPages pages;
    for (const std::string& each : server_pages) {
        if (is_address(each)) {
            pages.pattern = each;
            continue;
        }
        const auto equals = each.find('=');
        const std::string name = each.substr(0, equals);
        const std::string url = equals == std::string::npos ? "" : each.substr(equals + 1);
        if (!bus::is_subject_token(name) || !is_address(url)) {
            throw UsageError{
                fmt::format("--http-server-page {}: expected a URL like "
                            "http://{{server}}.example.org:9303/, or NAME=http://example.org:9303/",
                            each)};
        }
        pages.own[name] = url;
    }
    return pages;
}

int ShownBatches::write(const std::string& batch, const std::vector<bus::Collected>& records) {
    const int error = to_->write(batch, records);
    pending_ = error == 0 ? records : std::vector<bus::Collected>{};
    return error;
}

void ShownBatches::keep() {
    to_->keep();
    for (const bus::Collected& record : pending_) {
        // Whoever may publish may call a server anything: neither lines nor addresses are made of that.
        const bool named = bus::is_subject_token(record.server);
        page_->add({.server = named ? std::string_view{record.server} : "other", .run = record.run},
                   record.line);
    }
    pending_.clear();
    page_->hand_over();
}

int ShownBatches::take_back() {
    const int error = to_->take_back();
    if (error == 0) {
        pending_.clear();
    }
    return error;
}

CollectPage::CollectPage(const CollectPageFlags& flags, const std::string& stream,
                         const wire::ModDescription& mod, bus::BatchSink& output)
    : output_{&output} {
    if (!flags.on()) {
        return;
    }
    try {
        run::PageOptions options{.listening = flags.http.listen(),
                                 .admin = flags.http.options(),
                                 .token = flags.http.token(state_folder(flags.state)),
                                 .log_is_private = log_stream().is_terminal()};
        page_ = std::make_unique<run::FleetPage>(
            std::move(options), run::FleetPage::Stream{.name = stream, .pages = flags.pages()},
            mod);
        shown_ = std::make_unique<ShownBatches>(output, *page_);
    } catch (const relay::NotYetError& error) {
        sink::complain("{}", error.what());
        opened_ = false;
    }
}

bus::BatchSink& CollectPage::sink() {
    return shown_ ? *static_cast<bus::BatchSink*>(shown_.get()) : *output_;
}

std::function<void(const std::string& why)> CollectPage::on_trouble() {
    return [page = page_.get()](const std::string& why) {
        if (page != nullptr) {
            page->set_trouble(why);
        }
    };
}

void CollectPage::start() {
    if (page_) {
        page_->start();
    }
}

void CollectPage::hand_over() {
    if (page_) {
        page_->hand_over();
    }
}

} // namespace tw::cli
