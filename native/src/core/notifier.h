// A descriptor that becomes readable: how results reach an event loop without polling (10 §1.5).
#pragma once

namespace paddock {

/// An eventfd on Linux, a pipe on other POSIX systems. `signal` and `drain` may run on different threads.
class Notifier {
  public:
    /// Throws std::system_error when no descriptor is to be had.
    Notifier();
    ~Notifier();
    Notifier(const Notifier&) = delete;
    Notifier& operator=(const Notifier&) = delete;

    int descriptor() const { return read_end_; }
    void signal();
    void drain();

  private:
    int read_end_ = -1;
    int write_end_ = -1;
};

}  // namespace paddock
