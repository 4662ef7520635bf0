// A table whose rows open by click and by keyboard. Everything is shown as text.
const SVG = "http://www.w3.org/2000/svg";
const ARROW = " → ";
const LONG_TEXT = 40; // a longer one is on several lines

function drawLine(cell, values, words) {
  const known = values.filter((value) => value !== null);
  if (known.length < 2) {
    cell.textContent = "–";
    cell.title = words;
    return;
  }
  const low = Math.min(...known);
  const size = Math.max(...known) - low || 1;
  const place = (value) => (18 - (16 * (value - low)) / size).toFixed(1);
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${values.length - 1} 20`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", words);
  if (low < 0 && low + size > 0) {
    const zero = document.createElementNS(SVG, "line");
    const ends = { x1: 0, x2: values.length - 1, y1: place(0), y2: place(0) };
    for (const [name, value] of Object.entries(ends)) zero.setAttribute(name, value);
    svg.append(zero);
  }
  let drawn = "";
  values.forEach((value, at) => {
    if (value === null) return;
    const joined = at > 0 && values[at - 1] !== null;
    drawn += `${joined ? "L" : "M"}${at} ${place(value)}${joined ? "" : "h0.4"}`;
  });
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", drawn);
  svg.append(path);
  cell.append(svg);
  cell.title = words;
}

// One drawing of a row's cells of time, the states of each stacked. A little that is missing is
// seen: it is a third of the height at least.
function drawMap(cell, column, at) {
  const runs = column.values[at] || [];
  const [start, step] = column.cells;
  const count = runs.reduce((sum, [number]) => sum + number, 0);
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${count} 100`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", column.shown[at]);
  svg.classList.add("map");
  const time = (ts) => new Date(1000 * ts).toISOString().slice(0, 16).replace("T", " ");
  let x = 0;
  for (const [number, ...shares] of runs) {
    const group = document.createElementNS(SVG, "g");
    const known = shares.map((share, state) => [column.states[state], share]).filter((each) => each[1]);
    const words = known.map(([[state], share]) => `${state} ${share} %`).join(", ");
    const title = document.createElementNS(SVG, "title");
    const ends = [x, x + number].map((cells) => time(start + cells * step));
    title.textContent = `${ends.join(" to ")} UTC: ${words || "not asked for"}`;
    group.append(title);
    const least = known.length > 1 ? 33 : 100;
    let left = 100;
    known.reverse().forEach(([[state, colour], share], place) => {
      const marked = ["missing", "unrecoverable", "lost at the source"].includes(state);
      const last = place === known.length - 1;
      const high = last ? left : Math.min(left, marked ? Math.max(least, share) : share);
      const rect = document.createElementNS(SVG, "rect");
      const shape = { x, y: 100 - left, width: number, height: high, fill: colour };
      for (const [name, value] of Object.entries(shape)) rect.setAttribute(name, value);
      left -= high;
      group.append(rect);
    });
    x += number;
    svg.append(group);
  }
  cell.append(svg);
}

function drawLegend(place, column) {
  column.states.forEach(([state, colour], at) => {
    const present = column.values.some((runs) => (runs || []).some((run) => run[at + 1]));
    if (!present) return;
    const sample = made("span", place, undefined, "sample");
    made("span", sample, "■").style.color = colour;
    sample.append(` ${state}`);
  });
}

function drawCell(cell, column, at, open) {
  const text = column.shown[at];
  if (column.kind === "map") return drawMap(cell, column, at);
  if (column.kind === "line") return drawLine(cell, column.values[at] || [], text);
  if (column.kind === "age" && column.values[at] !== null) {
    const [late_s, old_s, stands] = column.limits[at];
    cell.age = { age_s: column.values[at], late_s, old_s, stands };
    return;
  }
  if (open) {
    const button = made("button", cell, text);
    button.type = "button";
  } else if (text.includes(ARROW)) {
    cell.classList.add("legs");
    text.split(ARROW).forEach((leg, number) => {
      if (number) cell.append(" ");
      made("span", cell, number ? `→ ${leg}` : leg, "leg");
    });
  } else {
    if (column.kind === "bar" && column.values[at] !== null) {
      made("span", cell, "", "bar").style.setProperty("--share", `${column.values[at]}%`);
      const widest = Math.max(...column.shown.map((each) => each.length));
      made("span", cell, text, "beside").style.minWidth = `${widest}ch`;
    } else {
      cell.append(text);
      if (text.length > LONG_TEXT) cell.classList.add("long");
    }
  }
  const title = column.titles?.[at] ?? (column.kind === "text" && column.values?.[at]);
  if (title) cell.title = title;
}

function order(data, sort) {
  const column = data.columns.find((each) => each.name === sort?.name);
  return column ? inOrder(column.values || column.shown, sort.falling) : data.keys.keys();
}

function countAges(place) {
  for (const cell of place.querySelectorAll("td.age")) {
    if (cell.age) showAge(cell, cell.age, place.since, ([largest]) => largest);
  }
}

// A table of more rows than it shows ends in half a row, however high its rows are. Their heights
// are read after the layout, where that costs nothing.
function limitHeight(place) {
  if (!place.most_px) return;
  const { top } = place.firstChild.getBoundingClientRect();
  const middles = [...place.querySelectorAll("tbody tr")].map((row) => {
    const at = row.getBoundingClientRect();
    return (at.top + at.bottom) / 2 - top;
  });
  const last = middles.findLast((middle) => middle <= place.most_px);
  place.style.maxHeight = `${last || place.most_px}px`;
}

function draw(place, data, opened) {
  const focused = place.getRootNode().activeElement?.closest?.("[data-key]")?.dataset.key;
  const table = document.createElement("table");
  table.classList.toggle("opens", data.opens);
  made("caption", table, data.label);
  const heads = made("tr", made("thead", table));
  for (const column of data.columns) {
    const before = place.sort?.name === column.name ? place.sort.falling : undefined;
    const title = column.name // breaks on a phone
      .replace("percentile", "per\u00adcen\u00adtile")
      .replace("differential", "differ\u00aden\u00adtial");
    const button = drawHead(heads, title, column.className, before);
    button.title = column.help || "";
    if (column.kind === "line" || column.kind === "map") button.disabled = true;
    if (column.kind === "map") drawLegend(button, column);
    button.onclick = () => {
      const falling = before === undefined ? column.kind !== "text" : !before;
      place.sort = { name: column.name, falling };
      draw(place, data, opened);
    };
  }
  const body = made("tbody", table);
  for (const at of order(data, place.sort)) {
    const row = made("tr", body);
    row.dataset.key = data.keys[at];
    data.columns.forEach((column, number) => {
      const opens = number === 0 && data.opens;
      drawCell(made("td", row, undefined, column.className), column, at, opens);
    });
    if (!data.opens) continue;
    row.onclick = () => opened(data.keys[at]);
    const texts = data.columns.filter((column) => column.kind === "text");
    const name = texts.map((column) => column.shown[at]).join(", ");
    row.querySelector("button").ariaLabel = `Open ${name}`;
  }
  body.onkeydown = (event) => {
    const way = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    const next = way && event.target.closest("tr")[way];
    if (!next) return;
    event.preventDefault();
    next.querySelector("button").focus();
  };
  place.replaceChildren(table);
  place.sized.disconnect();
  place.sized.observe(table);
  countAges(place);
  const again = [...body.rows].find((row) => row.dataset.key === focused);
  again?.querySelector("button").focus({ preventScroll: true });
}

function start(component) {
  const { data, parentElement, setTriggerValue } = component;
  const place = parentElement.querySelector("#rows");
  place.sized ??= new ResizeObserver(() => requestAnimationFrame(() => limitHeight(place)));
  if (place.most_px !== data.most_px) {
    place.most_px = data.most_px;
    place.style.maxHeight = data.most_px ? `${data.most_px}px` : "";
  }
  if (!data.opens) place.tabIndex = 0; // to scroll by keys
  const seen = JSON.stringify(data);
  if (place.seen !== seen) {
    place.seen = seen;
    place.since = Date.now();
    const top = place.firstChild && place.scrollTop;
    draw(place, data, (key) => setTriggerValue("opened", key));
    if (top) place.scrollTop = top; // the browser lays out the page for it
  }
  const timer = setInterval(countAges, 1000, place);
  return () => clearInterval(timer);
}
