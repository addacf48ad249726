#pragma once

#include "proxy/bus/collector.h"
#include "proxy/cli/publish_flags.h"
#include "proxy/process/fleet_page.h"
#include "proxy/wire/message_set.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tw::cli {

/// The flags of `collect` about a page over all servers.
struct CollectPageFlags {
    HttpFlags http;
    std::string state;                     ///< folder; empty: where state_folder() says
    std::vector<std::string> server_pages; ///< [NAME=]URL

    void add_to(CLI::App& command);

    [[nodiscard]] bool on() const { return http.on(); }

    /// Where servers have pages of their own. Errors: UsageError.
    [[nodiscard]] process::ServerPages pages() const;

    /// Errors: UsageError.
    void check() const;
};

/// Collected records on their way to `to`, which the page is shown as soon as they count.
class ShownBatches final : public bus::BatchSink {
  public:
    /// Both have to outlive it.
    ShownBatches(bus::BatchSink& to, process::FleetPage& page) : to_{&to}, page_{&page} {}

    [[nodiscard]] std::string unfinished() const override { return to_->unfinished(); }

    [[nodiscard]] int write(const std::string& batch,
                            const std::vector<bus::Collected>& records) override;
    void keep() override;
    [[nodiscard]] int take_back() override;

  private:
    bus::BatchSink* to_;
    process::FleetPage* page_;
    std::vector<bus::Collected> pending_; ///< of the batch that does not count yet
};

/// The page of a collector, where it is asked for.
class CollectPage {
  public:
    /// `mod` and `output` have to outlive it. Errors: UsageError.
    CollectPage(const CollectPageFlags& flags, const std::string& stream,
                const wire::ModDescription& mod, bus::BatchSink& output);

    /// False: its address is not there yet, which is said on standard error.
    [[nodiscard]] bool opened() const { return opened_; }

    /// Where collected records go.
    [[nodiscard]] bus::BatchSink& sink();
    [[nodiscard]] std::function<void(const std::string& why)> on_trouble();

    void start();
    void hand_over();

  private:
    bus::BatchSink* output_;
    std::unique_ptr<process::FleetPage> page_; ///< null: there is none
    std::unique_ptr<ShownBatches> shown_;
    bool opened_ = true;
};

} // namespace tw::cli
