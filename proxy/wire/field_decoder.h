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
