#pragma once

#include "proxy/admin/listening.h"
#include "proxy/run/admin_run.h"
#include "proxy/run/process_link.h"

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

namespace tw::run {

/// A live page that cannot be opened before its run goes on: another process, as the observer before
/// this one, has its port or socket until then.
struct LatePageOptions {
    std::vector<admin::HttpAddress> where{};
    /// What it is to be, at these sockets. May throw.
    std::function<PageOptions(std::vector<admin::Listening> listening)> page{};
};

/// Asks the relay's process for its sockets, again and again while something is in the way: who looks
/// is confined by now, and may not make any where files are.
class LatePage {
  public:
    /// Between an answer that there are none and the next question.
    static constexpr std::chrono::milliseconds kPause{500};

    /// `open` is called once it has them; what it throws counts as in the way. All have to outlive it.
    LatePage(boost::asio::io_context& io, const ProcessLink& link, LatePageOptions options,
             std::function<void(PageOptions page)> open)
        : link_{&link}, options_{std::move(options)}, open_{std::move(open)}, timer_{io} {}

    void ask();

    /// What the relay's process says with Word::page.
    void on_answer(ProcessLink::Message& message);

    void stop();

  private:
    void try_again(const std::string& trouble);

    const ProcessLink* link_;
    LatePageOptions options_;
    std::function<void(PageOptions)> open_;
    boost::asio::steady_timer timer_;
    std::vector<admin::Listening> gathered_;
    std::string trouble_; ///< why it is not open yet, as it was said
    bool over_ = false;
};

} // namespace tw::run
