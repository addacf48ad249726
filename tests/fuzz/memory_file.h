#pragma once

#include "proxy/base/descriptors.h"
#include "tests/fuzz/demand.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

namespace tw::fuzz {

/// A file with a fuzzer's input, for readers that open a file by its path.
class MemoryFile {
  public:
    MemoryFile(const std::uint8_t* data, std::size_t size)
        : file_{::memfd_create("input", MFD_CLOEXEC)} {
        demand(file_.valid());
        demand(size == 0 || ::write(file_.get(), data, size) == static_cast<ssize_t>(size));
    }

    /// Returns the file's name in folder().
    [[nodiscard]] std::string name() const { return std::to_string(file_.get()); }

    [[nodiscard]] static std::string folder() { return "/proc/self/fd"; }

    [[nodiscard]] std::string path() const { return folder() + '/' + name(); }

  private:
    base::UniqueFd file_;
};

} // namespace tw::fuzz
