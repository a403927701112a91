// Where the best tokens of a row are found: the setting, and what the linked library can do (11 §11.4).
#pragma once

#include <string>
#include <string_view>

#include "core/context.h"

namespace paddock {

struct ReducedRoute {
    /// off host
    std::string path = "off";
    /// Why it is not the device, if that was asked for; empty otherwise.
    std::string reason;
};

/// `asked`: auto off host device.
ReducedRoute reduced_route(std::string_view asked, const ContextFacts& facts);

}  // namespace paddock
