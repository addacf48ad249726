#pragma once

#include "proxy/relay/batch.h"
#include "proxy/relay/clock.h"
#include "proxy/relay/impairer.h"
#include "proxy/relay/tap.h"
#include "proxy/relay/upstream.h"

#include <cstdint>
#include <memory>
#include <vector>

#include <boost/unordered/unordered_flat_map.hpp>

namespace tw::relay {

/// A client, and the socket its datagrams reach the server by.
struct Session {
    Upstream upstream;
    TapSession tap;
    SocketAddress client{}; ///< where replies go
    socklen_t client_length = 0;
    std::uint8_t listener = 0; ///< by which socket
    std::uint8_t control_length = 0;
    Control control{}; ///< from which of our addresses, where a socket has several

    bool active = true;             ///< a datagram passed since the last sweep
    Clock::time_point last_active;  ///< as of the sweep that saw it
    std::uint32_t kernel_drops = 0; ///< as last read

    std::unique_ptr<SessionLines> lines; ///< while lines are impaired

    /// The session's datagrams in the batch at hand: a chain through Forwarder::next_.
    std::uint8_t first = 0;
    std::uint8_t last = 0;
    std::uint8_t count = 0;

    /// Makes a message go to the client, from the address it sent to.
    void address_reply(msghdr& header) noexcept {
        header.msg_name = &client;
        header.msg_namelen = client_length;
        header.msg_control = control_length != 0 ? control.data() : nullptr;
        header.msg_controllen = control_length;
    }
};

/// Sessions by client address. Finding allocates nothing.
class Sessions {
  public:
    explicit Sessions(std::size_t expected);

    [[nodiscard]] Session* find(const Endpoint& client, std::uint8_t listener) noexcept;
    Session& insert(std::unique_ptr<Session> session);

    /// Removes the sessions for which `done(Session&)` holds; it may use them a last time.
    template <typename Predicate>
    void remove_if(Predicate&& done) {
        for (std::size_t i = 0; i < all_.size();) {
            if (!done(*all_[i])) {
                ++i;
                continue;
            }
            by_client_.erase(key_of(all_[i]->tap.client, all_[i]->listener));
            std::swap(all_[i], all_.back());
            all_.pop_back();
        }
    }

    template <typename Use>
    void for_each(Use&& use) {
        for (const auto& session : all_) {
            use(*session);
        }
    }

    [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }

  private:
    struct Key {
        std::uint64_t high;
        std::uint64_t low;
        std::uint64_t rest;

        friend bool operator==(const Key&, const Key&) = default;
    };

    /// Seeded, so that nobody can choose addresses that collide.
    struct Hash {
        std::uint64_t seed;
        using is_avalanching = void; // NOLINT(readability-identifier-naming): Boost asks for it

        [[nodiscard]] std::size_t operator()(const Key& key) const noexcept;
    };

    [[nodiscard]] static Key key_of(const Endpoint& client, std::uint8_t listener) noexcept;

    boost::unordered_flat_map<Key, Session*, Hash> by_client_;
    std::vector<std::unique_ptr<Session>> all_;
};

} // namespace tw::relay
