#include "llama/threads.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <utility>

#ifdef __linux__
#include <sched.h>
#endif

namespace paddock {
namespace {

#ifdef __linux__
int read_topology(int cpu, const std::string& name) {
    std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/" + name);
    int value = -1;
    file >> value;
    return file ? value : -1;
}

/// 0 when the system doesn't tell.
std::int32_t cores_by_topology() {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return 0;
    std::set<std::pair<int, int>> cores;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &allowed)) continue;
        const int core = read_topology(cpu, "core_id");
        if (core < 0) return 0;
        cores.emplace(read_topology(cpu, "physical_package_id"), core);
    }
    return static_cast<std::int32_t>(cores.size());
}
#else
std::int32_t cores_by_topology() { return 0; }
#endif

}  // namespace

std::int32_t physical_cores() {
    const std::int32_t cores = cores_by_topology();
    if (cores > 0) return cores;
    return std::max(1, static_cast<std::int32_t>(std::thread::hardware_concurrency()));
}

}  // namespace paddock
