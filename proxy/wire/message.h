#pragma once

#include "proxy/wire/error.h"
#include "snapshot/cursor.h"
#include "snapshot/error.h"
#include "snapshot/objects.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tw::wire {

/// Which way a datagram goes: from the client to the server, or back.
enum class Direction : std::uint8_t { c2s, s2c };

/// Index into arrays with one element per direction.
[[nodiscard]] constexpr std::size_t index_of(Direction direction) {
    return static_cast<std::size_t>(direction);
}

[[nodiscard]] constexpr Direction opposite(Direction direction) {
    return direction == Direction::c2s ? Direction::s2c : Direction::c2s;
}

/// Messages the rest of the program handles; for all others only the name is known.
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
    raw, ///< length in bytes is the integer field before it
    uuid,
    sha256,
    integers_until_end,
    strings_until_end,
    object, ///< ints of an object (snapshot/objects.h); the field before is their size in bytes
    decimal_string, ///< connless: a number in ASCII
    server_addresses,
    clients,
    objects, ///< an array of objects; the field before is their number
    u8,
    u16_be,           ///< connless: one byte; two bytes, big-endian
    request_token,    ///< connless: one byte; bits 8 to 23 come from an extended header
    clients_extended, ///< connless: as `clients`, with one more string per client, "reserved"
    clients_seven,    ///< connless, 0.7: numbers are ints, not text
    raw_until_end,
    array, ///< `count` times `element`; count 0: the integer field before is the number
};

/// Whether a value is hidden unless the user asks for secrets.
enum class Secrecy : std::uint8_t { open, secret };

struct MessageField {
    std::string_view name{};
    FieldType type = FieldType::integer;
    bool optional = false;
    Secrecy secrecy = Secrecy::open;
    bool shown = false;           ///< may be shown even in a secret message
    std::int64_t min = INT32_MIN; ///< range that the reference reader accepts
    std::int64_t max = INT32_MAX;
    const snapshot::NameTable* names = nullptr;
    std::uint8_t sanitize = 0; ///< string cleaning flags, see text.h
    std::string_view object{}; ///< FieldType::object only: its name in the object table
    /// The value of a missing optional integer; nullopt: the field is left out.
    std::optional<std::int32_t> default_value{};
    FieldType element = FieldType::integer; ///< of an array
    std::uint8_t count = 0;                 ///< of an array
};

enum class Who : std::uint8_t { c2s, s2c, both, none };

/// Describes one message.
struct MessageSpec {
    MessageId id = MessageId::other;
    std::uint16_t number = 0; ///< classic id; 0 if the message has a UUID
    bool system = false;
    Who direction = Who::both;
    bool vital = false;
    std::string_view name{};
    std::string_view uuid_name{};
    snapshot::Uuid uuid{};
    std::span<const MessageField> fields{};
    /// Secret: only fields with `shown` may be shown.
    Secrecy secrecy = Secrecy::open;
    /// Dialect of a classic id. Messages with a UUID are the same in both dialects.
    snapshot::Dialect dialect = snapshot::Dialect::six;
    /// The first DDNet version whose servers no longer send the message; from then on, its number
    /// may mean anything. 0: all versions send it.
    std::int32_t until = 0;
};

/// All messages: 0.6 and UUID messages, then 0.7. A message in both dialects has the same name.
[[nodiscard]] std::span<const MessageSpec> message_table();
[[nodiscard]] const MessageSpec* find_message(bool system, std::uint16_t number,
                                              snapshot::Dialect dialect);
[[nodiscard]] const MessageSpec* find_message(const snapshot::Uuid& uuid);

/// Whether `direction` is the message's direction, its system flag is right, and it is vital if
/// required. Receivers ignore all other messages.
[[nodiscard]] constexpr bool is_expected(const MessageSpec& spec, bool system, Direction direction,
                                         bool vital) {
    const Who side = direction == Direction::c2s ? Who::c2s : Who::s2c;
    // DDNet's clients accept map data vital or not.
    const bool reliable = vital || !spec.vital || spec.id == MessageId::map_data;
    return spec.system == system && reliable &&
           (spec.direction == Who::both || spec.direction == side);
}

class MessageSet;

/// The head of a chunk's payload.
struct MessageHead {
    bool system = false;
    std::uint16_t number = 0; ///< 0: the message has a UUID
    std::optional<snapshot::Uuid> uuid{};
    snapshot::Dialect dialect = snapshot::Dialect::six;
    const MessageSpec* spec = nullptr; ///< null if the id or UUID is unknown
    std::span<const std::byte> body{}; ///< the fields
    std::size_t head_size = 0;         ///< bytes before the body
};

/// Errors: message_id_invalid (also for an extended head without 16 bytes of UUID).
[[nodiscard]] Result<MessageHead> decode_message_head(std::span<const std::byte> payload,
                                                      snapshot::Dialect dialect);
/// Also finds messages that a mod describes.
[[nodiscard]] Result<MessageHead> decode_message_head(std::span<const std::byte> payload,
                                                      snapshot::Dialect dialect,
                                                      const MessageSet& messages);

/// One decoded value or a bracket. A message's fields are a flat list in order. An array is
/// array_begin, its elements without names, end. An element of a struct array is object_begin,
/// named values, end.
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
    std::span<const std::byte> bytes{};         ///< string (without NUL), raw, uuid
    const snapshot::NameTable* names = nullptr; ///< names of the integer's values
    bool out_of_range = false; ///< outside the range that the reference reader accepts
    std::uint16_t offset = 0;  ///< byte offset in the body
};

/// Whether the value is a text that should be a number. It is kept unchanged.
[[nodiscard]] constexpr bool is_unread_number(const FieldValue& value) {
    return value.kind == FieldValue::Kind::string && value.out_of_range;
}

struct DecodedFields {
    std::vector<FieldValue> values;      ///< reused; cleared by decode_fields
    std::span<const std::byte> trailing; ///< bytes after the last field, which readers ignore
    /// Set if decoding stopped; `values` holds the fields before.
    std::optional<snapshot::DecodeError> error;
};

/// Decodes the body of a known message into `out`. After an error, `out` holds the fields before
/// it, with all brackets closed. Strings are unchanged bytes (text.h cleans them). Secret values
/// are marked (secrets.h). Does not allocate once `out` has grown to the largest message. Errors:
/// truncated, string_unterminated, length_out_of_range; offsets are relative to the body.
void decode_fields(const MessageSpec& spec, std::span<const std::byte> body, DecodedFields& out);

/// Whether decode_fields finds no error, no trailing bytes, and no value out of range. Keeps no
/// values.
[[nodiscard]] bool is_flawless(const MessageSpec& spec, std::span<const std::byte> body);

/// Encodes a message with these values, for demos and tests; the inverse of decode_message_head and
/// decode_fields. Precondition: the values match the message's fields in order and are integers,
/// texts, bytes without a length field, or arrays of these.
[[nodiscard]] std::vector<std::byte> encode_message(const MessageSpec& spec,
                                                    std::span<const FieldValue> values);

/// Collects the decoded values.
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

/// Keeps no values; only notes whether any is flawed.
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

/// Decodes bytes into values, field by field. `Values`: KeptFields or FlawSearch. Shared by
/// messages and connless packets; private to this folder.
template <class Values>
class FieldDecoder {
  public:
    /// `extra`: bytes 2..5 of an extended connless header, else empty.
    FieldDecoder(std::span<const std::byte> body, std::span<const std::byte> extra, Values& out,
                 snapshot::Dialect dialect)
        : in_{body}, extra_{extra}, out_{out}, dialect_{dialect} {}

    /// Decodes all fields, then reports trailing bytes or the error.
    void run(std::span<const MessageField> fields);

  private:
    // NOLINTBEGIN(misc-no-recursion): the elements of a list are no lists
    void field(const MessageField& spec);
    void until_end(const MessageField& spec);
    void array(const MessageField& spec);
    void clients(const MessageField& spec);
    void addresses(const MessageField& spec);
    // NOLINTEND(misc-no-recursion)
    void missing(const MessageField& spec);
    void integer(const MessageField& spec);
    void fixed(const MessageField& spec, std::int64_t value, std::size_t offset);
    void string(const MessageField& spec);
    void raw(const MessageField& spec, FieldValue::Kind kind, std::int64_t size);
    void decimal(const MessageField& spec);
    void object(const MessageField& spec, std::string_view name, std::int64_t ints);
    void object_field(const snapshot::FieldSpec& spec, std::int64_t ints);
    void objects(const MessageField& spec);

    void open(FieldValue::Kind kind, std::string_view name);
    void close();
    void put(FieldValue value, std::size_t offset);
    /// The value of the integer field before a raw or object field.
    [[nodiscard]] std::int64_t previous_integer() const;

    snapshot::Cursor in_;
    std::span<const std::byte> extra_;
    Values& out_;
    snapshot::Dialect dialect_; ///< dialect of the objects
};

} // namespace tw::wire
