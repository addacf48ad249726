#pragma once

#include <functional>

namespace tw::cli {

/// Does `work` in a process of its own that stays when this one ends; `work` calls what it is handed
/// once it has started. Returns 0 then, or `work`'s value when it ended before.
/// Errors: throws std::system_error. Precondition: this process has one thread.
[[nodiscard]] int
in_background(const std::function<int(const std::function<void()>& started)>& work);

} // namespace tw::cli
