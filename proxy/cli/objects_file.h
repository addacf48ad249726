#pragma once

#include "proxy/wire/message.h"
#include "snapshot/objects.h"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json.hpp>

namespace tw::cli {

class Command;

/// Adds --objects. `use`: the end of the help's first sentence, which says what the file is for.
void add_objects_flag(Command& command, std::string& file, const std::string& use = {});

/// Adds the objects and messages described in a mod's JSON file (snapshot/OBJECTS.md). Does nothing
/// for an empty path.
/// Errors: UsageError that names the file, the wrong entry, and the problem.
void read_objects_file(const std::string& path, wire::ModDescription& mod);

/// Reads the members of an object in a JSON file. Every error is a UsageError that names the flag,
/// the file, the wrong entry, and what is expected.
class JsonReader {
  public:
    /// `where`: the prefix of errors, such as "--objects mod.json, object 3".
    JsonReader(std::string where, const boost::json::object& object)
        : where_{std::move(where)}, object_{&object} {}

    [[noreturn]] void fail(std::string_view what) const;
    /// Fails if the object has a key that is not in `keys`.
    void require_known_keys(std::initializer_list<std::string_view> keys) const;

    [[nodiscard]] bool has(std::string_view key) const { return object_->contains(key); }

    /// Returns a text that must not be empty.
    [[nodiscard]] std::string text(std::string_view key) const;
    /// Returns a text that records and filters can use as a key: letters, digits and '_'.
    [[nodiscard]] std::string name(std::string_view key) const;
    /// Returns one of `words`; the first one if the key is missing.
    [[nodiscard]] std::string word(std::string_view key,
                                   std::initializer_list<std::string_view> words) const;
    [[nodiscard]] std::int64_t number(std::string_view key, std::int64_t min, std::int64_t max,
                                      std::int64_t fallback) const;
    /// Returns a true or false value; false if the key is missing.
    [[nodiscard]] bool flag(std::string_view key) const;

    /// The value of a key; null if it is missing.
    [[nodiscard]] const boost::json::value* value(std::string_view key) const {
        return object_->if_contains(key);
    }

    [[nodiscard]] const boost::json::object* object(std::string_view key) const;
    /// Returns readers for a list of objects; none if the key is missing. In errors, an object is
    /// named by `what` and its index.
    [[nodiscard]] std::vector<JsonReader> elements(std::string_view key,
                                                   std::string_view what) const;

    [[nodiscard]] const std::string& where() const { return where_; }

  private:
    std::string where_;
    const boost::json::object* object_;
};

/// How a file identifies an object or a message: by a number of a protocol, or by a UUID.
struct TypeIdentifier {
    std::uint16_t number = 0; ///< 0 if there is a UUID
    snapshot::Dialect dialect = snapshot::Dialect::six;
    snapshot::Uuid uuid{};
    std::string uuid_name{}; ///< the name that the UUID was made from; empty if there is none
};

/// The UUID of a name like "object@infclass", as game programs compute it: version 3 (MD5) in
/// the namespace e05ddaaa-c4e6-4cfb-b642-5d48e80c0029 (DDNet's CalculateUuid).
[[nodiscard]] snapshot::Uuid uuid_of_name(std::string_view name);

/// Reads an identifier: the key that `number` names and the key `protocol`, or the key `uuid`,
/// which contains a UUID or a name from which a UUID is made. `what`: what is identified, such as
/// "an object".
[[nodiscard]] TypeIdentifier parse_identifier(const JsonReader& in, std::string_view number,
                                              std::uint16_t max, std::string_view what);

/// Reads the key `names`, a JSON object that maps numbers to names.
[[nodiscard]] std::vector<snapshot::NamedValue> parse_value_names(const JsonReader& in,
                                                                  snapshot::SpecStorage& storage);

/// Adds a message from an element of the list `messages` in a mod's description
/// (snapshot/OBJECTS.md).
void add_message(const JsonReader& in, wire::ModDescription& mod);

} // namespace tw::cli
