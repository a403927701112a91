#include "core/notifier.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>

#ifdef __linux__
#include <sys/eventfd.h>
#endif

namespace paddock {

namespace {

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

}  // namespace

#ifdef __linux__

Notifier::Notifier() {
    read_end_ = write_end_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (read_end_ < 0) {
        fail("eventfd");
    }
}

Notifier::~Notifier() { close(read_end_); }

#else

Notifier::Notifier() {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) {
        fail("pipe");
    }
    for (const int end : ends) {
        fcntl(end, F_SETFL, O_NONBLOCK);
        fcntl(end, F_SETFD, FD_CLOEXEC);
    }
    read_end_ = ends[0];
    write_end_ = ends[1];
}

Notifier::~Notifier() {
    close(read_end_);
    close(write_end_);
}

#endif

void Notifier::signal() {
    // Eight bytes are what an eventfd takes; a full pipe is readable already.
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(write_end_, &one, sizeof one);
}

void Notifier::drain() {
    std::array<std::uint64_t, 64> waste{};
    while (read(read_end_, waste.data(), sizeof waste) == static_cast<ssize_t>(sizeof waste)) {
    }
}

}  // namespace paddock
