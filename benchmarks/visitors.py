"""Many visitors at once: `python -m benchmarks.visitors --home WORKSPACE --collection NAME [--servers 2]`.

Each visitor is a websocket session as a browser opens it. First one looks at every page with every captioner of the
collection, on each server. Then all go from page to page at random, with a pause of 2 to 6 s between, and wait until a
page's script has ended. Printed: how long that took (median, 95th percentile, longest), by page too, errors, processor
seconds a view, and the servers' memory before and after. Several servers share the workspace.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from urllib.parse import urlencode

import psutil
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import connect

from capbias_core.workspace.store import Workspace
from tests.browser import server

PAGES = ("", "Data", "Scores", "Captions", "Images", "Published")
PAUSE = (2.0, 6.0)
LONGEST = 120.0  # seconds after which a view counts as an error


def at_random(queries: list[str], end: float) -> Iterator[tuple[str, str]]:
    """Pages and what of them, until the time is over."""
    while time.monotonic() < end:
        yield random.choice(PAGES), random.choice(queries)


async def visit(
    address: str,
    views: Iterable[tuple[str, str]],
    pause: tuple[float, float],
    taken: dict[str, list[float]],
    errors: list[str],
) -> None:
    """One visitor, who looks at one view after the other."""
    await asyncio.sleep(random.uniform(0, pause[1]))
    url = f"{address.replace('http', 'ws')}/_stcore/stream"
    async with connect(url, max_size=None, open_timeout=LONGEST, subprotocols=["streamlit"]) as socket:  # pyright: ignore[reportArgumentType]
        for page, query in views:
            message = BackMsg()
            message.rerun_script.query_string = query
            message.rerun_script.page_name = page
            start = time.monotonic()
            await socket.send(message.SerializeToString())
            try:
                async with asyncio.timeout(LONGEST):
                    if (said := await _drawn(socket, f">{page or 'Answer'}</h1>")) != "":
                        errors.append(f"{page or 'Answer'}: {said}")
            except TimeoutError:
                errors.append(f"{page or 'Answer'}: not drawn after {LONGEST:.0f} s")
            taken[page].append(time.monotonic() - start)
            await asyncio.sleep(random.uniform(*pause))


async def _drawn(socket, heading: str) -> str:
    """Wait until the script of the page has ended; what it raised, or that another page came, '' for nothing."""
    said = "another page"
    async for data in socket:
        message = ForwardMsg()
        message.ParseFromString(data)
        element = message.delta.new_element
        if heading in element.html.body:
            said = ""
        if element.HasField("exception"):
            said = message.delta.new_element.exception.type
        if message.HasField("script_finished"):
            return said
    return "the connection ended"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True, help="a workspace with scores")
    parser.add_argument("--collection", required=True)
    parser.add_argument("--visitors", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--servers", type=int, default=1)
    options = parser.parse_args()
    sets = Workspace(options.home, make=False).items("captions", options.collection)
    queries = [urlencode({"collection": options.collection, "captioner": item.name}) for item in sets]
    taken: dict[str, list[float]] = defaultdict(list)
    errors: list[str] = []
    with ExitStack() as stack:
        started = [stack.enter_context(server(options.home)) for _ in range(options.servers)]
        processes = [psutil.Process(process.pid) for _, process in started]

        addresses = [address for address, _ in started]

        async def first() -> None:
            every = list(product(PAGES, queries))
            await asyncio.gather(*(visit(own, every, (0, 0), taken, errors) for own in addresses))

        async def everybody() -> None:
            end = time.monotonic() + options.seconds
            own = [addresses[number % len(addresses)] for number in range(options.visitors)]
            await asyncio.gather(*(visit(at, at_random(queries, end), PAUSE, taken, errors) for at in own))

        asyncio.run(first())
        print(f"every view once, a visitor a server: {summary([own for page in taken.values() for own in page])}")
        taken.clear()
        before = [(process.cpu_times(), process.memory_info().rss) for process in processes]
        asyncio.run(everybody())
        after = [(process.cpu_times(), process.memory_info().rss) for process in processes]
    every = [own for page in taken.values() for own in page]
    used = sum(
        now.user + now.system - then.user - then.system for (then, _), (now, _) in zip(before, after, strict=True)
    )
    print(f"{options.visitors} visitors, {options.servers} servers, {options.seconds:.0f} s: {len(every)} views")
    print(f"all pages: {summary(every)}; errors: {len(errors)} {sorted(set(errors))[:5]}")
    for page, own in sorted(taken.items()):
        print(f"{page or 'Answer'}: {summary(own)}")
    grown = ", ".join(
        f"{then / 1e6:.0f} to {now / 1e6:.0f} MB" for (_, then), (_, now) in zip(before, after, strict=True)
    )
    print(f"processor seconds a view: {used / len(every):.3f}; memory: {grown}")


def summary(seconds: list[float]) -> str:
    ordered = sorted(seconds)
    high = ordered[int(0.95 * (len(ordered) - 1))]
    return f"median {statistics.median(ordered):.2f}, 95th percentile {high:.2f}, longest {ordered[-1]:.2f} s"


if __name__ == "__main__":
    main()
