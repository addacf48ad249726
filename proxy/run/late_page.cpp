#include "proxy/run/late_page.h"

#include <exception>
#include <tuple>
#include <utility>

#include <spdlog/spdlog.h>

namespace tw::run {

void LatePage::ask() {
    gathered_.clear();
    std::ignore = link_->send(Word::page); // where that fails the relay is gone
}

void LatePage::on_answer(ProcessLink::Message& message) {
    if (over_) {
        return;
    }
    if (!message.descriptor.valid()) {
        return try_again(message.text);
    }
    gathered_.emplace_back(options_.where[gathered_.size()], std::move(message.descriptor));
    if (gathered_.size() < options_.where.size()) {
        return;
    }
    try {
        open_(options_.page(std::exchange(gathered_, {})));
        over_ = true;
    } catch (const std::exception& error) {
        try_again(error.what());
    }
}

void LatePage::try_again(const std::string& trouble) {
    if (std::exchange(trouble_, trouble) != trouble) {
        spdlog::error("live page: {}; trying again", trouble);
    }
    timer_.expires_after(kPause);
    timer_.async_wait([this](const boost::system::error_code& error) {
        if (!error && !over_) {
            ask();
        }
    });
}

void LatePage::stop() {
    over_ = true;
    timer_.cancel();
}

} // namespace tw::run
