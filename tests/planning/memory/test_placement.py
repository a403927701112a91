"""Which device holds which layer, and with it which weights."""

import pytest

from framework.planning.memory.placement import HOST, place
from framework.planning.memory.settings import GpuBudget, Offload
from framework.planning.memory.shape import ModelShape
from framework.planning.memory.tensor_table import Bytes, LayerTensors, TensorTable
from framework.planning.memory.weights import weights_by_device

GIB = 1 << 30
ONE = (GpuBudget("A", GIB),)
TWO = (GpuBudget("A", GIB), GpuBudget("B", GIB))
LAYER = LayerTensors({}, Bytes(plain=10), Bytes(plain=100))
TABLE = TensorTable(
    (LAYER,) * 4,
    {
        "token_embd.weight": ((4, 8), Bytes(plain=1000)),
        "output_norm.weight": ((4,), Bytes(plain=1)),
    },
)
SHAPE = ModelShape("llama", n_layers=4)


def test_without_gpus_everything_is_in_host_memory() -> None:
    assert set(place(3, Offload(), ()).layers) == {HOST}


def test_all_layers_and_the_output_go_to_the_gpu_unless_said_otherwise() -> None:
    placement = place(3, Offload(), ONE)
    assert (placement.layers, placement.output) == (("A", "A", "A"), "A")


@pytest.mark.parametrize(
    ("gpu_layers", "on_gpu", "output"),
    [(0, 0, HOST), (1, 0, "A"), (2, 1, "A"), (4, 3, "A"), (5, 4, "A"), (99, 4, "A"), (-1, 0, HOST)],
)
def test_the_last_layers_go_to_the_gpu_and_the_output_counts_as_one(
    gpu_layers: int, on_gpu: int, output: str
) -> None:
    placement = place(4, Offload(gpu_layers), ONE)
    assert placement.layers == (HOST,) * (4 - on_gpu) + ("A",) * on_gpu
    assert placement.output == output


def test_two_gpus_share_by_what_is_free() -> None:
    gpus = (GpuBudget("A", 3 * GIB), GpuBudget("B", GIB))
    assert place(7, Offload(), gpus).layers == ("A",) * 6 + ("B",)


def test_a_split_that_was_asked_for_counts() -> None:
    assert place(7, Offload(split=(1.0, 3.0)), TWO).layers == ("A", "A") + ("B",) * 5


def test_gpus_without_free_memory_share_evenly() -> None:
    empty = (GpuBudget("A", 0), GpuBudget("B", 0))
    assert place(3, Offload(), empty).layers == ("A", "A", "B")


def sizes(offload: Offload, gpus: tuple[GpuBudget, ...] = ONE, **changes: object) -> dict[str, int]:
    shape = ModelShape(**{"architecture": "llama", "n_layers": 4, **changes})  # type: ignore[arg-type]
    found = weights_by_device(shape, TABLE, place(4, offload, gpus))
    return {device: size.plain for device, size in found.items()}


def test_the_embedding_stays_in_host_memory_and_is_the_output_once_more() -> None:
    assert sizes(Offload()) == {"A": 4 * 110 + 1001, HOST: 1000}


def test_in_host_memory_embedding_and_output_are_one() -> None:
    assert sizes(Offload(), ()) == {HOST: 4 * 110 + 1001}


def test_gemma_3n_keeps_two_even_there() -> None:
    assert sizes(Offload(), (), architecture="gemma3n") == {HOST: 4 * 110 + 2001}


def test_experts_of_the_first_layers_can_stay_in_host_memory() -> None:
    assert sizes(Offload(cpu_experts=3)) == {"A": 4 * 10 + 100 + 1001, HOST: 300 + 1000}


def test_an_unused_prediction_layer_is_not_loaded() -> None:
    assert sizes(Offload(), nextn_layers=1)["A"] == 3 * 110 + 1001


def test_some_architectures_load_it_all_the_same() -> None:
    assert sizes(Offload(), nextn_layers=1, architecture="qwen35")["A"] == 4 * 110 + 1001


def test_an_encoder_has_no_output() -> None:
    assert sizes(Offload(), architecture="bert")["A"] == 4 * 110 + 1
