// The keys of whole records, from their schemas.

#include "proxy/filter/schema_keys.h"

namespace tw::filter {

using record::Record;

namespace {

constexpr std::size_t kTypes = std::variant_size_v<Record>;
using KeysByType = std::array<SchemaKeys<Record>, kTypes>;

template <std::size_t kType>
SchemaKeys<Record> make_keys() {
    KeyGatherer<Record> keys;
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
    static const KeysByType all = make_all_keys(std::make_index_sequence<kTypes>{});
    return all;
}

} // namespace

bool find_record_rows(Key& key) {
    std::size_t types = 0;
    for (std::size_t type = 0; type < kTypes; ++type) {
        const std::int16_t row = row_of(keys_by_type()[type], key.name);
        key.rows[type] = row;
        if (row == Key::kNoRow) {
            continue;
        }
        const KeyKind kind = keys_by_type()[type][static_cast<std::size_t>(row)].kind;
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
        for (const auto& key : keys) {
            names.push_back(key.name);
        }
    }
}

std::vector<std::string_view> record_words(std::string_view key) {
    for (const auto& keys : keys_by_type()) {
        const std::int16_t row = row_of(keys, key);
        if (row != Key::kNoRow && !keys[static_cast<std::size_t>(row)].words.empty()) {
            return keys[static_cast<std::size_t>(row)].words;
        }
    }
    return {};
}

} // namespace tw::filter
