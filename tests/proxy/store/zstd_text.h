#pragma once

#include "proxy/store/zstd_frames.h"

#include <string>
#include <string_view>

#include <zstd.h>

namespace tw::test {

/// What the library reads of frames one behind the other, up to what is damaged or missing.
inline std::string unpacked(std::string_view frames) {
    std::string text;
    ZSTD_DStream* const stream = ZSTD_createDStream();
    ZSTD_inBuffer in{.src = frames.data(), .size = frames.size(), .pos = 0};
    std::string room(ZSTD_DStreamOutSize(), '\0');
    for (bool more = true; more;) {
        ZSTD_outBuffer out{.dst = room.data(), .size = room.size(), .pos = 0};
        const std::size_t left = ZSTD_decompressStream(stream, &out, &in);
        text.append(room.data(), out.pos);
        more = ZSTD_isError(left) == 0 && (in.pos < in.size || out.pos == out.size);
    }
    ZSTD_freeDStream(stream);
    return text;
}

/// A frame as recordings have it, with a checksum.
inline std::string checked_frame(std::string_view text) {
    store::ZstdFrameWriter writer;
    std::string frame;
    writer.append_frame(text, frame);
    return frame;
}

/// A frame without a checksum.
inline std::string packed(std::string_view text) {
    std::string frame(ZSTD_compressBound(text.size()), '\0');
    frame.resize(ZSTD_compress(frame.data(), frame.size(), text.data(), text.size(), 3));
    return frame;
}

} // namespace tw::test
