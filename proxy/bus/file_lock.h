#pragma once

#include <fcntl.h>

namespace tw::bus {

/// Takes a file for whoever opened it, until it is closed there; also against another opening of the same
/// process. False: somebody has it, or it cannot be locked.
[[nodiscard]] inline bool lock_file(int file) {
    struct flock whole {};

    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    return ::fcntl(file, F_OFD_SETLK, &whole) == 0;
}

} // namespace tw::bus
