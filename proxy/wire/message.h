#pragma once

#include "proxy/wire/error.h"
#include "snapshot/cursor.h"
#include "snapshot/error.h"
#include "snapshot/objects.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tw::wire {

/// The direction of a datagram: client to server (c2s) or server to client (s2c).
enum class Direction : std::uint8_t { c2s, s2c };

/// Index into arrays with one element per direction.
[[nodiscard]] constexpr std::size_t index_of(Direction direction) {
    return static_cast<std::size_t>(direction);
}

[[nodiscard]] constexpr Direction opposite(Direction direction) {
    return direction == Direction::c2s ? Direction::s2c : Direction::c2s;
}

/// Messages whose content the rest of the program uses. Other messages are only decoded and
/// recorded.
enum class MessageId : std::uint8_t {
    other,
    info,
    map_change,
    map_data,
    con_ready,
    snap,
    snap_empty,
    snap_single,
    input_timing,
    ready,
    enter_game,
    input,
    rcon_auth,
    rcon_cmd,
    request_map_data,
    map_details,
    capabilities,
    client_version,
    sv_tune_params,
    sv_ready_to_enter,
    sv_chat,
    cl_say,
    cl_start_info,
    cl_command,     ///< 0.7 only
    sv_client_info, ///< 0.7 only
    sv_client_drop, ///< 0.7 only
    sv_team,        ///< 0.7 only
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
    raw, ///< bytes; the integer field before them holds their number
    uuid,
    sha256,
    integers_until_end,
    strings_until_end,
    object,         ///< the ints of an object; the field before them holds their size in bytes
    decimal_string, ///< connless: a number in ASCII
    server_addresses,
    clients,
    objects, ///< an array of objects; the integer field before it holds their number
    u8,
    u16_be,           ///< connless: two bytes, big-endian
    request_token,    ///< connless: one byte; bits 8 to 23 come from an extended header
    clients_extended, ///< connless: like `clients`; one more string, "reserved", per client
    clients_seven,    ///< connless, 0.7: like `clients`, but numbers are varints
    raw_until_end,
    /// MessageField::count elements of the type MessageField::element. If `count` is 0, the integer
    /// field before the array holds the number of elements.
    array,
};

/// Whether a value must be hidden. Secret values are shown only if the user asks for secrets.
enum class Secrecy : std::uint8_t { open, secret };

struct MessageField {
    std::string_view name{};
    FieldType type = FieldType::integer;
    bool optional = false;
    Secrecy secrecy = Secrecy::open;
    bool shown = false;           ///< the field may be shown even in a secret message
    std::int64_t min = INT32_MIN; ///< the reference reader accepts values from `min` to `max`
    std::int64_t max = INT32_MAX;
    const snapshot::NameTable* names = nullptr;
    std::uint8_t sanitize = 0; ///< string cleaning flags, see text.h
    std::string_view object{}; ///< for FieldType::object: the object's name in the object table
    /// The value of a missing optional integer; nullopt: the field is left out.
    std::optional<std::int32_t> default_value{};
    FieldType element = FieldType::integer; ///< for an array: type of its elements
    std::uint8_t count = 0; ///< for an array: number of elements; 0: the field before it holds this
};

/// The directions in which a message is sent.
enum class MessageDirection : std::uint8_t { c2s, s2c, both, none };

/// Describes one message.
struct MessageSpec {
    MessageId id = MessageId::other;
    std::uint16_t number = 0; ///< classic id; 0 if the message has a UUID
    bool system = false;
    MessageDirection direction = MessageDirection::both;
    bool vital = false;
    std::string_view name{};
    std::string_view uuid_name{};
    snapshot::Uuid uuid{};
    std::span<const MessageField> fields{};
    /// If secret, only fields with `shown` may be shown.
    Secrecy secrecy = Secrecy::open;
    /// The dialect in which `number` is the message's id. Messages with a UUID are the same in both
    /// dialects.
    snapshot::Dialect dialect = snapshot::Dialect::six;
    /// The first DDNet version whose servers no longer send the message; 0: all versions send it. From
    /// this version on, the number may be that of any other message.
    std::int32_t until = 0;
};

/// All known messages: 0.6 messages and messages with a UUID, then 0.7 messages. A message that
/// exists in both dialects has the same name in both.
[[nodiscard]] std::span<const MessageSpec> message_table();
[[nodiscard]] const MessageSpec* find_message(bool system, std::uint16_t number,
                                              snapshot::Dialect dialect);
[[nodiscard]] const MessageSpec* find_message(const snapshot::Uuid& uuid);

/// Whether receivers process the message: it comes in its direction, with its system flag, and vital
/// if that is required. Receivers ignore all other messages.
[[nodiscard]] constexpr bool is_expected(const MessageSpec& spec, bool system, Direction direction,
                                         bool vital) {
    const MessageDirection side =
        direction == Direction::c2s ? MessageDirection::c2s : MessageDirection::s2c;
    // DDNet's clients accept map data in vital and in other chunks.
    const bool reliable = vital || !spec.vital || spec.id == MessageId::map_data;
    return spec.system == system && reliable &&
           (spec.direction == MessageDirection::both || spec.direction == side);
}

class MessageSet;

/// The head of a chunk's payload.
struct MessageHead {
    bool system = false;
    std::uint16_t number = 0; ///< id on the wire; 0 if the message has a UUID
    std::optional<snapshot::Uuid> uuid{};
    snapshot::Dialect dialect = snapshot::Dialect::six;
    const MessageSpec* spec = nullptr; ///< null if the id or UUID is unknown
    std::span<const std::byte> body{}; ///< the bytes of the fields
    std::size_t head_size = 0;         ///< bytes before the body
};

/// Decodes the id or UUID at the start of a chunk's payload and finds the message.
/// Errors: message_id_invalid (also if the payload ends inside a UUID).
[[nodiscard]] Result<MessageHead> decode_message_head(std::span<const std::byte> payload,
                                                      snapshot::Dialect dialect);
/// Like the function above, but also finds the messages of a mod's description.
[[nodiscard]] Result<MessageHead> decode_message_head(std::span<const std::byte> payload,
                                                      snapshot::Dialect dialect,
                                                      const MessageSet& messages);

/// One decoded value, or a bracket that begins or ends an array or object. The fields of a message are
/// a flat list of FieldValues. An array is array_begin, its elements without names, then end. An
/// element of a struct array is object_begin, named values, then end.
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
    const snapshot::NameTable* names = nullptr; ///< names of the integer's values
    bool out_of_range = false;                  ///< the reference reader does not accept the value
    std::uint16_t offset = 0;                   ///< byte offset in the body
};

/// Whether the value of a FieldType::decimal_string is a text that is not a number. The text is kept
/// as sent.
[[nodiscard]] constexpr bool is_unread_number(const FieldValue& value) {
    return value.kind == FieldValue::Kind::string && value.out_of_range;
}

struct DecodedFields {
    std::vector<FieldValue> values;      ///< cleared by decode_fields, which reuses its memory
    std::span<const std::byte> trailing; ///< bytes after the last field, which readers ignore
    /// Why decoding stopped; nullopt if it did not stop. After an error, `values` holds the fields
    /// before the error.
    std::optional<snapshot::DecodeError> error;
};

/// Decodes the body of a known message into `out`. After an error, `out` holds the fields before
/// it, with all brackets closed. Strings are the bytes as sent (text.h sanitises them). Secret
/// values are marked (secrets.h). Does not allocate once `out` has grown to the largest message.
///
/// Errors: truncated, string_unterminated, length_out_of_range; offsets are relative to the body.
void decode_fields(const MessageSpec& spec, std::span<const std::byte> body, DecodedFields& out);

/// Whether decode_fields would find no error, no trailing bytes, and no value out of range. Does
/// not store values.
[[nodiscard]] bool is_flawless(const MessageSpec& spec, std::span<const std::byte> body);

/// Encodes a message with these values, for demos and tests; the inverse of decode_message_head and
/// decode_fields. Precondition: the values match the message's fields in order and are integers,
/// texts, bytes without a length field, or arrays of these.
[[nodiscard]] std::vector<std::byte> encode_message(const MessageSpec& spec,
                                                    std::span<const FieldValue> values);

/// Receives the values of a FieldDecoder and stores them.
class KeptFields {
  public:
    explicit KeptFields(DecodedFields& out) : out_{&out} {}

    void begin() {
        out_->values.clear();
        out_->trailing = {};
        out_->error.reset();
    }

    void put(const FieldValue& value) { out_->values.push_back(value); }

    /// The integer of the last value; 0 if there is none.
    [[nodiscard]] std::int64_t last_integer() const {
        return out_->values.empty() ? 0 : out_->values.back().integer;
    }

    void stop(const snapshot::DecodeError& error) { out_->error = error; }

    void end(std::span<const std::byte> trailing) { out_->trailing = trailing; }

  private:
    DecodedFields* out_;
};

/// Receives the values of a FieldDecoder without storing them. found() tells whether there was an
/// error, a trailing byte or a value out of range.
class FlawSearch {
  public:
    void begin() { *this = {}; }

    void put(const FieldValue& value) {
        found_ = found_ || value.out_of_range;
        last_integer_ = value.integer;
    }

    [[nodiscard]] std::int64_t last_integer() const { return last_integer_; }

    void stop(const snapshot::DecodeError& /*error*/) { found_ = true; }

    void end(std::span<const std::byte> trailing) { found_ = found_ || !trailing.empty(); }

    [[nodiscard]] bool found() const { return found_; }

  private:
    bool found_ = false;
    std::int64_t last_integer_ = 0;
};

/// Decodes the bytes of a message or connless packet into values, field by field. `Values`:
/// KeptFields or FlawSearch. Private to this folder.
template <class Values>
class FieldDecoder {
  public:
    /// Starts decoding `body`. `extra`: bytes 2..5 of an extended connless header, else empty.
    FieldDecoder(std::span<const std::byte> body, std::span<const std::byte> extra, Values& out,
                 snapshot::Dialect dialect)
        : in_{body}, extra_{extra}, out_{out}, dialect_{dialect} {}

    /// Decodes all fields, then passes trailing bytes or the error to the values.
    void decode_all(std::span<const MessageField> fields);

  private:
    // NOLINTBEGIN(misc-no-recursion): an element of a list is never a list
    void decode_field(const MessageField& spec);
    void decode_until_end(const MessageField& spec);
    void decode_array(const MessageField& spec);
    void decode_clients(const MessageField& spec);
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
    /// The value of the integer field before a raw or object field.
    [[nodiscard]] std::int64_t previous_integer() const;

    snapshot::Cursor in_;
    std::span<const std::byte> extra_;
    Values& out_;
    snapshot::Dialect dialect_; ///< the dialect of the objects in the fields
};

/// A message that a mod adds, as the mod's description declares it. Owns its texts and names.
struct CustomMessage {
    struct Field {
        std::string name;
        FieldType type = FieldType::integer;
        bool optional = false;
        bool secret = false;
        bool flags = false;
        std::vector<std::pair<std::int64_t, std::string>> names{};
    };

    std::uint16_t number = 0; ///< id on the wire; 0 if the message has a UUID
    snapshot::Uuid uuid{};
    std::string name;
    std::string uuid_name{}; ///< the text from which the UUID is derived; empty if unknown
    bool system = false;
    MessageDirection direction = MessageDirection::both;
    bool secret = false;
    std::vector<Field> fields{};
    snapshot::Dialect dialect = snapshot::Dialect::six; ///< the dialect to which `number` belongs
};

/// The messages that a mod adds to the message table.
class MessageSet {
  public:
    /// The most messages that can be added. No known mod has as many.
    static constexpr std::size_t kMaxCustom = 256;

    MessageSet() { custom_.reserve(kMaxCustom); }

    /// A set without added messages.
    [[nodiscard]] static const MessageSet& standard();

    /// Adds a message. Returns false if the set is full, if the number or UUID was added before, if
    /// the message table has the UUID, or if the number is the id of a message in MessageId.
    [[nodiscard]] bool add(const CustomMessage& message);

    /// The added messages. Pointers to them stay valid.
    [[nodiscard]] std::span<const MessageSpec> custom() const { return custom_; }

    /// Finds an added message; null if there is none.
    [[nodiscard]] const MessageSpec* find_added(bool system, std::uint16_t number,
                                                snapshot::Dialect dialect) const;
    [[nodiscard]] const MessageSpec* find_added(const snapshot::Uuid& uuid) const;

  private:
    /// The texts and names that a custom spec points at.
    struct OwnedTexts {
        CustomMessage message;
        std::vector<MessageField> fields;
        std::deque<std::vector<snapshot::NamedValue>> values;
        std::deque<snapshot::NameTable> tables;
    };

    std::vector<MessageSpec> custom_; ///< never reallocated: room for kMaxCustom is reserved
    std::vector<std::unique_ptr<OwnedTexts>> owned_;
};

/// The objects and messages that twscope knows: the standard ones, and those that a mod's description
/// adds.
struct ModDescription {
    snapshot::ObjectSet objects{};
    MessageSet messages{};

    /// The standard objects and messages, without a mod's.
    [[nodiscard]] static const ModDescription& standard() {
        static const ModDescription description;
        return description;
    }
};

} // namespace tw::wire
