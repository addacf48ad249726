#pragma once

#include "proxy/capture/capture_sink.h"
#include "proxy/store/zstd_frames.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <zstd.h>

namespace tw::test {

/// Returns the blocks of a capture with a packet of each of these sizes. Half of the bytes look
/// like ends of lines; the other half are random, so that they cannot be compressed.
inline std::string capture_blocks(const std::vector<std::size_t>& sizes) {
    std::string text;
    capture::CaptureBlockBuffer block_buffer{[&text](std::span<const std::byte> blocks) {
        text.append(reinterpret_cast<const char*>(blocks.data()), blocks.size());
        return true;
    }};
    std::uint32_t state = 1;
    for (const std::size_t size : sizes) {
        std::vector<std::byte> datagram(size, std::byte{'\n'});
        for (std::size_t i = 0; i < size; i += 2) {
            state = state * 1664525U + 1013904223U;
            datagram[i] = static_cast<std::byte>(state >> 24U);
        }
        block_buffer.encoder().on_datagram({.session = 1}, datagram);
        block_buffer.end_datagram();
    }
    block_buffer.flush();
    return text;
}

/// Returns the text of consecutive zstd frames, as the zstd library decompresses it: up to the
/// first damaged or missing byte.
inline std::string decompressed_text(std::string_view frames) {
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

/// Returns a zstd frame with a checksum, as recordings contain it.
inline std::string frame_with_checksum(std::string_view text) {
    store::ZstdFrameWriter writer;
    std::string frame;
    writer.append_frame(text, frame);
    return frame;
}

inline std::string frame_without_checksum(std::string_view text) {
    std::string frame(ZSTD_compressBound(text.size()), '\0');
    frame.resize(ZSTD_compress(frame.data(), frame.size(), text.data(), text.size(), 3));
    return frame;
}

} // namespace tw::test
