#include "tests/map/writer.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string_view>

#include <zlib.h>

namespace tw::map::test {
namespace {

constexpr std::size_t kHeaderBytes = 36;

/// The header field `size` does not include the magic, version, size and swaplen.
constexpr std::size_t kUncountedBytes = 16;

void put(std::vector<std::byte>& out, std::size_t value) {
    for (const unsigned shift : {0U, 8U, 16U, 24U}) {
        out.push_back(static_cast<std::byte>(value >> shift & 0xffU));
    }
}

void put(std::vector<std::byte>& out, std::int32_t value) {
    put(out, static_cast<std::size_t>(static_cast<std::uint32_t>(value)));
}

} // namespace

void DatafileWriter::add_item(std::uint16_t type, std::uint16_t id,
                              std::span<const std::int32_t> ints) {
    items_.push_back({type, id, {ints.begin(), ints.end()}});
}

std::int32_t DatafileWriter::add_block(std::span<const std::byte> bytes) {
    if (version_ == 3) {
        return add_stored_block(bytes, static_cast<std::uint32_t>(bytes.size()));
    }
    uLongf length = compressBound(static_cast<uLong>(bytes.size()));
    std::vector<std::byte> stored(length);
    compress2(reinterpret_cast<Bytef*>(stored.data()), &length,
              reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uLong>(bytes.size()),
              Z_DEFAULT_COMPRESSION);
    return add_stored_block(std::span{stored}.first(length),
                            static_cast<std::uint32_t>(bytes.size()));
}

std::int32_t DatafileWriter::add_stored_block(std::span<const std::byte> stored,
                                              std::uint32_t size) {
    blocks_.push_back({{stored.begin(), stored.end()}, size});
    return static_cast<std::int32_t>(blocks_.size() - 1);
}

std::vector<std::byte> DatafileWriter::finish() const {
    std::vector<const Item*> items;
    std::map<std::uint16_t, std::size_t> types;
    std::size_t item_bytes = 0;
    for (const Item& item : items_) {
        items.push_back(&item);
        ++types[item.type];
        item_bytes += 8 + item.ints.size() * 4;
    }
    std::ranges::stable_sort(items, [](const Item* a, const Item* b) { return a->type < b->type; });
    std::size_t data_bytes = 0;
    for (const StoredBlock& block : blocks_) {
        data_bytes += block.bytes.size();
    }
    const std::size_t tables =
        12 * types.size() + 4 * items.size() + (version_ == 3 ? 4 : 8) * blocks_.size();
    const std::size_t total = kHeaderBytes + tables + item_bytes + data_bytes;

    std::vector<std::byte> out;
    out.reserve(total);
    for (const char c : std::string_view{"DATA"}) {
        out.push_back(static_cast<std::byte>(c));
    }
    for (const std::size_t value : {static_cast<std::size_t>(version_), total - kUncountedBytes,
                                    total - kUncountedBytes - data_bytes, types.size(),
                                    items.size(), blocks_.size(), item_bytes, data_bytes}) {
        put(out, value);
    }
    std::size_t start = 0;
    for (const auto& [type, num] : types) {
        put(out, std::size_t{type});
        put(out, start);
        put(out, num);
        start += num;
    }
    std::size_t offset = 0;
    for (const Item* item : items) {
        put(out, offset);
        offset += 8 + item->ints.size() * 4;
    }
    offset = 0;
    for (const StoredBlock& block : blocks_) {
        put(out, offset);
        offset += block.bytes.size();
    }
    for (std::size_t i = 0; version_ != 3 && i < blocks_.size(); ++i) {
        put(out, std::size_t{blocks_[i].size});
    }
    for (const Item* item : items) {
        put(out, std::size_t{item->type} << 16U | item->id);
        put(out, item->ints.size() * 4);
        for (const std::int32_t value : item->ints) {
            put(out, value);
        }
    }
    for (const StoredBlock& block : blocks_) {
        out.insert(out.end(), block.bytes.begin(), block.bytes.end());
    }
    return out;
}

void encode_int_text(std::string_view text, std::span<std::int32_t> ints) {
    const std::size_t room = ints.size() * 4;
    for (std::size_t i = 0; i < ints.size(); ++i) {
        std::uint32_t value = 0;
        for (std::size_t k = i * 4; k < i * 4 + 4; ++k) {
            const unsigned char c =
                k < text.size() && k + 1 < room ? static_cast<unsigned char>(text[k]) : 0;
            value = value << 8U | ((c + 128U) & 0xffU);
        }
        // As in the game, the last byte is 0, not 0 + 128.
        ints[i] = static_cast<std::int32_t>(i + 1 == ints.size() ? value & 0xffffff00U : value);
    }
}

std::vector<std::byte> rewrite_datafile(const Datafile& file) {
    DatafileWriter writer{file.header().version};
    for (std::size_t i = 0; i < file.item_count(); ++i) {
        const ItemView item = file.item(i);
        writer.add_item(item.type, item.id, item.ints);
    }
    for (std::size_t i = 0; i < file.block_count(); ++i) {
        if (const auto block = file.block(static_cast<std::int64_t>(i))) {
            writer.add_block(block->bytes());
        } else {
            writer.add_stored_block(file.stored_block(i),
                                    static_cast<std::uint32_t>(file.block_info(i).size));
        }
    }
    return writer.finish();
}

bool write_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::fopen(path.c_str(), "wb"),
                                                         &std::fclose};
    if (file == nullptr || std::fwrite(bytes.data(), 1, bytes.size(), file.get()) != bytes.size()) {
        return false;
    }
    // A full disk may be reported only when the last bytes are written from the buffer.
    return std::fclose(file.release()) == 0;
}

} // namespace tw::map::test
