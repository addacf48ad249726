#include "proxy/bus/publish_answer.h"

#include <boost/json.hpp>

namespace tw::bus {

namespace {

/// Of nats-server: a message longer than the stream allows.
constexpr std::int64_t kTooLong = 10054;

std::int64_t number_of(const boost::json::object& object, std::string_view key) {
    const auto* const value = object.if_contains(key);
    if (value == nullptr) {
        return 0;
    }
    boost::system::error_code error;
    const auto number = value->to_number<std::int64_t>(error);
    return error ? 0 : number;
}

} // namespace

PublishAnswer read_publish_answer(std::string_view json) {
    PublishAnswer answer;
    boost::system::error_code error;
    const boost::json::value value = boost::json::parse(json, error);
    const auto* const object = error ? nullptr : value.if_object();
    if (object == nullptr) {
        answer.complaint = "its answer is invalid";
        return answer;
    }
    if (const auto* const said = object->if_contains("error")) {
        const auto* const details = said->if_object();
        const auto* const text = details == nullptr ? nullptr : details->if_contains("description");
        answer.too_long = details != nullptr && number_of(*details, "err_code") == kTooLong;
        answer.complaint = text != nullptr && text->is_string() ? std::string{text->get_string()}
                                                                : "it gives no reason";
        return answer;
    }
    const auto* const duplicate = object->if_contains("duplicate");
    answer.duplicate = duplicate != nullptr && duplicate->is_bool() && duplicate->get_bool();
    const std::int64_t place = number_of(*object, "seq");
    answer.place = place > 0 ? static_cast<std::uint64_t>(place) : 0;
    if (answer.place == 0) {
        answer.complaint = "its answer has no sequence number";
    }
    return answer;
}

} // namespace tw::bus
