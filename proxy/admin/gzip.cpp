#include "proxy/admin/gzip.h"

#include <new>

#include <zlib.h>

namespace tw::admin {

std::string gzipped(std::string_view text) {
    constexpr int kGzip = 15 + 16; // the largest window, with gzip's frame
    constexpr int kMemory = 8;
    z_stream stream{};
    if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY) !=
        Z_OK) {
        throw std::bad_alloc{};
    }
    std::string out(deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): zlib is from a time before const
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    deflate(&stream, Z_FINISH);
    out.resize(stream.total_out);
    out.shrink_to_fit(); // some are kept
    deflateEnd(&stream);
    return out;
}

} // namespace tw::admin
