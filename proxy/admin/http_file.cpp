#include "proxy/admin/http_file.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/write.hpp>
#include <unistd.h>

namespace tw::admin {

namespace {

namespace http = boost::beast::http;
using Error = boost::beast::error_code;

class FileSender : public std::enable_shared_from_this<FileSender> {
  public:
    FileSender(HttpStream& stream, const http::response_header<>& head,
               std::shared_ptr<const ServedFile> file, std::chrono::milliseconds patience,
               std::function<void()> done)
        : stream_{&stream}, file_{std::move(file)}, patience_{patience}, done_{std::move(done)},
          response_{head} {
        response_.content_length(file_->bytes);
        response_.body().more = true;
    }

    void run() {
        stream_->expires_after(patience_);
        http::async_write_header(
            *stream_, serializer_,
            [self = shared_from_this()](const Error& error, std::size_t) { self->next(error); });
    }

  private:
    // NOLINTBEGIN(misc-no-recursion): called by the loop, when what went before is sent
    void next(const Error& error) {
        const bool wants_more = !error || error == http::error::need_buffer;
        if (!wants_more || sent_ >= file_->bytes || !read()) {
            return done_();
        }
        stream_->expires_after(patience_);
        http::async_write(
            *stream_, serializer_,
            [self = shared_from_this()](const Error& again, std::size_t) { self->next(again); });
    }

    // NOLINTEND(misc-no-recursion)

    bool read() {
        const auto most =
            static_cast<std::size_t>(std::min<std::uint64_t>(piece_.size(), file_->bytes - sent_));
        const ssize_t got =
            ::pread(file_->file.get(), piece_.data(), most, static_cast<off_t>(sent_));
        if (got <= 0) {
            return false;
        }
        sent_ += static_cast<std::uint64_t>(got);
        response_.body().data = piece_.data();
        response_.body().size = static_cast<std::size_t>(got);
        response_.body().more = sent_ < file_->bytes;
        return true;
    }

    HttpStream* stream_;
    std::shared_ptr<const ServedFile> file_;
    std::chrono::milliseconds patience_;
    std::function<void()> done_;
    http::response<http::buffer_body> response_;
    http::response_serializer<http::buffer_body> serializer_{response_};
    std::array<std::byte, std::size_t{64} << 10U> piece_{};
    std::uint64_t sent_ = 0;
};

} // namespace

void send_file(HttpStream& stream, const http::response_header<>& head,
               std::shared_ptr<const ServedFile> file, std::chrono::milliseconds patience,
               std::function<void()> done) {
    std::make_shared<FileSender>(stream, head, std::move(file), patience, std::move(done))->run();
}

} // namespace tw::admin
