#include "proxy/wire/info_answer.h"

#include "proxy/wire/bytes.h"
#include "proxy/wire/connless.h"
#include "proxy/wire/packet.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace tw::wire {

namespace {

constexpr std::size_t kHead = kConnlessHeaderSize + kConnlessHeadSize;
constexpr std::uint32_t kPlainTokens = 0xff;

/// The magic of a connless packet of 0.6; empty: it is none.
std::string_view magic_of(std::span<const std::byte> datagram) {
    constexpr std::string_view kMark = "\xff\xff\xff\xff";
    const std::string_view text = text_of(datagram);
    return text.size() > kHead && text.substr(kConnlessHeaderSize, kMark.size()) == kMark
               ? text.substr(kConnlessHeaderSize + kMark.size(), kMark.size())
               : std::string_view{};
}

/// Behind the head of an answer, up to its NUL.
std::string_view token_text_of(std::span<const std::byte> answer) {
    const std::string_view rest = text_of(answer).substr(kHead);
    return rest.substr(0, rest.find('\0'));
}

/// How a server repeats the token in a packet of that magic.
class TokenText {
  public:
    TokenText(std::string_view magic, const InfoRequest& request) noexcept {
        // A server that does not know the extension has not seen the higher bits.
        const std::uint32_t token = magic == "inf3" ? request.token & kPlainTokens : request.token;
        end_ = std::to_chars(digits_.data(), digits_.data() + digits_.size(), token).ptr;
    }

    [[nodiscard]] std::string_view text() const noexcept {
        return {digits_.data(), static_cast<std::size_t>(end_ - digits_.data())};
    }

  private:
    std::array<char, 10> digits_{};
    char* end_;
};

} // namespace

std::optional<InfoRequest> read_info_request(std::span<const std::byte> datagram) {
    if (datagram.size() != kHead + 1 || magic_of(datagram) != "gie3") {
        return std::nullopt;
    }
    const auto byte = [&](std::size_t i) { return std::to_integer<std::uint32_t>(datagram[i]); };
    const std::string_view header = text_of(datagram.first(kConnlessHeaderSize));
    if (header == "\xff\xff\xff\xff\xff\xff") {
        return InfoRequest{.kind = InfoRequestKind::plain, .token = byte(kHead)};
    }
    const bool is_extended = header.starts_with("xe") && byte(4) == 0 && byte(5) == 0;
    if (!is_extended) {
        return std::nullopt;
    }
    return InfoRequest{.kind = InfoRequestKind::extended,
                       .token = byte(2) << 16U | byte(3) << 8U | byte(kHead)};
}

std::optional<InfoPart> read_info_part(std::span<const std::byte> datagram,
                                       const InfoRequest& request) {
    const std::string_view magic = magic_of(datagram);
    const bool is_first =
        magic == "inf3" || (magic == "iext" && request.kind == InfoRequestKind::extended);
    const bool is_more = magic == "iex+" && request.kind == InfoRequestKind::extended;
    if ((!is_first && !is_more) || datagram.size() > kMaxDatagramSize ||
        token_text_of(datagram) != TokenText{magic, request}.text()) {
        return std::nullopt;
    }
    return is_first ? InfoPart::first : InfoPart::more;
}

std::size_t write_info_part(std::span<const std::byte> part, const InfoRequest& request,
                            std::span<std::byte> out) {
    const std::string_view magic = magic_of(part);
    if (magic.empty()) {
        return 0;
    }
    const TokenText token{magic, request};
    const auto rest = part.subspan(kHead + token_text_of(part).size());
    const std::size_t size = kHead + token.text().size() + rest.size();
    if (size > std::min(out.size(), kMaxDatagramSize)) {
        return 0;
    }
    auto end = std::ranges::copy(part.first(kHead), out.begin()).out;
    end = std::ranges::copy(std::as_bytes(std::span{token.text()}), end).out;
    std::ranges::copy(rest, end);
    return size;
}

} // namespace tw::wire
