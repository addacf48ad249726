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

/// A compressed file as a stream of what is in it; null: it is none, or cannot be opened.
std::FILE* open_unpacked(const std::string& path) {
    if (!path.ends_with(".zst") && !path.ends_with(".gz")) {
        return nullptr;
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
        if (file != nullptr) {
            std::ignore = source.release(); // closed with the stream
        }
        return file;
    } catch (const std::system_error&) {
        return nullptr; // opened by its name it says why
    }
}

} // namespace

void CaptureFile::Close::operator()(pcap* handle) const {
    pcap_close(handle);
}

CaptureFile::CaptureFile(const std::string& path) {
    std::array<char, PCAP_ERRBUF_SIZE> error{};
    if (std::FILE* const file = open_unpacked(path)) {
        handle_.reset(pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO,
                                                               error.data()));
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
            ended_early_ = status == PCAP_ERROR;
            return false;
        }
        // With nanosecond precision the field named tv_usec counts nanoseconds.
        datagram.time = FrameReader::time_of(header->ts.tv_sec, header->ts.tv_usec);
        if (reader_->read(std::as_bytes(std::span{data, header->caplen}), datagram)) {
            return true;
        }
    }
}

} // namespace tw::capture
