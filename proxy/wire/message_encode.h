#pragma once

#include "proxy/wire/message.h"

#include <cstddef>
#include <span>
#include <vector>

namespace tw::wire {

/// The bytes of a message with these values, as decode_message_head and decode_fields read them. For
/// demos and tests: no packet is made of them. Precondition: the values are those of the message's
/// fields, in their order, of integers, texts, bytes that need no length, or arrays of these.
[[nodiscard]] std::vector<std::byte> encode_message(const MessageSpec& spec,
                                                    std::span<const FieldValue> values);

} // namespace tw::wire
