"""How soon a page is painted, as ratios to an empty page of Streamlit in the same run.

``python -m benchmarks.dashboard [--quick] [--runs N] [--store FILE]``: a store of 20 million rows
of spreads, as many pairs of funding and 200,000 events, in Chromium. A page counts as painted when
its script has ended, nothing is a placeholder any more and every chart of it has its traces. Each
visit alternates with one of the empty page, and medians are compared. What a page sends is counted
at its socket.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, Page, WebSocket, sync_playwright
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from benchmarks._events import EVENTS_END, fill_logs
from benchmarks._walks import START, STEP_S, TOGETHER, fill_store, funding_rows, key, spread_rows
from toolkit.dashboard import command
from toolkit.dashboard.link import PAGES

CHROMIUM = os.environ.get("RAIL_CHROMIUM", "/usr/bin/chromium")
PATIENCE_MS = 300_000
EMPTY = """import time
import streamlit as st
st.header("Empty")
st.button("Again")
st.caption(f"{time.time()}")
"""
PAINTED = """title => {
  const app = document.querySelector("[data-testid=stApp]");
  const charts = [...document.querySelectorAll("[data-testid=stPlotlyChart]")];
  return app?.dataset.testScriptState === "notRunning"
    && [...document.querySelectorAll("h1,h2")].some(each => each.textContent === title)
    && !document.querySelector("[data-testid=stSkeleton]")
    && charts.every(each => each.querySelector(".js-plotly-plot")?._fullLayout
      && each.querySelector(".main-svg"));
}"""
CLICK_AND_WAIT = """() => new Promise(done => {
  // Begin and end of so short a run may reach the page at once, so a text of it is compared.
  const text = () => document.querySelector("[data-testid=stCaptionContainer]").innerText;
  const before = text();
  new MutationObserver(() => { if (text() !== before) done(); }).observe(
    document.querySelector("[data-testid=stApp]"),
    {subtree: true, childList: true, characterData: true},
  );
  document.querySelector("[data-testid=stButton] button").click();
})"""

FRAMES = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


@dataclass
class Payload:
    """What a page got over its socket: kB in all, and kB of its largest chart."""

    page_kb: float = 0.0
    chart_kb: float = 0.0

    def listen(self, page: Page) -> None:
        page.on("websocket", self._open)

    def _open(self, opened: WebSocket) -> None:
        opened.on("framereceived", self._count)

    def _count(self, frame: bytes | str) -> None:
        if not isinstance(frame, bytes):
            return
        self.page_kb += len(frame) / 1e3
        element = ForwardMsg.FromString(frame).delta.new_element
        if element.WhichOneof("type") == "plotly_chart":
            self.chart_kb = max(self.chart_kb, len(frame) / 1e3)


@dataclass
class Measured:
    """The seconds of each visit by page, and the largest payloads of each."""

    taken_s: dict[str, list[float]] = field(default_factory=dict)
    payloads: dict[str, Payload] = field(default_factory=dict)

    def visit(self, browser: Browser, address: str, name: str, title: str, kind: str = "") -> None:
        """Open a page in a session of its own, with the browser's scripts in its cache."""
        page, payload = browser.contexts[0].new_page(), Payload()
        payload.listen(page)
        began = time.perf_counter()
        page.goto(f"{address}/{'' if name == 'overview' else name}")
        page.wait_for_function(PAINTED, arg=title, timeout=PATIENCE_MS, polling=20)
        page.evaluate(FRAMES)
        self.taken_s.setdefault(name + kind, []).append(time.perf_counter() - began)
        if name:
            self.payloads[name] = payload
            taken_s = self.taken_s[name + kind][-1]
            print(f"  {name}{kind}: {taken_s:.2f} s", file=sys.stderr, flush=True)
        page.close()

    def median(self, name: str) -> float:
        return statistics.median(self.taken_s[name])


@contextmanager
def serving(argv: list[str]) -> Iterator[str]:
    """The address of a Streamlit server while the block lasts."""
    port = int(argv[argv.index("--server.port") + 1])
    process = subprocess.Popen([sys.executable, "-m", *argv], stdout=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        while True:
            try:
                urllib.request.urlopen(f"{address}/_stcore/health").close()
                break
            except OSError:
                time.sleep(0.1)
        yield address
    finally:
        process.terminate()
        process.wait(60)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


def make_store(folder: Path, trajectories: int, minutes: int, events: int) -> Path:
    """A store whose newest rows are of now, by its service's clock."""
    blocks = [range(at, at + TOGETHER) for at in range(0, trajectories, TOGETHER)]
    now = EVENTS_END if minutes * STEP_S > 20 * 86_400 else START + STEP_S * minutes
    fill_store(folder, (spread_rows(block, minutes) for block in blocks), now)
    fill_store(folder, (funding_rows(block, minutes // 60) for block in blocks), now)
    fill_logs(folder, events)
    return folder / "rail.duckdb"


def commit_elsewhere(store: Path, number: int) -> None:
    """Commit rows of a trajectory that no page shows rows of."""
    rows = spread_rows(range(10_000 + number, 10_001 + number), 10)
    fill_store(store.parent, [rows], EVENTS_END)


def zoom(browser: Browser, address: str, empty: str, runs: int) -> tuple[list[float], list[float]]:
    """Seconds from the end of a drag to the rows of its part, and of a click's empty rerun."""
    page = browser.contexts[0].new_page()
    page.goto(f"{address}/trajectory?trajectory={key(1)}&refresh=off")
    page.wait_for_function(PAINTED, arg="Trajectory", timeout=PATIENCE_MS)
    other = browser.contexts[0].new_page()
    other.goto(empty)
    other.wait_for_function(PAINTED, arg="Empty", timeout=PATIENCE_MS)
    zooms, reruns = [], []
    for _ in range(runs):
        page.bring_to_front()
        page.wait_for_timeout(800)
        place = page.locator(".st-key-chart .nsewdrag[data-subplot=xy2]").bounding_box()
        assert place is not None
        y = place["y"] + place["height"] / 2
        page.mouse.move(place["x"] + 0.3 * place["width"], y)
        page.mouse.down()
        page.mouse.move(place["x"] + 0.7 * place["width"], y, steps=5)
        before = page.url
        began = time.perf_counter()
        page.mouse.up()
        page.wait_for_function("before => location.href !== before", arg=before, polling=10)
        page.wait_for_function(PAINTED, arg="Trajectory", timeout=PATIENCE_MS, polling=10)
        page.evaluate(FRAMES)
        zooms.append(time.perf_counter() - began)
        other.bring_to_front()
        began = time.perf_counter()
        other.evaluate(CLICK_AND_WAIT)
        other.wait_for_function(PAINTED, arg="Empty", timeout=PATIENCE_MS, polling=10)
        other.evaluate(FRAMES)
        reruns.append(time.perf_counter() - began)
    page.close()
    other.close()
    return zooms, reruns


def measure(store: Path, runs: int) -> dict[str, float]:
    """Visit every page, print what each took, and return the ratios."""
    script = store.with_name("empty.py")
    script.write_text(EMPTY)
    argv = command(store, port=free_port(), host="127.0.0.1", headless=True)
    empty_argv = command(store, port=free_port(), host="127.0.0.1", headless=True)
    empty_argv[2] = str(script)
    found = Measured()
    with ExitStack() as closing:
        address, empty = (closing.enter_context(serving(each)) for each in (argv, empty_argv))
        chromium = closing.enter_context(sync_playwright()).chromium
        browser = chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        closing.callback(browser.close)
        browser.new_context(viewport={"width": 1280, "height": 900})
        for name, title in PAGES.items():
            found.visit(browser, address, name, title, " first")
            found.visit(browser, empty, "", "Empty")
        for number in range(runs):
            for name, title in PAGES.items():
                found.visit(browser, empty, "", "Empty", " warm")
                found.visit(browser, address, name, title)
            commit_elsewhere(store, number)
            for name, title in PAGES.items():
                found.visit(browser, address, name, title, " after a commit")
        zooms, reruns = zoom(browser, address, empty, runs)
    base = found.median(" warm")
    print(f"empty page {base:.2f} s, load {os.getloadavg()[0]:.1f}; medians of {runs}, ratios")
    for name in PAGES:
        warm, cold = found.median(name), found.median(f"{name} after a commit")
        kept, first = found.payloads[name], found.median(f"{name} first")
        print(
            f"{name:11} {warm:6.2f} s, {warm / base:5.2f}x empty; after a commit "
            f"{cold / warm:5.2f}x; first of all {first:6.2f} s; "
            f"page {kept.page_kb:5.0f} kB, chart {kept.chart_kb:4.0f} kB"
        )
    zoomed, rerun = statistics.median(zooms), statistics.median(reruns)
    print(f"zoom {zoomed:.2f} s, empty rerun {rerun:.2f} s")
    return {
        "first_paint_max": max(found.median(name) for name in PAGES) / base,
        "cold_after_commit": max(
            found.median(f"{name} after a commit") / found.median(name) for name in PAGES
        ),
        "zoom_refetch": zoomed / rerun,
        "chart_payload_kb_max": max(each.chart_kb for each in found.payloads.values()),
        "page_payload_kb_max": max(found.payloads[name].page_kb for name in PAGES),
    }


def main() -> None:
    """Print what was measured, and the ratios as one line of JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="40 x 2,000 rows, 2,000 events")
    parser.add_argument("--runs", type=int, help="visits of each page; 5, with --quick 2")
    parser.add_argument("--store", type=Path, help="made before by this benchmark, or made there")
    asked = parser.parse_args()
    sizes, runs = ((50, 2_000, 2_000), 2) if asked.quick else ((500, 40_000, 200_000), 5)
    with tempfile.TemporaryDirectory() as folder:
        store = asked.store or Path(folder, "rail.duckdb")
        if not store.exists():
            make_store(store.parent, *sizes)
        ratios = measure(store, asked.runs or runs)
    rounded = {name: round(value, 2) for name, value in ratios.items()}
    print(json.dumps({"name": "dashboard", "rows": sizes[0] * sizes[1], "ratios": rounded}))


if __name__ == "__main__":
    main()
