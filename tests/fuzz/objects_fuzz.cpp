#include "proxy/cli/objects_file.h"
#include "proxy/cli/settings.h"
#include "snapshot/object_set.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/memory_file.h"

#include <cstddef>
#include <cstdint>
#include <string>

/// A mod's description of its objects. What is taken from it can be found again and points inside
/// its items; what is not is an error that names the file.
namespace {

using namespace tw::snapshot;
using tw::fuzz::demand;

void check(const ObjectSet& objects, const ObjectSpec& spec) {
    demand(!spec.name.empty());
    demand((spec.type != 0 ? objects.find(spec.type, tw::snapshot::Dialect::six)
                           : objects.find(spec.uuid)) == &spec);
    for (const FieldSpec& field : spec.fields) {
        demand(field.count >= 1 && field.offset + field.count <= spec.size);
    }
    if (spec.position) {
        demand(spec.position->x < spec.size && spec.position->y < spec.size);
        demand(spec.position->per_unit != 0);
    }
    demand(objects.index_of(spec) >= ObjectSet::standard().custom().size());
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const tw::fuzz::MemoryFile file{data, size};
    ObjectSet objects;
    try {
        tw::cli::read_objects_file(file.path(), objects);
    } catch (const tw::cli::UsageError& error) {
        demand(std::string{error.what()}.find(file.path()) != std::string::npos);
    }
    for (const ObjectSpec& spec : objects.custom()) {
        check(objects, spec);
    }
    return 0;
}
