#pragma once

namespace tw::run {

/// The terminal that this process was started from: SIGHUP says that it is gone, or anything else.
class Terminal {
  public:
    /// Looks whether there is one whose end would end us: not after `nohup`.
    Terminal();

    /// There was one at the start.
    [[nodiscard]] bool exists() const { return had_; }

    /// It was there, and is gone.
    [[nodiscard]] bool gone() const;

  private:
    bool had_ = false;
};

} // namespace tw::run
