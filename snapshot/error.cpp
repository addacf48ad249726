#include "snapshot/error.h"

#include <array>

namespace tw::snapshot {

namespace {

// The numbers are the codes of DDNet's CSnapshotDelta::UnpackDelta, which DDNet's client logs as "delta
// unpack failed. error=...". If an error has two codes in DDNet, DecodeError::ddnet_code has the other
// one.
constexpr std::array kErrors{
    ErrorInfo{DecodeErrc::none, "none", "Nothing is wrong.", 0},
    ErrorInfo{DecodeErrc::truncated, "truncated", "The data ends inside a value.", 0},
    ErrorInfo{DecodeErrc::string_unterminated, "string_unterminated",
              "A string has no NUL before the end of the message.", 0},
    ErrorInfo{DecodeErrc::length_out_of_range, "length_out_of_range",
              "A length is negative or claims more bytes than are left.", 0},
    ErrorInfo{DecodeErrc::too_many_ints, "too_many_ints",
              "The delta holds more ints than clients have room for.", 0},
    ErrorInfo{DecodeErrc::negative_count, "negative_count",
              "The delta announces a negative number of deleted items.", -201},
    ErrorInfo{DecodeErrc::deleted_out_of_range, "deleted_out_of_range",
              "The delta announces more deleted items than it holds.", -101},
    ErrorInfo{DecodeErrc::update_truncated, "update_truncated",
              "The delta ends before the updates that it announces.", -102},
    ErrorInfo{DecodeErrc::type_out_of_range, "type_out_of_range",
              "The type of an updated item is negative or above 32767.", -202},
    ErrorInfo{DecodeErrc::id_out_of_range, "id_out_of_range",
              "The id of an updated item is negative or above 65535.", -203},
    ErrorInfo{DecodeErrc::size_out_of_range, "size_out_of_range",
              "The size of an updated item is negative or more than the delta holds.", -205},
    ErrorInfo{DecodeErrc::size_change, "size_change",
              "An update's size is not that of the item that it changes.", -206},
    ErrorInfo{DecodeErrc::too_many_items, "too_many_items",
              "The snapshot would hold more than 1024 items.", -302},
    ErrorInfo{DecodeErrc::too_many_bytes, "too_many_bytes",
              "The snapshot would be larger than 65536 bytes.", -302},
};

constexpr bool in_order() {
    for (std::size_t i = 0; i < kErrors.size(); ++i) {
        if (static_cast<std::size_t>(kErrors[i].code) != i) {
            return false;
        }
    }
    return true;
}

static_assert(in_order());

} // namespace

std::span<const ErrorInfo> error_table() {
    return kErrors;
}

const ErrorInfo& error_info(DecodeErrc code) {
    const auto index = static_cast<std::size_t>(code);
    return kErrors[index < kErrors.size() ? index : 0];
}

} // namespace tw::snapshot
