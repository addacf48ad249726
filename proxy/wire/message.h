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

/// For arrays with a place for each direction.
[[nodiscard]] constexpr std::size_t index_of(Direction direction) {
    return static_cast<std::size_t>(direction);
}

[[nodiscard]] constexpr Direction opposite(Direction direction) {
    return direction == Direction::c2s ? Direction::s2c : Direction::c2s;
}

/// Well-known messages the rest of the program acts on; every other one is only named.
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
    cl_command,     ///< of 0.7
    sv_client_info, ///< of 0.7
    sv_client_drop, ///< of 0.7
    sv_team,        ///< of 0.7
};

/// The three forms in which snapshots cross the wire.
[[nodiscard]] constexpr bool is_snapshot(MessageId id) {
    return id == MessageId::snap || id == MessageId::snap_empty || id == MessageId::snap_single;
}

enum class FieldType : std::uint8_t {
    integer,
    boolean,
    tick,
    string,
    raw, ///< as many bytes as the integer field before it says
    uuid,
    sha256,
    integers_until_end,
    strings_until_end,
    object,         ///< ints laid out as an object of snapshot/objects.h; the field before: bytes
    decimal_string, ///< connless: a number in ASCII
    server_addresses,
    clients,
    objects, ///< an array of objects; the field before: how many
    u8,
    u16_be,           ///< connless: one byte; two bytes, big-endian
    request_token,    ///< connless: one byte, above it 16 bits of an extended header
    clients_extended, ///< connless: as clients, every record with one more string, "reserved"
    clients_seven,    ///< connless, of 0.7: numbers are ints, not text
    raw_until_end,
    array, ///< `count` of `element`; count 0: as many as the integer field before says
};

/// What must not be shown unless asked for.
enum class Secrecy : std::uint8_t { open, secret };

struct MessageField {
    std::string_view name{};
    FieldType type = FieldType::integer;
    bool optional = false;
    Secrecy secrecy = Secrecy::open;
    bool shown = false;           ///< in a secret message: may be shown nevertheless
    std::int64_t min = INT32_MIN; ///< what the reference reader accepts
    std::int64_t max = INT32_MAX;
    const snapshot::NameTable* names = nullptr;
    std::uint8_t sanitize = 0; ///< string cleaning flags of section 3.2
    std::string_view object{}; ///< for FieldType::object: its name in the object table
    /// What readers take for an optional integer that is not there; without one it is left out.
    std::optional<std::int32_t> default_value{};
    FieldType element = FieldType::integer; ///< of an array
    std::uint8_t count = 0;                 ///< of an array
};

enum class Who : std::uint8_t { c2s, s2c, both, none };

/// All that is known of one message. The table is the only place that knows.
struct MessageSpec {
    MessageId id = MessageId::other;
    std::uint16_t number = 0; ///< classic id, 0 for those with a UUID
    bool system = false;
    Who direction = Who::both;
    bool vital = false;
    std::string_view name{};
    std::string_view uuid_name{};
    snapshot::Uuid uuid{};
    std::span<const MessageField> fields{};
    /// Secret: nothing of it may be shown but the fields that say so.
    Secrecy secrecy = Secrecy::open;
    /// Of those with a number. Those with a UUID are the same in both.
    snapshot::Dialect dialect = snapshot::Dialect::six;
    /// The first DDNet version whose servers no longer send it, as clients announce versions; its
    /// number may mean anything there. 0: all of them do.
    std::int32_t until = 0;
};

/// Those of 0.6 and those with a UUID, then those of 0.7. What both have has one name.
[[nodiscard]] std::span<const MessageSpec> message_table();
[[nodiscard]] const MessageSpec* find_message(bool system, std::uint16_t number,
                                              snapshot::Dialect dialect);
[[nodiscard]] const MessageSpec* find_message(const snapshot::Uuid& uuid);

/// Whether this side sends the message, as one of this kind, and reliably where it has to. Receivers
/// ignore all others.
[[nodiscard]] constexpr bool is_expected(const MessageSpec& spec, bool system, Direction direction,
                                         bool vital) {
    const Who side = direction == Direction::c2s ? Who::c2s : Who::s2c;
    // DDNet's clients take a map's data either way.
    const bool reliable = vital || !spec.vital || spec.id == MessageId::map_data;
    return spec.system == system && reliable &&
           (spec.direction == Who::both || spec.direction == side);
}

class MessageSet;

/// The head of a chunk's payload.
struct MessageHead {
    bool system = false;
    std::uint16_t number = 0; ///< 0: extended
    std::optional<snapshot::Uuid> uuid{};
    snapshot::Dialect dialect = snapshot::Dialect::six;
    const MessageSpec* spec = nullptr; ///< null: unknown id or UUID
    std::span<const std::byte> body{}; ///< the fields
    std::size_t head_size = 0;         ///< bytes before the body
};

/// Errors: message_id_invalid (also for an extended head without 16 bytes of UUID).
[[nodiscard]] Result<MessageHead> decode_message_head(std::span<const std::byte> payload,
                                                      snapshot::Dialect dialect);
/// The same, where a mod may have described messages of its own.
[[nodiscard]] Result<MessageHead> decode_message_head(std::span<const std::byte> payload,
                                                      snapshot::Dialect dialect,
                                                      const MessageSet& messages);

/// One decoded value, or a bracket. A message's fields are a flat list in order: an array is
/// array_begin, its elements (without names), end; an element of a struct array is object_begin,
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
    const snapshot::NameTable* names = nullptr; ///< names behind the integer
    bool out_of_range = false;                  ///< outside what the reference reader accepts
    std::uint16_t offset = 0;                   ///< byte offset in the body
};

/// Whether this is text where a number should be: kept as it stands, like any text.
[[nodiscard]] constexpr bool is_unread_number(const FieldValue& value) {
    return value.kind == FieldValue::Kind::string && value.out_of_range;
}

struct DecodedFields {
    std::vector<FieldValue> values;      ///< reused; cleared by decode_fields
    std::span<const std::byte> trailing; ///< bytes behind the last field; readers ignore them
    std::optional<snapshot::DecodeError> error; ///< decoding stopped; values hold what came before
};

/// Decodes the body of a known message; never fails outright: what could be read stands in `out`.
/// Brackets are closed even where decoding stopped. Strings are bytes as they stand (text.h cleans
/// them). What must not be shown is marked secret (secrets.h). Allocates nothing once `out` has
/// grown to the largest message. Errors: truncated, string_unterminated, length_out_of_range; the
/// offset counts in the body.
void decode_fields(const MessageSpec& spec, std::span<const std::byte> body, DecodedFields& out);

/// Whether decode_fields would find no error, nothing behind the last field, and every value within
/// its range. Keeps no values.
[[nodiscard]] bool is_flawless(const MessageSpec& spec, std::span<const std::byte> body);

/// The bytes of a message with these values, as decode_message_head and decode_fields read them. For
/// demos and tests: no packet is made of them. Precondition: the values are those of the message's
/// fields, in their order, of integers, texts, bytes that need no length, or arrays of these.
[[nodiscard]] std::vector<std::byte> encode_message(const MessageSpec& spec,
                                                    std::span<const FieldValue> values);

/// Keeps what is decoded.
class KeptFields {
  public:
    explicit KeptFields(DecodedFields& out) : out_{&out} {}

    void begin() {
        out_->values.clear();
        out_->trailing = {};
        out_->error.reset();
    }

    void put(const FieldValue& value) { out_->values.push_back(value); }

    /// Of the latest value; 0 where it has none.
    [[nodiscard]] std::int64_t last_integer() const {
        return out_->values.empty() ? 0 : out_->values.back().integer;
    }

    void stop(const snapshot::DecodeError& error) { out_->error = error; }

    void end(std::span<const std::byte> trailing) { out_->trailing = trailing; }

  private:
    DecodedFields* out_;
};

/// Keeps nothing but whether there is anything to report.
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

/// Turns bytes into values, one field after the other, for `Values`: KeptFields or FlawSearch. What
/// messages and connless packets have in common; private to this folder.
template <class Values>
class FieldDecoder {
  public:
    /// `extra`: bytes 2..5 of an extended connless header, empty for everything else.
    FieldDecoder(std::span<const std::byte> body, std::span<const std::byte> extra, Values& out,
                 snapshot::Dialect dialect)
        : in_{body}, extra_{extra}, out_{out}, dialect_{dialect} {}

    /// Decodes all fields, then says what stands behind them or what stopped it.
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
    /// What the integer field in front of a raw or object field says.
    [[nodiscard]] std::int64_t previous_integer() const;

    snapshot::Cursor in_;
    std::span<const std::byte> extra_;
    Values& out_;
    snapshot::Dialect dialect_; ///< whose objects are meant
};

} // namespace tw::wire
