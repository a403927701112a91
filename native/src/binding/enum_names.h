// Enums cross as strings equal to their enumerators' names.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <string_view>

#include "core/context.h"
#include "core/result.h"
#include "core/sampling.h"
#include "core/snapshot.h"
#include "core/task.h"

namespace paddock {

/// Names in the order of the enumerators, which count from 0.
template <typename Enum>
struct EnumNames;

template <>
struct EnumNames<TaskKind> {
    static constexpr std::array<std::string_view, 11> names{
        "completion", "infill",   "embedding", "rerank",  "slot_save", "slot_restore",
        "slot_erase", "lora_get", "lora_set",  "control", "cancel"};
};
template <>
struct EnumNames<ResultKind> {
    static constexpr std::array<std::string_view, 10> names{
        "partial",      "final",      "embedding", "rerank", "slot_save",
        "slot_restore", "slot_erase", "lora",      "ok",     "error"};
};
template <>
struct EnumNames<ErrorKind> {
    static constexpr std::array<std::string_view, 6> names{
        "invalid_request", "not_found", "server", "not_supported", "unavailable", "exceed_context_size"};
};
template <>
struct EnumNames<StopKind> {
    static constexpr std::array<std::string_view, 4> names{"none", "eos", "word", "limit"};
};
template <>
struct EnumNames<SlotState> {
    static constexpr std::array<std::string_view, 7> names{
        "idle", "wait_other", "started", "processing_prompt", "done_prompt", "generating", "refill"};
};
template <>
struct EnumNames<EngineState> {
    static constexpr std::array<std::string_view, 7> names{"fresh",  "loading", "ready",  "sleeping",
                                                           "waking", "failed",  "stopped"};
};
template <>
struct EnumNames<GrammarTrigger::Kind> {
    static constexpr std::array<std::string_view, 4> names{"token", "word", "pattern", "pattern_full"};
};
template <>
struct EnumNames<Removal> {
    static constexpr std::array<std::string_view, 4> names{"none", "recurrent", "partial", "full"};
};

}  // namespace paddock

namespace nanobind::detail {

template <typename Enum>
struct NamedEnumCaster {
    NB_TYPE_CASTER(Enum, const_name("str"))

    bool from_python(handle source, std::uint32_t /*flags*/, cleanup_list* /*cleanup*/) noexcept {
        if (!PyUnicode_Check(source.ptr())) return false;
        Py_ssize_t size = 0;
        const char* text = PyUnicode_AsUTF8AndSize(source.ptr(), &size);
        if (text == nullptr) {
            PyErr_Clear();
            return false;
        }
        const auto& names = paddock::EnumNames<Enum>::names;
        for (std::size_t i = 0; i < names.size(); ++i) {
            if (names[i] != std::string_view(text, static_cast<std::size_t>(size))) continue;
            value = static_cast<Enum>(i);
            return true;
        }
        return false;
    }

    static handle from_cpp(Enum value, rv_policy /*policy*/, cleanup_list* /*cleanup*/) noexcept {
        const std::string_view name = paddock::EnumNames<Enum>::names[static_cast<std::size_t>(value)];
        return PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size()));
    }
};

template <>
struct type_caster<paddock::TaskKind> : NamedEnumCaster<paddock::TaskKind> {};
template <>
struct type_caster<paddock::ResultKind> : NamedEnumCaster<paddock::ResultKind> {};
template <>
struct type_caster<paddock::ErrorKind> : NamedEnumCaster<paddock::ErrorKind> {};
template <>
struct type_caster<paddock::StopKind> : NamedEnumCaster<paddock::StopKind> {};
template <>
struct type_caster<paddock::SlotState> : NamedEnumCaster<paddock::SlotState> {};
template <>
struct type_caster<paddock::EngineState> : NamedEnumCaster<paddock::EngineState> {};
template <>
struct type_caster<paddock::GrammarTrigger::Kind> : NamedEnumCaster<paddock::GrammarTrigger::Kind> {};
template <>
struct type_caster<paddock::Removal> : NamedEnumCaster<paddock::Removal> {};

}  // namespace nanobind::detail
