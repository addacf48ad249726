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
    return send_token(link, greeting.token) && link.send(Word::begin);
}

std::optional<Greeting> await_greeting(ProcessLink& link) {
    Greeting greeting;
    while (!link.closed()) {
        pollfd said{.fd = link.descriptor(), .events = POLLIN, .revents = 0};
        std::ignore = ::poll(&said, 1, -1);
        while (const auto message = link.receive()) {
            if (message->word == Word::token) {
                greeting.token = token_from(message->text);
            } else if (message->word == Word::begin) {
                return greeting;
            }
        }
    }
    return std::nullopt;
}

} // namespace tw::run
