#include "core/speculation/reduced_route.h"

namespace paddock {

namespace {

std::string why_not_device(const ContextFacts& facts) {
    if (!facts.backend_sampler) {
        return "backend-sampler-refused";
    }
    return facts.backend_multi_output ? "not-built" : "backend-one-output";
}

}  // namespace

ReducedRoute reduced_route(std::string_view asked, const ContextFacts& facts) {
    if (asked == "off") {
        return {.path = "off", .reason = ""};
    }
    return {.path = "host", .reason = asked == "device" ? why_not_device(facts) : ""};
}

}  // namespace paddock
