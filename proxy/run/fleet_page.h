#pragma once

#include "proxy/admin/admin.h"
#include "proxy/admin/feed.h"
#include "proxy/run/admin_run.h"
#include "proxy/run/fleet_board.h"
#include "proxy/wire/mod_description.h"

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace tw::run {

/// The page over all servers of a stream: what their records say, a table of them, and the way to the page
/// that each has of its own.
class FleetPage {
  public:
    struct Stream {
        std::string name;
        ServerPages pages;
    };

    /// `mod` has to outlive it.
    FleetPage(PageOptions options, Stream stream, const wire::ModDescription& mod);

    ~FleetPage() { admin_.stop(); }

    FleetPage(const FleetPage&) = delete;
    FleetPage& operator=(const FleetPage&) = delete;
    FleetPage(FleetPage&&) = delete;
    FleetPage& operator=(FleetPage&&) = delete;

    void start();

    /// All but start() by one thread, which never waits for a viewer.
    void add(const Sender& from, std::string_view line);
    /// Gives the page's log what there is; when the page is not ready, the next call does.
    void hand_over();
    /// Why nothing comes; empty: it does again.
    void set_trouble(std::string trouble);

  private:
    void tell_address(const admin::HttpAddress& where) const;
    /// `server`: whose sessions; empty: those of all.
    [[nodiscard]] admin::State state(std::string_view server = {}) const;
    [[nodiscard]] admin::Health ready() const;
    [[nodiscard]] admin::Sources sources();

    Stream stream_;
    PageToken token_;
    bool log_is_private_;
    bool open_reading_;
    std::string host_;
    const wire::ModDescription* mod_;
    std::int64_t started_ms_;
    mutable std::mutex mutex_; ///< of what the page's thread reads
    FleetBoard board_;
    std::string trouble_ = "not reached yet";
    admin::Batch batch_; ///< of who adds
    admin::Feed feed_{1};
    admin::Admin admin_; ///< last: it calls the rest
};

} // namespace tw::run
