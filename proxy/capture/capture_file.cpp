#include "proxy/capture/capture_file.h"

#include "proxy/sink/byte_source.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>
#include <tuple>

#include <pcap/pcap.h>

namespace tw::capture {

namespace {

/// A compressed file as a stream of what is in it.
struct Unpacked {
    std::FILE* file = nullptr;                ///< null: it is none, or cannot be opened
    const sink::ByteSource* source = nullptr; ///< goes with the stream
};

Unpacked open_unpacked(const std::string& path) {
    if (!path.ends_with(".zst") && !path.ends_with(".gz")) {
        return {};
    }
    try {
        auto source = std::make_unique<sink::ByteSource>(path);
        constexpr cookie_io_functions_t kReadOnly{
            .read = [](void* cookie, char* room, std::size_t size) -> ssize_t {
                auto& bytes = *static_cast<sink::ByteSource*>(cookie);
                const std::size_t read = bytes.read({room, size});
                const bool broken = read == 0 && bytes.end() != sink::FileEnd::whole;
                errno = broken ? EIO : errno;
                return broken ? -1 : static_cast<ssize_t>(read);
            },
            .write = nullptr,
            .seek = nullptr,
            .close =
                [](void* cookie) {
                    delete static_cast<sink::ByteSource*>(
                        cookie); // NOLINT(*-owning-memory): its own
                    return 0;
                }};
        std::FILE* const file = ::fopencookie(source.get(), "r", kReadOnly);
        if (file == nullptr) {
            return {};
        }
        return {.file = file, .source = source.release()}; // closed with the stream
    } catch (const std::system_error&) {
        return {}; // opened by its name it says why
    }
}

} // namespace

void CaptureFile::Close::operator()(pcap* handle) const {
    pcap_close(handle);
}

CaptureFile::CaptureFile(const std::string& path) {
    std::array<char, PCAP_ERRBUF_SIZE> error{};
    if (const Unpacked unpacked = open_unpacked(path); unpacked.file != nullptr) {
        handle_.reset(pcap_fopen_offline_with_tstamp_precision(
            unpacked.file, PCAP_TSTAMP_PRECISION_NANO, error.data()));
        unpacked_ = unpacked.source;
        if (!handle_) {
            std::fclose(unpacked.file);
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
        throw CaptureError{message + " (expected a pcap or pcapng file)"};
    }
    const int link = pcap_datalink(handle_.get());
    if (!FrameReader::knows(link)) {
        throw CaptureError{path + ": " + FrameReader::unknown_link(link)};
    }
    reader_.emplace(link);
}

CaptureFile::~CaptureFile() = default;

bool CaptureFile::next(CapturedDatagram& datagram) {
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
        datagram.time = FrameReader::time_of(header->ts.tv_sec, header->ts.tv_usec);
        if (reader_->read(std::as_bytes(std::span{data, header->caplen}), datagram)) {
            return true;
        }
    }
}

void CaptureFile::note_failure() {
    const sink::FileEnd end = unpacked_ == nullptr ? sink::FileEnd::whole : unpacked_->end();
    // libpcap has no code for it.
    const std::string_view why = pcap_geterr(handle_.get());
    if (end == sink::FileEnd::damaged) {
        unreadable_ = "its compressed data is damaged";
    } else if (end == sink::FileEnd::within_frame || why.starts_with("truncated dump file") ||
               why.starts_with("truncated pcapng dump file")) {
        ended_early_ = true;
    } else {
        unreadable_ = why;
    }
}

} // namespace tw::capture
