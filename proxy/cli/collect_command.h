#pragma once

#include "proxy/bus/collector.h"
#include "proxy/cli/publish_flags.h"
#include "proxy/process/fleet_page.h"
#include "proxy/wire/message.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tw::cli {

/// The flags of `collect` about the page of all servers.
struct CollectPageFlags {
    HttpFlags http;
    std::string state; ///< state folder; empty for the default of state_folder()
    std::vector<std::string> server_pages; ///< [NAME=]URL

    void add_to(Command& command);

    [[nodiscard]] bool on() const { return http.on(); }

    /// The URLs of the servers' own pages.
    /// Errors: UsageError.
    [[nodiscard]] process::ServerPageUrls pages() const;

    /// Checks that the addresses of the page and the URLs of the servers' pages are valid.
    /// Errors: UsageError.
    void check() const;
};

/// Passes batches of collected records to another sink, and the records of confirmed batches to the
/// page.
class BatchesForPage final : public bus::BatchSink {
  public:
    /// `to`: the other sink. Both arguments must outlive the object.
    BatchesForPage(bus::BatchSink& to, process::FleetPage& page) : to_{&to}, page_{&page} {}

    [[nodiscard]] std::string unconfirmed_batch() const override {
        return to_->unconfirmed_batch();
    }

    [[nodiscard]] int write_batch(const std::string& batch,
                                  const std::vector<bus::CollectedRecord>& records) override;
    void confirm_batch() override;
    [[nodiscard]] int roll_back_batch() override;

  private:
    bus::BatchSink* to_;
    process::FleetPage* page_;
    std::vector<bus::CollectedRecord> pending_; ///< records of the batch that is not confirmed yet
};

/// The collector's page, if the flags ask for one.
class CollectPage {
  public:
    /// `mod` and `output` have to outlive the object.
    /// Errors: UsageError.
    CollectPage(const CollectPageFlags& flags, const std::string& stream,
                const wire::ModDescription& mod, bus::BatchSink& output);

    /// False if the page's address does not exist yet, which is printed on standard error.
    [[nodiscard]] bool opened() const { return opened_; }

    /// The sink for collected records.
    [[nodiscard]] bus::BatchSink& sink();
    [[nodiscard]] std::function<void(const std::string& why)> on_trouble();

    void start();
    void flush_to_page();

  private:
    bus::BatchSink* output_;
    std::unique_ptr<process::FleetPage> page_; ///< null if there is no page
    std::unique_ptr<BatchesForPage> shown_;
    bool opened_ = true;
};

} // namespace tw::cli
