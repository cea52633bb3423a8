"""Fan-out without holes: however fast lines come and however slowly a viewer reads."""

from __future__ import annotations

import asyncio
import threading

from hypothesis import given, settings
from hypothesis import strategies as st

from server.hub import Bell, Channel, Hub


async def _view(channel: Channel, position: int, pauses: list[int]) -> list[str]:
    """A viewer that lets the loop turn so many times after each message."""
    got: list[str] = []
    messages = 0
    async for message in channel.follow(position):
        got += message.split("\n")
        for _ in range(pauses[messages % len(pauses)]):
            await asyncio.sleep(0)
        messages += 1
    return got


async def _play(bursts: list[int], viewers: list[tuple[int, list[int]]]) -> None:
    channel = Channel(asyncio.get_running_loop(), delay_s=0.0)
    lines = [str(i) for i in range(sum(bursts))]
    watching = [asyncio.create_task(_view(channel, start, pauses)) for start, pauses in viewers]
    rest = iter(lines)
    for burst in bursts:
        for _ in range(burst):
            channel.append(next(rest))
        await asyncio.sleep(0)
    channel.end()
    late = asyncio.create_task(_view(channel, 0, [0]))
    for (start, _), got in zip([*viewers, (0, [0])], await asyncio.gather(*watching, late), strict=True):
        assert got == lines[start:]


@settings(max_examples=60, deadline=None)
@given(
    bursts=st.lists(st.integers(0, 40), min_size=1, max_size=20),
    viewers=st.lists(
        st.tuples(st.integers(0, 30), st.lists(st.integers(0, 25), min_size=1, max_size=5)), min_size=1, max_size=5
    ),
)
def test_every_viewer_gets_every_line_once_and_in_order(
    bursts: list[int], viewers: list[tuple[int, list[int]]]
) -> None:
    asyncio.run(_play(bursts, viewers))


def test_lines_from_another_thread_come_whole() -> None:
    lines = [str(i) for i in range(5000)]

    def write(channel: Channel) -> None:
        for line in lines:
            channel.append(line)
        channel.end()

    async def play() -> list[list[str]]:
        channel = Channel(asyncio.get_running_loop())
        writer = threading.Thread(target=write, args=(channel,))
        writer.start()
        got = await asyncio.gather(*(_view(channel, 0, [i]) for i in range(5)))
        writer.join()
        return got

    assert asyncio.run(play()) == [lines] * 5


def test_one_encoder_serves_all_viewers() -> None:
    async def play() -> int:
        channel = Channel(asyncio.get_running_loop(), delay_s=0.001)
        viewers = [asyncio.create_task(_view(channel, 0, [0])) for _ in range(60)]
        for i in range(50):
            channel.append(str(i))
            await asyncio.sleep(0.002)
        channel.end()
        await asyncio.gather(*viewers)
        return channel.n_encoded

    assert asyncio.run(play()) <= 51


def test_a_burst_is_one_message() -> None:
    async def play() -> list[str]:
        channel = Channel(asyncio.get_running_loop())
        for i in range(30):
            channel.append(str(i))
        channel.end()
        return [message async for message in channel.follow(0)]

    assert len(asyncio.run(play())) == 1


def test_a_bell_strikes_once_for_many_rings_and_misses_none() -> None:
    async def play() -> int:
        bell, strikes = Bell(asyncio.get_running_loop(), 0.005), 0
        for _ in range(3):
            struck = bell.next()
            for _ in range(100):
                bell.ring()
            await struck.wait()
            strikes += bell.next() is not struck
        return strikes

    assert asyncio.run(play()) == 3


def test_ringing_after_the_loop_has_closed_is_harmless() -> None:
    async def make() -> Bell:
        return Bell(asyncio.get_running_loop())

    asyncio.run(make()).ring()


def test_a_run_that_is_over_is_forgotten() -> None:
    async def play() -> tuple[bool, bool]:
        hub = Hub(asyncio.get_running_loop())
        known = hub.open("a") is hub.get("a")
        hub.forget("a")
        return known, hub.get("a") is None

    assert asyncio.run(play()) == (True, True)
