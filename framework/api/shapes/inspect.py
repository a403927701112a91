"""A model file as JSON: facts, files, template, memory (13 §3)."""

from __future__ import annotations

from typing import Any

from framework.api.inspection import Inspection
from framework.api.shapes.basic import reason_json
from framework.api.shapes.memory import fit_json
from framework.models.companions import Companions
from framework.models.facts import ModelFacts
from framework.models.gguf_fields import GgufHeader
from framework.models.origin import repositories
from framework.values.reasoning import TemplateCapabilities


def inspect_json(inspection: Inspection) -> dict[str, Any]:
    """The whole answer. Facts that the file does not hold are null."""
    facts = inspection.facts
    return {
        "facts": _facts_json(facts),
        "files": [{"path": str(file.path), "bytes": file.size} for file in facts.files.files],
        "template": _template_json(facts.template, facts.header),
        "companions": _companions_json(inspection.companions),
        "memory": fit_json(inspection.memory),
        "reasons": [reason_json(reason) for reason in inspection.reasons],
    }


def _facts_json(facts: ModelFacts) -> dict[str, Any]:
    header, weights = facts.header, facts.weights
    return {
        "architecture": header.architecture,
        "name": header.name,
        "file_type": facts.quantisation,
        "parameters": weights.parameters,
        "weight_bytes": weights.total_bytes,
        "weight_bytes_by_type": dict(weights.bytes_by_type),
        "tensors": weights.tensors,
        "layers": header.n_layers,
        "context_train": header.context_length,
        "heads": header.n_heads,
        "kv_heads": header.n_kv_heads,
        "kv_heads_by_layer": header.n_kv_heads_by_layer,
        "key_length": header.key_length,
        "value_length": header.value_length,
        "embedding": header.embedding_length,
        "feed_forward": header.feed_forward_length,
        "vocabulary": header.vocab_size,
        "tokenizer": header.tokenizer_model,
        "sliding_window": header.sliding_window,
        "windowed_layers": None if header.swa_mask is None else sum(header.swa_mask),
        "experts": header.n_experts,
        "experts_used": header.n_experts_used,
        "latent_rank": header.kv_lora_rank,
        "state_size": header.ssm_state_size,
        "prediction_layers": header.nextn_layers,
        "diffusion": header.is_diffusion,
        "vision": header.has_vision_encoder,
        "audio": header.has_audio_encoder,
        "projection": header.vision_projection or header.audio_projection,
        "size_label": header.size_label,
        "origin": list(repositories(header.origin)),
    }


def _template_json(template: TemplateCapabilities, header: GgufHeader) -> dict[str, Any]:
    return {
        "present": header.chat_template is not None or header.template_bytes is not None,
        "reasoning": template.reasoning_style if template.supports_reasoning else "none",
        "always_on": template.reasoning_always_on,
        "efforts": list(template.effort_levels),
        "preserve_thinking": template.supports_preserve_thinking,
        "tools": template.supports_tools,
    }


def _companions_json(companions: Companions) -> dict[str, Any]:
    return {
        name: None if path is None else str(path)
        for name, path in (("projector", companions.projector), ("drafter", companions.drafter))
    }
