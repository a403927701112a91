"""The engine's allocator, replayed."""

from hypothesis import given, settings
from hypothesis import strategies as st

from framework.planning.memory.engine_graph import MOST_COPIES, EngineGraph
from framework.planning.memory.graph_allocator import Results, peak_bytes, through_view

KIB = 1024


def peak(*rows: tuple[int, tuple[int, ...], bool]) -> int:
    results = Results()
    for size, sources, overwrites in rows:
        results.add(size, sources, -1, overwrites, 0)
    return peak_bytes(results, 1)[0]


def test_a_result_without_readers_stays() -> None:
    assert peak((KIB, (), False), (KIB, (), False)) == 2 * KIB


def test_the_place_of_a_result_is_free_after_its_last_reader() -> None:
    assert peak((KIB, (), False), (KIB, (0,), False), (KIB, (1,), False)) == 2 * KIB


def test_an_operation_may_write_over_what_only_it_reads() -> None:
    assert peak((KIB, (), False), (KIB, (0,), True), (KIB, (1,), True)) == KIB


def test_what_is_read_again_is_not_written_over() -> None:
    assert peak((KIB, (), False), (KIB, (0,), True), (KIB, (0, 1), False)) == 3 * KIB


def test_a_gap_that_is_too_small_is_no_place() -> None:
    rows = ((KIB, (), False), (KIB, (0,), False), (2 * KIB, (1,), False), (KIB, (1, 2), False))
    assert peak(*rows) == 4 * KIB


def test_the_smallest_gap_that_fits_is_taken() -> None:
    results = Results()
    big = results.add(4 * KIB, (), -1, False, 0)
    between = results.add(KIB, (), -1, False, 0)
    small = results.add(2 * KIB, (), -1, False, 0)
    end = results.add(KIB, (), -1, False, 0)
    results.add(0, (big, small), -1, False, 0)
    results.add(2 * KIB, (), -1, False, 0)  # where the small one was
    results.add(4 * KIB, (), -1, False, 0)  # where the big one was
    results.add(0, (between, end), -1, False, 0)
    assert peak_bytes(results, 1) == [8 * KIB]


def test_a_view_keeps_the_memory_that_it_shows() -> None:
    results = Results()
    made = results.add(KIB, (), -1, False, 0)
    view = results.add(KIB, (made,), made, False, 0)
    other = results.add(KIB, (), -1, False, 0)
    results.add(0, (view, other), -1, False, 0)
    assert peak_bytes(results, 1) == [2 * KIB]


def test_what_is_read_through_a_view_is_not_written_over() -> None:
    results = Results()
    made = results.add(KIB, (), -1, False, 0)
    view = results.add(KIB, (made,), made, False, 0)
    results.add(KIB, (view,), -1, True, 0)
    assert peak_bytes(results, 1) == [2 * KIB]


def test_a_view_without_a_row_of_its_own_keeps_the_memory_as_well() -> None:
    results = Results()
    made = results.add(KIB, (), -1, False, 0)
    results.add(KIB, (), -1, False, 0)
    results.add(KIB, (through_view(made),), -1, True, 0)
    assert peak_bytes(results, 1) == [3 * KIB]


def test_a_part_that_copies_much_is_divided() -> None:
    """Copies of the first piece make room for those of the second."""
    graph = EngineGraph(devices=2)
    made = [graph.add(KIB, graph.input(0), device=0) for _ in range(MOST_COPIES + 1)]
    for source in made:
        graph.use(source, device=1)
    assert graph.buffer_bytes()[1] == MOST_COPIES * KIB


def test_a_part_copies_what_it_reads_from_another_device() -> None:
    graph = EngineGraph(devices=2)
    tokens = graph.input(KIB)
    embedded = graph.add(4 * KIB, tokens, device=0)
    graph.add(8 * KIB, embedded, device=1)
    assert graph.buffer_bytes() == [5 * KIB, 12 * KIB]


def test_operations_without_weights_run_beside_the_gpu_before_them() -> None:
    graph = EngineGraph(devices=2)
    first = graph.add(KIB, graph.input(KIB), device=1)
    graph.add(KIB, graph.add(KIB, first), device=0)
    assert graph.places() == [0, 1, 1, 0]


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 1 << 40), st.booleans()), max_size=60), st.randoms())
def test_a_buffer_holds_at_least_its_largest_result_and_at_most_all(
    rows: list[tuple[int, bool]], random: object
) -> None:
    results = Results()
    for number, (size, overwrites) in enumerate(rows):
        count = min(number, 3)
        sources = tuple(random.sample(range(number), count))  # type: ignore[attr-defined]
        results.add(size, sources, -1, overwrites, 0)
    found = peak_bytes(results, 1)[0]
    assert max(results.sizes, default=0) <= found <= sum(results.sizes)
