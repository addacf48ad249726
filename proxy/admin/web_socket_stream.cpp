#include "proxy/admin/web_socket_stream.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>

namespace tw::admin {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = beast::websocket;
using Error = boost::system::error_code;

constexpr std::chrono::seconds kHandshake{5};
/// A ping goes out at half of it.
constexpr std::chrono::seconds kIdle{60};
/// What the system keeps for a peer that does not read; beyond, our own queue counts.
constexpr int kSendBuffer = 1 << 18;
constexpr std::size_t kMaxReason = 123;

class AcceptedWebSocket final : public WebSocket,
                                public std::enable_shared_from_this<AcceptedWebSocket> {
  public:
    AcceptedWebSocket(HttpStream stream, HttpMessage request)
        : socket_{std::move(stream)}, request_{std::move(request)} {}

    void accept(std::function<void(const std::shared_ptr<WebSocket>&)> on_open) {
        Error ignored;
        auto& lowest = beast::get_lowest_layer(socket_);
        lowest.expires_never(); // the WebSocket has deadlines of its own
        lowest.socket().set_option(asio::socket_base::send_buffer_size{kSendBuffer}, ignored);
        socket_.set_option(websocket::stream_base::timeout{
            .handshake_timeout = kHandshake, .idle_timeout = kIdle, .keep_alive_pings = true});
        const auto asked = request_[beast::http::field::sec_websocket_protocol];
        if (asks_for_protocol({asked.data(), asked.size()}, kLiveProtocol)) {
            socket_.set_option(
                websocket::stream_base::decorator{[](websocket::response_type& reply) {
                    reply.set(beast::http::field::sec_websocket_protocol, kLiveProtocol);
                }});
        }
        socket_.read_message_max(kMaxMessageBytes);
        socket_.auto_fragment(false);
        socket_.text(true);
        socket_.async_accept(request_, [self = shared_from_this(),
                                        on_open = std::move(on_open)](const Error& error) {
            if (error) {
                return;
            }
            self->open_ = true;
            self->request_ = {};
            on_open(self);
            self->read();
        });
    }

    bool send(std::shared_ptr<const std::string> text) override {
        if (!open_ || queue_.size() >= kMaxQueued ||
            (!queue_.empty() && queued_ + text->size() > kMaxQueuedBytes)) {
            return false;
        }
        queued_ += text->size();
        queue_.push_back(std::move(text));
        if (queue_.size() == 1) {
            write();
        }
        return true;
    }

    void close(std::string_view reason) override {
        if (!std::exchange(open_, false)) {
            return;
        }
        reason = reason.substr(0, kMaxReason);
        socket_.async_close(
            {websocket::close_code::policy_error, beast::string_view{reason.data(), reason.size()}},
            [self = shared_from_this()](const Error&) {});
    }

  private:
    // NOLINTBEGIN(misc-no-recursion): each is called by the loop, when the one before is done
    void read() {
        socket_.async_read(buffer_, [self = shared_from_this()](const Error& error, std::size_t) {
            if (error || !self->open_) {
                self->open_ = false;
                return;
            }
            if (!self->socket_.got_text()) {
                return self->close("only text is accepted");
            }
            if (self->on_text) {
                const auto bytes = self->buffer_.cdata();
                self->on_text({static_cast<const char*>(bytes.data()), bytes.size()});
            }
            self->buffer_.clear();
            if (self->open_) {
                self->read();
            }
        });
    }

    void write() {
        socket_.async_write(asio::buffer(*queue_.front()),
                            [self = shared_from_this()](const Error& error, std::size_t) {
                                self->queued_ -= self->queue_.front()->size();
                                self->queue_.pop_front();
                                if (error) {
                                    self->open_ = false;
                                } else if (self->open_ && !self->queue_.empty()) {
                                    self->write();
                                }
                            });
    }

    // NOLINTEND(misc-no-recursion)

    websocket::stream<HttpStream, false> socket_; ///< does not compress
    HttpMessage request_;
    beast::flat_buffer buffer_{kMaxMessageBytes + 1};
    std::deque<std::shared_ptr<const std::string>> queue_; ///< the first one is on its way
    std::size_t queued_ = 0;                               ///< bytes
    bool open_ = false;
};

int hex_digit(char digit) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    const auto at = kDigits.find(digit);
    return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

} // namespace

void accept_web_socket(HttpStream stream, HttpMessage request,
                       std::function<void(const std::shared_ptr<WebSocket>&)> on_open) {
    std::make_shared<AcceptedWebSocket>(std::move(stream), std::move(request))
        ->accept(std::move(on_open));
}

bool asks_for_protocol(std::string_view protocols, std::string_view name) {
    constexpr std::string_view kBetween = ", \t";
    while (!protocols.empty()) {
        const std::size_t end = std::min(protocols.find_first_of(kBetween), protocols.size());
        if (protocols.substr(0, end) == name) {
            return true;
        }
        protocols.remove_prefix(std::min(end + 1, protocols.size()));
    }
    return false;
}

std::string token_in_protocols(std::string_view protocols) {
    constexpr std::string_view kName = "bearer.";
    const auto begin = protocols.find(kName);
    if (begin == std::string_view::npos) {
        return {};
    }
    const std::string_view digits = protocols.substr(
        begin + kName.size(), protocols.substr(begin + kName.size()).find_first_of(", "));
    std::string token;
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
        const int high = hex_digit(digits[i]);
        const int low = hex_digit(digits[i + 1]);
        if (high < 0 || low < 0) {
            return {};
        }
        constexpr int kBase = 16;
        token += static_cast<char>(high * kBase + low);
    }
    return token;
}

} // namespace tw::admin
