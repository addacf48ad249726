#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace tw::admin {

/// The other end of one WebSocket. Used on the server's thread only.
class WebSocket {
  public:
    /// Of what waits to be sent: whoever reads slower than we write loses the rest. What is longer goes alone, as the
    /// state of thousands of servers.
    static constexpr std::size_t kMaxQueuedBytes = std::size_t{1} << 20U;
    static constexpr std::size_t kMaxQueued = 64;
    /// Longest message from there: a filter and a few words.
    static constexpr std::size_t kMaxMessageBytes = std::size_t{8} << 10U;

    WebSocket() = default;
    virtual ~WebSocket() = default;
    WebSocket(const WebSocket&) = delete;
    WebSocket& operator=(const WebSocket&) = delete;
    WebSocket(WebSocket&&) = delete;
    WebSocket& operator=(WebSocket&&) = delete;

    /// False: its queue is full, or it is closed; the text is lost.
    virtual bool send(std::shared_ptr<const std::string> text) = 0;

    /// Says goodbye, with a reason of at most 123 bytes.
    virtual void close(std::string_view reason) = 0;

    /// Called for every text that comes. Set once.
    std::function<void(std::string_view)> on_text{};
};

} // namespace tw::admin
