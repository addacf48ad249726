#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>

namespace tw::sink {

/// A stream for what people read, on a terminal, pipe or file: writing never waits longer than it
/// is allowed to. What a reader does not take by then is dropped and counted.
class PromptStream {
  public:
    /// `descriptor` stays open. Errors: throws std::system_error.
    explicit PromptStream(int descriptor);
    ~PromptStream();
    PromptStream(const PromptStream&) = delete;
    PromptStream& operator=(const PromptStream&) = delete;
    PromptStream(PromptStream&&) = delete;
    PromptStream& operator=(PromptStream&&) = delete;

    [[nodiscard]] std::FILE* file() const { return file_; }

    [[nodiscard]] bool is_terminal() const { return terminal_; }

    /// How long a write may wait for the reader; at first not at all.
    void set_patience(std::chrono::milliseconds patience) { patience_ms_ = patience.count(); }

    [[nodiscard]] std::uint64_t dropped_bytes() const { return dropped_bytes_; }

    /// What the stream does with what is printed to it.
    void write(const char* text, std::size_t size);

  private:
    int descriptor_;
    bool terminal_;
    std::FILE* file_ = nullptr;
    std::atomic<std::int64_t> patience_ms_{0};
    std::atomic<std::uint64_t> dropped_bytes_{0};
};

} // namespace tw::sink
