// The devices that ggml knows, and their names in parameters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ggml-backend.h"

namespace paddock {

struct DeviceInfo {
    std::string name;
    std::string description;
    std::int64_t total_bytes = 0;
    std::int64_t free_bytes = 0;
};

/// Where ggml looks for backends that are libraries of their own; before the first use of anything else here.
void set_backend_folder(const std::string& folder);

/// Starts libllama once for the process: log, backends. Everything else in this folder may then be used.
void start_library();

/// Every device but the CPU, as `--list-devices` shows them.
std::vector<DeviceInfo> list_devices();

/// Devices of these names; an unknown one adds to `problems`. `none` alone gives an empty list.
std::vector<ggml_backend_dev_t> devices_by_name(const std::vector<std::string>& names,
                                                std::vector<std::string>& problems);

/// The devices libllama takes by itself: all GPUs, or the integrated ones when there is no other.
std::vector<ggml_backend_dev_t> default_devices();

/// A buffer type by its own name or its device's; null and a problem when there is none.
ggml_backend_buffer_type_t buffer_type_by_name(const std::string& name, std::vector<std::string>& problems);

}  // namespace paddock
