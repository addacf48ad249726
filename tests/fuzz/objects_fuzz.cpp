#include "proxy/cli/flags.h"
#include "proxy/cli/objects_file.h"
#include "proxy/wire/message.h"
#include "snapshot/objects.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/memory_file.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

/// The input is a mod's description of its objects and messages. Accepted descriptions must be found
/// again and have fields inside their items; a rejected file must give an error that names the file.
namespace {

using namespace tw::snapshot;
using tw::fuzz::demand;
using tw::wire::MessageSet;
using tw::wire::MessageSpec;

void check(const ObjectSet& objects, const ObjectSpec& spec) {
    demand(!spec.name.empty());
    demand((spec.type != 0 ? objects.find(spec.type, spec.dialect) : objects.find(spec.uuid)) ==
           &spec);
    for (const FieldSpec& field : spec.fields) {
        demand(field.count >= 1 && field.offset + field.count <= spec.size);
    }
    if (spec.position) {
        demand(spec.position->x < spec.size && spec.position->y < spec.size);
        demand(spec.position->per_unit != 0);
    }
    demand(!spec.client || !spec.client->field || *spec.client->field < spec.size);
    demand(objects.index_of(spec) >= ObjectSet::standard().custom().size());
}

/// Decodes arbitrary bytes by a message of the description.
void check(const MessageSet& messages, const MessageSpec& spec, std::span<const std::byte> bytes) {
    demand(!spec.name.empty());
    demand((spec.number != 0 ? messages.find_added(spec.system, spec.number, spec.dialect)
                             : messages.find_added(spec.uuid)) == &spec);
    tw::wire::DecodedFields fields;
    tw::wire::decode_fields(spec, bytes, fields);
    const bool flawed = fields.error || !fields.trailing.empty() ||
                        std::ranges::any_of(fields.values, &tw::wire::FieldValue::out_of_range);
    demand(!flawed || !tw::wire::is_certainly_valid(spec, bytes));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const tw::fuzz::MemoryFile file{data, size};
    tw::wire::ModDescription mod;
    try {
        tw::cli::read_objects_file(file.path(), mod);
    } catch (const tw::cli::UsageError& error) {
        demand(std::string{error.what()}.find(file.path()) != std::string::npos);
    }
    for (const ObjectSpec& spec : mod.objects.custom()) {
        check(mod.objects, spec);
    }
    for (const MessageSpec& spec : mod.messages.custom()) {
        check(mod.messages, spec, std::as_bytes(std::span{data, size}));
    }
    return 0;
}
