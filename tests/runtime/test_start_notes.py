"""What the log of a start that ended well says was not granted (FM-13)."""

from __future__ import annotations

from pathlib import Path

from framework.runtime.start_notes import start_notes
from framework.values.instance import State
from tests.conftest import MakeFake
from tests.runtime.conftest import FleetRig, request_for

SURVIVED = (
    "0.03.1 E ggml_backend_cuda_buffer_type_alloc_buffer: allocating 51748.00 MiB on device 1: cudaMalloc"
    " failed: out of memory",
    "0.03.1 E ggml_gallocr_reserve_n_impl: failed to allocate CUDA1 buffer of size 54261710848",
    "0.03.1 W llama_context: compute buffer allocation failed, retrying without pipeline parallelism",
    "0.03.9 I srv    load_model: initializing, n_slots = 1, n_ctx_slot = 4096",
)


def test_a_start_that_gave_up_pipeline_parallelism_tells_which_device_lacked_memory() -> None:
    (note,) = start_notes(SURVIVED)
    assert note.code == "pipeline_parallel_off"
    assert "51 GiB were refused on device 1." in note.message
    assert note.severity == "warning"


def test_an_ordinary_start_has_no_notes() -> None:
    assert start_notes(SURVIVED[3:]) == ()


def test_a_text_that_quotes_the_words_is_no_note() -> None:
    assert start_notes((f"print_info: general.name = {SURVIVED[2]}",)) == ()


async def test_a_model_that_survived_it_is_ready_with_the_note(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.declare(request_for(fake_engine(stderr=SURVIVED), tiny_gguf))
    view = await rig.until("m", State.READY, State.FAILED)
    assert view.state is State.READY
    assert view.last_error is None
    assert view.result is not None
    assert "pipeline_parallel_off" in [reason.code for reason in view.result.degradations]
