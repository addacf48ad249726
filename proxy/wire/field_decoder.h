#pragma once

#include "proxy/wire/message.h"
#include "snapshot/cursor.h"
#include "snapshot/objects.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tw::wire {

/// Turns bytes into the flat value list of `DecodedFields`, one field after the other. What
/// messages and connless packets have in common; private to this folder.
class FieldDecoder {
  public:
    /// `extra`: bytes 2..5 of an extended connless header, empty for everything else.
    FieldDecoder(std::span<const std::byte> body, std::span<const std::byte> extra,
                 DecodedFields& out, snapshot::Dialect dialect)
        : in_{body}, extra_{extra}, out_{out}, dialect_{dialect} {}

    /// Decodes all fields, then sets `trailing` or `error`.
    void run(std::span<const MessageField> fields);

  private:
    void field(const MessageField& spec);
    void missing(const MessageField& spec);
    void integer(const MessageField& spec);
    void fixed(const MessageField& spec, std::int64_t value, std::size_t offset);
    void string(const MessageField& spec);
    void raw(const MessageField& spec, FieldValue::Kind kind, std::int64_t size);
    void decimal(const MessageField& spec);
    void until_end(const MessageField& spec);
    void array(const MessageField& spec);
    void object(const MessageField& spec, std::string_view name, std::int64_t ints);
    void object_field(const snapshot::FieldSpec& spec, std::int64_t ints);
    void objects(const MessageField& spec);
    void clients(const MessageField& spec);
    void addresses(const MessageField& spec);

    void open(FieldValue::Kind kind, std::string_view name);
    void close();
    void put(FieldValue value, std::size_t offset);
    /// What the integer field in front of a raw or object field says.
    [[nodiscard]] std::int64_t previous_integer() const;

    snapshot::Cursor in_;
    std::span<const std::byte> extra_;
    DecodedFields& out_;
    snapshot::Dialect dialect_; ///< whose objects are meant
};

} // namespace tw::wire
