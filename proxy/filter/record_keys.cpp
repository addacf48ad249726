// The keys of whole records, from their schemas.

#include "proxy/filter/schema_keys.h"

namespace tw::filter {

using record::Record;

namespace {

constexpr std::size_t kTypes = std::variant_size_v<Record>;
using KeysByType = std::array<std::vector<SchemaKey>, kTypes>;

template <std::size_t kType>
std::vector<SchemaKey> make_keys() {
    KeyGatherer keys;
    keys.add(
        {},
        [](const Record& record) {
            return std::optional{record::TypedHead{&std::get<kType>(record)->head, kType}};
        },
        record::kHeadSchema);
    using Concrete = std::remove_cvref_t<decltype(*std::get<kType>(Record{}))>;
    keys.add(
        {}, [](const Record& record) { return std::get<kType>(record); },
        record::schema_of(Concrete{}));
    return keys.take();
}

template <std::size_t... kType>
KeysByType make_all_keys(std::index_sequence<kType...> /*unused*/) {
    return {make_keys<kType>()...};
}

const KeysByType& keys_by_type() {
    static const KeysByType kKeys = make_all_keys(std::make_index_sequence<kTypes>{});
    return kKeys;
}

std::optional<std::size_t> find_row(const std::vector<SchemaKey>& keys, std::string_view name) {
    const auto found = std::find_if(keys.begin(), keys.end(),
                                    [&](const SchemaKey& key) { return key.name == name; });
    return found == keys.end() ? std::nullopt
                               : std::optional{static_cast<std::size_t>(found - keys.begin())};
}

} // namespace

bool find_record_rows(Key& key) {
    std::size_t types = 0;
    for (std::size_t type = 0; type < kTypes; ++type) {
        key.rows[type] = Key::kNoRow;
        const auto row = find_row(keys_by_type()[type], key.name);
        if (!row) {
            continue;
        }
        key.rows[type] = static_cast<std::int16_t>(*row);
        const KeyKind kind = keys_by_type()[type][*row].kind;
        key.kind = types != 0 && key.kind != kind ? KeyKind::any : kind;
        ++types;
    }
    key.common = types == kTypes;
    return types != 0;
}

Found read_record(const Key& key, const Record& record, bool show_secrets, Scratch& scratch) {
    const std::int16_t row = key.rows[record.index()];
    return row == Key::kNoRow ? std::nullopt
                              : keys_by_type()[record.index()][static_cast<std::size_t>(row)].read(
                                    record, {scratch, show_secrets});
}

void add_record_keys(std::vector<std::string>& names) {
    for (const auto& keys : keys_by_type()) {
        for (const SchemaKey& key : keys) {
            names.push_back(key.name);
        }
    }
}

std::vector<std::string_view> record_words(std::string_view key) {
    for (const auto& keys : keys_by_type()) {
        const auto row = find_row(keys, key);
        if (row && !keys[*row].words.empty()) {
            return keys[*row].words;
        }
    }
    return {};
}

} // namespace tw::filter
