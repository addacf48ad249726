#include "proxy/run/greeting.h"

#include <string>
#include <tuple>

#include <poll.h>

namespace tw::run {

bool send_token(const ProcessLink& link, const PageToken& token) {
    return link.send(Word::token, token.value + '\n' + token.file);
}

PageToken token_from(std::string_view text) {
    const auto end = text.find('\n');
    return {.value = std::string{text.substr(0, end)},
            .file = end == std::string_view::npos ? "" : std::string{text.substr(end + 1)}};
}

bool send_greeting(const ProcessLink& link, const Greeting& greeting) {
    std::string_view rest = greeting.settings;
    while (!rest.empty()) {
        const std::string_view piece = rest.substr(0, ProcessLink::kMaxText);
        if (!link.send(Word::settings, piece)) {
            return false;
        }
        rest.remove_prefix(piece.size());
    }
    return link.send(Word::log_level, greeting.log_level) && send_token(link, greeting.token) &&
           link.send(Word::begin);
}

std::optional<Greeting> await_greeting(ProcessLink& link) {
    Greeting greeting;
    while (!link.closed()) {
        pollfd said{.fd = link.descriptor(), .events = POLLIN, .revents = 0};
        std::ignore = ::poll(&said, 1, -1);
        while (const auto message = link.receive()) {
            switch (message->word) {
            case Word::settings:
                greeting.settings += message->text;
                break;
            case Word::log_level:
                greeting.log_level = message->text;
                break;
            case Word::token:
                greeting.token = token_from(message->text);
                break;
            case Word::begin:
                return greeting;
            default:
                break; // of no greeting
            }
        }
    }
    return std::nullopt;
}

} // namespace tw::run
