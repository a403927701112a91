// core/params.h
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "binding/binding.h"
#include "binding/texts.h"
#include "core/params.h"

namespace nb = nanobind;

namespace paddock {
namespace {

void bind_parts(nb::module_& module) {
    nb::class_<LoraParams> lora(module, "LoraParams", "An adapter file and its scale.");
    lora.def(
        "__init__",
        [](LoraParams* self, nb::handle path, float scale) {
            new (self) LoraParams{file_name_of(path), scale};
        },
        nb::arg("path"), nb::arg("scale") = 1.0F,
        nb::sig("def __init__(self, path: str | os.PathLike[str], scale: float = 1.0) -> None"));
    file_name_property(lora, "path", &LoraParams::path);
    lora.def_rw("scale", &LoraParams::scale);

    nb::class_<TensorPlacement>(
        module, "TensorPlacement",
        "Tensors by a regular expression over their names, and their buffer type or device.")
        .def(
            "__init__",
            [](TensorPlacement* self, std::string pattern, std::string buffer) {
                new (self) TensorPlacement{std::move(pattern), std::move(buffer)};
            },
            nb::arg("pattern"), nb::arg("buffer"))
        .def_rw("pattern", &TensorPlacement::pattern)
        .def_rw("buffer", &TensorPlacement::buffer);

    nb::class_<MetadataOverride>(module, "MetadataOverride",
                                 "A value that replaces the model file's; type: int, float, bool or str.")
        .def(
            "__init__",
            [](MetadataOverride* self, std::string key, std::string type, std::string value) {
                new (self) MetadataOverride{std::move(key), std::move(type), std::move(value)};
            },
            nb::arg("key"), nb::arg("type"), nb::arg("value"))
        .def_rw("key", &MetadataOverride::key)
        .def_rw("type", &MetadataOverride::type)
        .def_rw("value", &MetadataOverride::value);
}

void bind_context_wishes(nb::class_<EngineParams>& type) {
    type.def_rw("n_ctx", &EngineParams::n_ctx)
        .def_rw("n_batch", &EngineParams::n_batch)
        .def_rw("n_ubatch", &EngineParams::n_ubatch)
        .def_rw("n_parallel", &EngineParams::n_parallel)
        .def_rw("kv_unified", &EngineParams::kv_unified)
        .def_rw("cont_batching", &EngineParams::cont_batching)
        .def_rw("context_shift", &EngineParams::context_shift)
        .def_rw("swa_full", &EngineParams::swa_full)
        .def_rw("flash_attention", &EngineParams::flash_attention)
        .def_rw("cache_type_k", &EngineParams::cache_type_k)
        .def_rw("cache_type_v", &EngineParams::cache_type_v)
        .def_rw("pooling", &EngineParams::pooling)
        .def_rw("attention", &EngineParams::attention)
        .def_rw("rope_scaling", &EngineParams::rope_scaling)
        .def_rw("rope_freq_base", &EngineParams::rope_freq_base)
        .def_rw("rope_freq_scale", &EngineParams::rope_freq_scale)
        .def_rw("yarn_ext_factor", &EngineParams::yarn_ext_factor)
        .def_rw("yarn_attn_factor", &EngineParams::yarn_attn_factor)
        .def_rw("yarn_beta_fast", &EngineParams::yarn_beta_fast)
        .def_rw("yarn_beta_slow", &EngineParams::yarn_beta_slow)
        .def_rw("yarn_orig_ctx", &EngineParams::yarn_orig_ctx)
        .def_rw("embeddings", &EngineParams::embeddings)
        .def_rw("reranking", &EngineParams::reranking)
        .def_rw("n_threads", &EngineParams::n_threads)
        .def_rw("n_threads_batch", &EngineParams::n_threads_batch);
}

void bind_placement_wishes(nb::class_<EngineParams>& type) {
    type.def_rw("n_gpu_layers", &EngineParams::n_gpu_layers)
        .def_rw("layers_given", &EngineParams::layers_given)
        .def_rw("context_given", &EngineParams::context_given)
        .def_rw("split_mode", &EngineParams::split_mode)
        .def_rw("tensor_split", &EngineParams::tensor_split)
        .def_rw("main_gpu", &EngineParams::main_gpu)
        .def_rw("devices", &EngineParams::devices)
        .def_rw("tensor_placements", &EngineParams::tensor_placements)
        .def_rw("metadata_overrides", &EngineParams::metadata_overrides)
        .def_rw("offload_kqv", &EngineParams::offload_kqv)
        .def_rw("op_offload", &EngineParams::op_offload)
        .def_rw("repack", &EngineParams::repack)
        .def_rw("no_host", &EngineParams::no_host)
        .def_rw("use_mmap", &EngineParams::use_mmap)
        .def_rw("use_mlock", &EngineParams::use_mlock)
        .def_rw("use_direct_io", &EngineParams::use_direct_io)
        .def_rw("check_tensors", &EngineParams::check_tensors)
        .def_rw("numa", &EngineParams::numa)
        .def_rw("fit", &EngineParams::fit)
        .def_rw("fit_target_mib", &EngineParams::fit_target_mib)
        .def_rw("fit_ctx", &EngineParams::fit_ctx)
        .def_rw("loras", &EngineParams::loras)
        .def_rw("lora_init_without_apply", &EngineParams::lora_init_without_apply);
}

void bind_service_wishes(nb::class_<EngineParams>& type) {
    type.def_rw("cache_ram_mib", &EngineParams::cache_ram_mib)
        .def_rw("cache_idle_slots", &EngineParams::cache_idle_slots)
        .def_rw("n_ctx_checkpoints", &EngineParams::n_ctx_checkpoints)
        .def_rw("checkpoint_min_step", &EngineParams::checkpoint_min_step)
        .def_rw("slot_prompt_similarity", &EngineParams::slot_prompt_similarity)
        .def_rw("n_predict", &EngineParams::n_predict)
        .def_rw("special", &EngineParams::special)
        .def_rw("warmup", &EngineParams::warmup)
        .def_rw("sleep_idle_s", &EngineParams::sleep_idle_s)
        .def_rw("sleep_keep_cache", &EngineParams::sleep_keep_cache)
        .def_rw("slots_debug", &EngineParams::slots_debug)
        .def_rw("speculation", &EngineParams::speculation);
}

}  // namespace

void bind_params(nb::module_& module) {
    bind_parts(module);
    nb::class_<EngineParams> type(module, "EngineParams", "What an engine is started with.");
    type.def(nb::init<>());
    file_name_property(type, "model_path", &EngineParams::model_path);
    type.def_rw("model_name", &EngineParams::model_name);
    bind_context_wishes(type);
    bind_placement_wishes(type);
    bind_service_wishes(type);
    module.def("problems_of", nb::overload_cast<const EngineParams&>(&problems_of), nb::arg("params"),
               "Every violation of a range or combination, in words; empty when all is well.");
}

}  // namespace paddock
