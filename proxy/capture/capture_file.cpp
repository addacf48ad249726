#include "proxy/capture/capture_file.h"

#include "proxy/capture/section_order.h"
#include "proxy/capture/state_blocks.h"
#include "proxy/sink/byte_source.h"
#include "proxy/sink/pcapng.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include <pcap/pcap.h>

namespace tw::capture {

constexpr std::string_view kStandardInput = "-";

/// What libpcap reads, unpacked where it is compressed.
struct CaptureStream {
    explicit CaptureStream(const std::string& path) {
        if (path != kStandardInput) {
            file.emplace(path);
        }
    }

    /// Nothing: standard input, which somebody may have begun to read.
    std::optional<sink::ByteSource> file;
    SectionOrder order;
    StateBlocks states;
};

namespace {

ssize_t read_stream(void* cookie, char* room, std::size_t size) {
    auto& stream = *static_cast<CaptureStream*>(cookie);
    const std::size_t read = stream.order.read(
        std::as_writable_bytes(std::span{room, size}), [&](std::span<std::byte> bytes) {
            // NOLINTNEXTLINE(*-reinterpret-cast): files are read as text is
            char* const text = reinterpret_cast<char*>(bytes.data());
            return stream.file ? stream.file->read({text, bytes.size()})
                               : std::fread(text, 1, bytes.size(), stdin);
        });
    if (read == 0 && stream.file && stream.file->end() != sink::FileEnd::whole) {
        errno = stream.file->compressed() ? EIO : errno;
        return -1;
    }
    if (read == 0 && !stream.file && std::ferror(stdin) != 0) {
        return -1;
    }
    stream.states.on_bytes(std::as_bytes(std::span{room, read}));
    return static_cast<ssize_t>(read);
}

/// Null: it cannot be opened. The stream goes with the file.
std::pair<std::FILE*, CaptureStream*> open_stream(const std::string& path) {
    try {
        auto stream = std::make_unique<CaptureStream>(path);
        constexpr cookie_io_functions_t kReadOnly{
            .read = read_stream, .write = nullptr, .seek = nullptr, .close = [](void* cookie) {
                delete static_cast<CaptureStream*>(cookie); // NOLINT(*-owning-memory): its own
                return 0;
            }};
        std::FILE* const file = ::fopencookie(stream.get(), "r", kReadOnly);
        if (file != nullptr && path == kStandardInput) {
            // Asks for as much as is wanted: more would be waited for.
            std::setvbuf(file, nullptr, _IONBF, 0);
        }
        return {file, file == nullptr ? nullptr : stream.release()};
    } catch (const std::system_error&) {
        return {}; // opened by its name it says why
    }
}

/// libpcap reads a file's interfaces as one, so that they have to be alike; what it says where they
/// are not helps nobody. Otherwise as it says it.
std::string explained(std::string_view why) {
    if (why.starts_with("an interface has a type ")) {
        return "its interfaces have different link types, which libpcap cannot read; record with "
               "-i any or to separate files, or extract one of them with tshark and editcap "
               "(docs/decode.md)";
    }
    if (why.starts_with("an interface has a snapshot length ")) {
        return "its interfaces have different snapshot lengths, which libpcap cannot read; rewrite "
               "it with: editcap -F pcap FILE ALIKE.pcap";
    }
    return std::string{why};
}

} // namespace

bool looks_like_capture(std::span<const std::byte> begin) {
    // Those that libpcap knows: of pcapng the first block's type, of pcap the writers' variants.
    constexpr std::array<std::uint32_t, 6> kMagics{sink::kPcapngSection, 0xa1b2c3d4, 0xa1b23c4d,
                                                   0xa1b2cd34,           0xa1b234cd, 0xa12b3c4d};
    if (begin.size() < kCaptureMagicSize) {
        return false;
    }
    std::uint32_t big = 0;
    std::uint32_t little = 0;
    for (std::size_t i = 0; i < kCaptureMagicSize; ++i) {
        big = big << 8U | std::to_integer<std::uint32_t>(begin[i]);
        little |= std::to_integer<std::uint32_t>(begin[i]) << 8U * i;
    }
    return std::any_of(kMagics.begin(), kMagics.end(),
                       [&](std::uint32_t magic) { return magic == big || magic == little; });
}

void CaptureFile::Close::operator()(pcap* handle) const {
    pcap_close(handle);
}

CaptureFile::CaptureFile(const std::string& path) {
    std::array<char, PCAP_ERRBUF_SIZE> error{};
    if (const auto [file, stream] = open_stream(path); file != nullptr) {
        handle_.reset(pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO,
                                                               error.data()));
        stream_ = stream;
        if (!handle_) {
            std::fclose(file);
        }
    } else {
        handle_.reset(pcap_open_offline_with_tstamp_precision(
            path.c_str(), PCAP_TSTAMP_PRECISION_NANO, error.data()));
    }
    if (!handle_) {
        // libpcap names the file only in some of its messages.
        std::string message{error.data()};
        if (!message.starts_with(path)) {
            message.insert(0, path + ": ");
        }
        throw CaptureError{message +
                           " (expected a pcap or pcapng file; demos must be plain files)"};
    }
    const int link = pcap_datalink(handle_.get());
    if (!FrameReader::knows(link)) {
        throw CaptureError{path + ": " + FrameReader::unknown_link(link)};
    }
    reader_.emplace(link);
}

CaptureFile::~CaptureFile() = default;

bool CaptureFile::next(CapturedDatagram& datagram) {
    if (reader_->next_merged(datagram)) {
        return true;
    }
    while (true) {
        pcap_pkthdr* header = nullptr;
        const u_char* data = nullptr;
        const int status = pcap_next_ex(handle_.get(), &header, &data);
        if (status != 1) {
            if (status == PCAP_ERROR) {
                note_failure();
            }
            return false;
        }
        // With nanosecond precision the field named tv_usec counts nanoseconds.
        datagram.state = stream_ == nullptr ? nullptr : stream_->states.before(packets_);
        ++packets_;
        datagram.time = FrameReader::time_of(header->ts.tv_sec, header->ts.tv_usec);
        if (reader_->read(std::as_bytes(std::span{data, header->caplen}), header->len, datagram)) {
            return true;
        }
    }
}

/// libpcap has read the first interface: without one it knows no link.
bool CaptureFile::by_twscope() const {
    return stream_ != nullptr && stream_->states.by_twscope();
}

void CaptureFile::note_failure() {
    const sink::FileEnd end =
        stream_ == nullptr || !stream_->file ? sink::FileEnd::whole : stream_->file->end();
    // libpcap has no code for it.
    const std::string_view why = pcap_geterr(handle_.get());
    if (end == sink::FileEnd::damaged) {
        unreadable_ = "its compressed data is damaged";
    } else if (end == sink::FileEnd::too_wide) {
        unreadable_ = "it was compressed with a window of more than 128 MiB";
    } else if (end == sink::FileEnd::within_frame || why.starts_with("truncated dump file") ||
               why.starts_with("truncated pcapng dump file")) {
        ended_early_ = true;
    } else {
        unreadable_ = explained(why);
    }
}

} // namespace tw::capture
