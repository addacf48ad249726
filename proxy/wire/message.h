#pragma once

#include "proxy/wire/error.h"
#include "snapshot/cursor.h"
#include "snapshot/error.h"
#include "snapshot/objects.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tw::wire {

/// The direction of a datagram: client to server (c2s) or server to client (s2c).
enum class Direction : std::uint8_t { c2s, s2c };

/// Returns the index of the direction in an array with one element per direction.
[[nodiscard]] constexpr std::size_t index_of(Direction direction) {
    return static_cast<std::size_t>(direction);
}

[[nodiscard]] constexpr Direction opposite(Direction direction) {
    return direction == Direction::c2s ? Direction::s2c : Direction::c2s;
}

/// The messages whose content twscope interprets, as X(name). The four from cl_command to sv_team
/// exist in 0.7 only.
// clang-format off
#define TW_INTERPRETED_MESSAGES(X)                                                                 \
    X(info) X(map_change) X(map_data) X(con_ready) X(snap) X(snap_empty) X(snap_single)            \
    X(input_timing) X(ready) X(enter_game) X(input) X(rcon_auth) X(rcon_cmd) X(request_map_data)   \
    X(map_details) X(capabilities) X(client_version) X(sv_tune_params) X(sv_ready_to_enter)        \
    X(sv_chat) X(cl_say) X(cl_start_info) X(cl_command) X(sv_client_info) X(sv_client_drop)        \
    X(sv_team)
// clang-format on

/// A message whose content twscope interprets. `other`: any message that twscope only decodes and
/// records.
enum class MessageId : std::uint8_t {
    other,
#define TW_ENUMERATOR(name) name,
    TW_INTERPRETED_MESSAGES(TW_ENUMERATOR)
#undef TW_ENUMERATOR
};

/// Whether the message is one of the three kinds of snapshot message.
[[nodiscard]] constexpr bool is_snapshot(MessageId id) {
    return id == MessageId::snap || id == MessageId::snap_empty || id == MessageId::snap_single;
}

enum class FieldType : std::uint8_t {
    integer,
    boolean,
    tick,
    string,
    raw, ///< bytes; the integer field before this field holds the number of bytes
    uuid,
    sha256,
    object, ///< the ints of an object; the field before this field holds their size in bytes
    decimal_string, ///< in connless packets: an integer as decimal digits
    server_addresses,
    objects, ///< an array of objects; the integer field before it holds the number of objects
    u8,
    u16_be,        ///< in connless packets: two bytes, big-endian
    request_token, ///< one byte: a token's bits 0 to 7; an extended header has bits 8 to 23
    raw_until_end,
    array, ///< MessageField::count elements
};

/// Whether a value must be hidden. Secret values are shown only if the user asks for secrets.
enum class Secrecy : std::uint8_t { open, secret };

/// Describes a field of a message.
struct MessageField {
    std::string_view name{};
    FieldType type = FieldType::integer;
    bool optional = false;
    Secrecy secrecy = Secrecy::open;
    bool always_shown = false;    ///< the field may be shown even if the message is secret
    std::int64_t min = INT32_MIN; ///< the smallest value that game programs accept
    std::int64_t max = INT32_MAX; ///< the largest value that game programs accept
    const snapshot::NameTable* names = nullptr;
    std::uint8_t sanitize = 0; ///< string cleaning flags, see text.h
    std::string_view object{}; ///< for FieldType::object: the object's name in the object table
    /// The value of an optional integer field that the message lacks. If nullopt, decoding such a
    /// message produces no value for the field.
    std::optional<std::int32_t> default_value{};
    FieldType element = FieldType::integer; ///< for an array: type of its elements
    /// For an array: the number of elements; 0: the integer field before the array holds the
    /// number; kUntilEnd: the array fills the rest of the message.
    std::uint8_t count = 0;
    static constexpr std::uint8_t kUntilEnd = 255;
    std::span<const MessageField> members{}; ///< for an array of structs: the fields of a struct
};

/// The directions in which a message is sent; `none`: no program sends it.
enum class MessageDirection : std::uint8_t { c2s, s2c, both, none };

/// Describes one message type: how it is identified, who sends it, and its fields.
struct MessageSpec {
    MessageId id = MessageId::other;
    std::uint16_t number = 0; ///< the id on the wire; 0 if the message is identified by a UUID
    bool system = false;
    MessageDirection direction = MessageDirection::both;
    bool vital = false;
    std::string_view name{};
    std::string_view uuid_name{};
    snapshot::Uuid uuid{};
    std::span<const MessageField> fields{};
    /// If secret, all fields without `always_shown` are hidden.
    Secrecy secrecy = Secrecy::open;
    /// The dialect in which `number` is the message's id. Messages with a UUID are the same in both
    /// dialects.
    snapshot::Dialect dialect = snapshot::Dialect::six;
    /// DDNet servers from this version on do not send the message; 0: all versions send it. Newer
    /// servers may use the number for another message.
    std::int32_t removed_in = 0;
};

/// Returns all known messages: first those of 0.6 and those with a UUID, then those of 0.7. A
/// message that exists in 0.6 and 0.7 has the same name in both.
[[nodiscard]] std::span<const MessageSpec> message_table();

/// Finds a message by its id on the wire; null if the id is unknown.
[[nodiscard]] const MessageSpec* find_message(bool system, std::uint16_t number,
                                              snapshot::Dialect dialect);
[[nodiscard]] const MessageSpec* find_message(const snapshot::Uuid& uuid);

/// Whether receivers process a message instead of ignoring it. They process it if its direction and
/// system flag are those of `spec`, and if it is vital or `spec` does not require that.
[[nodiscard]] constexpr bool is_processed_by_receivers(const MessageSpec& spec, bool system,
                                                       Direction direction, bool vital) {
    const MessageDirection side =
        direction == Direction::c2s ? MessageDirection::c2s : MessageDirection::s2c;
    // DDNet's clients accept map data in vital and in non-vital chunks.
    const bool reliable = vital || !spec.vital || spec.id == MessageId::map_data;
    return spec.system == system && reliable &&
           (spec.direction == MessageDirection::both || spec.direction == side);
}

class MessageSet;

/// The start of a chunk's payload: the id or UUID of a message, and the message type that it names.
struct MessageHeader {
    bool system = false;
    std::uint16_t number = 0; ///< the id on the wire; 0 if the message is identified by a UUID
    std::optional<snapshot::Uuid> uuid{};
    snapshot::Dialect dialect = snapshot::Dialect::six;
    const MessageSpec* spec = nullptr; ///< null if the id or UUID is unknown
    std::span<const std::byte> body{}; ///< the bytes after the header: the message's fields
    std::size_t header_size = 0;       ///< number of bytes before `body`
};

/// Decodes the id or UUID at the start of a chunk's payload and finds the message type.
/// Errors: message_id_invalid (also if the payload ends inside a UUID).
[[nodiscard]] Result<MessageHeader> decode_message_header(std::span<const std::byte> payload,
                                                          snapshot::Dialect dialect);
/// Like the function above, but also finds message types that a mod adds (`messages`).
[[nodiscard]] Result<MessageHeader> decode_message_header(std::span<const std::byte> payload,
                                                          snapshot::Dialect dialect,
                                                          const MessageSet& messages);

/// One decoded value, or a bracket that begins or ends an array or object. The fields of a message
/// are a flat list of FieldValues. An array is array_begin, its elements without names, then end.
/// An element of a struct array is object_begin, named values, then end.
struct FieldValue {
    enum class Kind : std::uint8_t {
        integer,
        boolean,
        string,
        raw,
        uuid,
        array_begin,
        object_begin,
        end,
    };

    Kind kind = Kind::integer;
    Secrecy secrecy = Secrecy::open;
    std::string_view name{};
    std::int64_t integer = 0;
    std::span<const std::byte> bytes{};         ///< bytes of a string (without NUL), raw or uuid
    const snapshot::NameTable* names = nullptr; ///< names of the integer's possible values, or null
    bool out_of_range = false;                  ///< game programs do not accept the value
    std::uint16_t offset = 0;                   ///< offset of the value in the body, in bytes
};

/// Whether a FieldType::decimal_string contains a text that is not a number. `value` is then this
/// text, as sent.
[[nodiscard]] constexpr bool is_malformed_number(const FieldValue& value) {
    return value.kind == FieldValue::Kind::string && value.out_of_range;
}

struct DecodedFields {
    std::vector<FieldValue> values;      ///< decode_fields clears this vector and reuses its memory
    std::span<const std::byte> trailing; ///< bytes after the last field; receivers ignore them
    /// Why decoding stopped; nullopt if it did not stop. After an error, `values` holds the fields
    /// before the error.
    std::optional<snapshot::DecodeError> error;
};

/// Decodes the body of a known message into `out`. After an error, `out` holds the fields before
/// the error, and the ends of open arrays and objects. Strings are the bytes as sent (text.h
/// sanitises them). Secret values are marked (secrets.h). Does not allocate once `out` has grown to
/// the largest message.
///
/// Errors: truncated, string_unterminated, length_out_of_range; offsets are relative to the body.
void decode_fields(const MessageSpec& spec, std::span<const std::byte> body, DecodedFields& out);

/// Returns true only if decode_fields would find no error, no trailing bytes, and no value out of
/// range. Always returns false for messages with unusual types of fields. This function is many
/// times faster than decode_fields.
[[nodiscard]] bool is_certainly_valid(const MessageSpec& spec, std::span<const std::byte> body);

/// Encodes a message with these values, for demos and tests; the inverse of decode_message_header
/// and decode_fields. Precondition: the values match the message's fields in order and are
/// integers, texts, bytes without a length field, or arrays of these.
[[nodiscard]] std::vector<std::byte> encode_message(const MessageSpec& spec,
                                                    std::span<const FieldValue> values);

/// Decodes a message or connless packet field by field. Private to this folder.
class FieldDecoder {
  public:
    /// `extra`: bytes 2..5 of the header of an extended connless packet, otherwise empty.
    FieldDecoder(std::span<const std::byte> body, std::span<const std::byte> extra,
                 DecodedFields& out, snapshot::Dialect dialect)
        : in_{body}, extra_{extra}, out_{out}, dialect_{dialect} {}

    void decode_all(std::span<const MessageField> fields);

  private:
    // NOLINTBEGIN(misc-no-recursion): an element of a list is never a list
    void decode_field(const MessageField& spec);
    void decode_array(const MessageField& spec);
    void decode_struct(std::span<const MessageField> members);
    void decode_addresses(const MessageField& spec);
    // NOLINTEND(misc-no-recursion)
    void add_missing_field(const MessageField& spec);
    void decode_integer(const MessageField& spec);
    void put_integer(const MessageField& spec, std::int64_t value, std::size_t offset);
    void decode_string(const MessageField& spec);
    void decode_raw(const MessageField& spec, FieldValue::Kind kind, std::int64_t size);
    void decode_decimal(const MessageField& spec);
    void decode_object(const MessageField& spec, std::string_view name, std::int64_t ints);
    void decode_object_field(const snapshot::FieldSpec& spec, std::int64_t ints);
    void decode_objects(const MessageField& spec);

    void begin_nested(FieldValue::Kind kind, std::string_view name);
    void end_nested();
    void put_value(FieldValue value, std::size_t offset);
    /// Returns the most recently decoded integer. It is the size or the element count of the field
    /// that is decoded next.
    [[nodiscard]] std::int64_t previous_integer() const;

    snapshot::Cursor in_;
    std::span<const std::byte> extra_;
    DecodedFields& out_;
    snapshot::Dialect dialect_; ///< the dialect of objects that the message contains
};

/// The message types that a mod adds to those of message_table().
class MessageSet {
  public:
    /// The maximum number of messages in the set. No known mod adds as many.
    static constexpr std::size_t kMaxCustom = 256;

    MessageSet() { custom_.reserve(kMaxCustom); }

    /// Returns a set to which no message was added.
    [[nodiscard]] static const MessageSet& standard();

    /// Adds a message. Returns false if the set is full, if the number or UUID was added before, if
    /// the message table has the UUID, or if the number is the id of a system message or of a
    /// message in MessageId. The texts and tables to which `message` refers must outlive the set.
    [[nodiscard]] bool add(const MessageSpec& message);

    /// Returns the added messages. Pointers to them stay valid when more messages are added.
    [[nodiscard]] std::span<const MessageSpec> custom() const { return custom_; }

    /// Finds an added message by its id or UUID; null if no such message was added.
    [[nodiscard]] const MessageSpec* find_added(bool system, std::uint16_t number,
                                                snapshot::Dialect dialect) const;
    [[nodiscard]] const MessageSpec* find_added(const snapshot::Uuid& uuid) const;

  private:
    std::vector<MessageSpec> custom_; ///< never reallocated: space for kMaxCustom is reserved
};

/// The objects and messages that twscope knows: the standard ones, and those that a mod's
/// description adds.
struct ModDescription {
    snapshot::ObjectSet objects{};
    MessageSet messages{};
    snapshot::SpecStorage storage{}; ///< owns the texts and tables of the added specs

    /// Returns only the standard objects and messages.
    [[nodiscard]] static const ModDescription& standard() {
        static const ModDescription description;
        return description;
    }
};

} // namespace tw::wire
