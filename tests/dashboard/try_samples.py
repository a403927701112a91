"""The page Try in every state worth seeing, and a conversation with everything in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from framework.dashboard.pages.shell import Shell
from framework.dashboard.tryout.lanes import Ability, Lane, ability_of, lane_of, lane_state
from framework.dashboard.tryout.page import TryForm, TryPage, choice_of, kept_talk
from framework.dashboard.tryout.remedies import REMEDIES
from framework.dashboard.tryout.settings import read_settings
from framework.dashboard.tryout.talk import Answer, RequestText, Talk, ToolCall, Trouble, Turn
from framework.models.gguf_fields import GgufHeader
from framework.values.instance import ModelView, State
from tests.dashboard import pool_samples, samples

CHATS = GgufHeader("llama", chat_template="{{ messages }} reasoning_effort 'low' 'high'", template_bytes=40)
THINKS = GgufHeader("qwen3", chat_template="{% if enable_thinking %}", template_bytes=20)
BASE = GgufHeader("llama")
EMBEDS = GgufHeader("nomic-bert", pooling_type=1)

FULL = Answer(
    model="smollm2",
    text="Horses, in short:\n\n1. A grey one.\n2. A bay one.",
    thinking="They want horses. Two should do.",
    calls=(ToolCall("weather", '{"place": "Oslo"}'), ToolCall("time", "{}")),
    note="Ended at its limit of tokens.",
    numbers=(("Queue", "2 ms"), ("First token", "84 ms"), ("Answer", "40 tokens, 55.1 tokens/s")),
    request=RequestText("curl http://127.0.0.1:8080/v1/chat/completions", "import json\n"),
    place="0-0",
)
NO_ROOM = Trouble("model_load_failed", "Model 'big' failed to load.", "Choose less.", "out_of_memory")
FAILED = Answer("big", trouble=NO_ROOM, place="0-1")
TALK: Talk = (Turn("Name two horses.", (FULL, FAILED)),)


def lane(number: int, view: ModelView, ability: Ability | None = None, effort: str = "") -> Lane:
    """A lane beside which somebody waits for memory."""
    state = lane_state(number, view, (pool_samples.gpu_pool(),))
    return lane_of(number, view, ability or ability_of(view.request, CHATS), effort, state)


def try_page(
    shell: Shell,
    *lanes: Lane,
    views: tuple[ModelView, ...] = (),
    talk: Talk = (),
    message: str = "",
    **typed: str,
) -> TryPage:
    """The page of these lanes."""
    asked = read_settings(typed)
    names = [one.name for one in lanes] + ["", ""]
    return TryPage(
        shell=shell,
        empty="",
        choice=choice_of(views, names[0], names[1]),
        lanes=lanes,
        faults=(),
        turns=talk,
        talk=kept_talk(talk),
        message=message,
        form=TryForm(asked.texts, asked.faults),
        remedies=tuple(REMEDIES.items()),
        wants_key=False,
        new_url="/try",
    )


def try_pages(shell: Shell) -> Iterator[tuple[str, TryPage]]:
    """Pages with names for tests."""
    ready, loading, failed = samples.model(), samples.loading(), samples.failed()
    idle = samples.model("idle", State.STOPPED)
    embeds = samples.model("embeds", State.STOPPED)
    every = (ready, loading, failed, idle, embeds)
    yield "try", try_page(shell, lane(0, ready), views=every)
    both = (lane(0, ready, effort="low"), lane(1, failed, ability_of(failed.request, THINKS)))
    yield "try-side-by-side", try_page(shell, *both, views=every, talk=TALK, message="And now?")
    yield "try-while-it-loads", try_page(shell, lane(0, loading), views=every)
    base = lane(0, idle, ability_of(idle.request, BASE))
    vectors = lane(1, embeds, ability_of(embeds.request, EMBEDS))
    yield "try-without-chat", try_page(shell, base, vectors, views=every)
    wrong = try_page(shell, lane(0, ready), views=every, temperature="hot", schema="{", tools="{}", top_p="2")
    yield "try-with-faults", replace(wrong, faults=("There is no model 'x'.",))
    many = tuple(samples.model(f"model-{number}") for number in range(300))
    yield "try-many", try_page(shell, lane(0, many[0]), views=many)
    yield "try-empty", replace(try_page(shell), empty="No models are declared yet.")


def hostile_try_page(shell: Shell, text: str) -> TryPage:
    """The page with this text wherever a text can come from outside."""
    view = samples.model(text)
    answer = Answer(
        model=text,
        text=text,
        thinking=text,
        calls=(ToolCall(text, text),),
        trouble=Trouble("a_code", text, text, text),
        numbers=((text, text),),
        request=RequestText(text, text),
        place="0-0",
    )
    typed = dict.fromkeys(("system", "temperature", "schema", "tools"), text)
    return replace(
        try_page(shell, lane(0, view), views=(view,), talk=(Turn(text, (answer,)),), message=text, **typed),
        faults=(text,),
    )
