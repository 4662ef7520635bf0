// Rates by symbol and exchange. Each cell is a button that opens a pair. Everything is text.
const STEPS = {
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
};

function order(data, sort) {
  if (!sort) return data.rows.keys();
  const value = (row) =>
    typeof sort.column === "string" ? row[sort.column] : (row.cells[sort.column]?.value ?? null);
  return inOrder(data.rows.map(value), sort.falling);
}

function drawHeads(place, data, opened) {
  const heads = made("tr", made("thead", place));
  const columns = [["symbol", "symbol"], ["apart", "difference"]];
  columns.push(...data.venues.map((venue, at) => [at, venue]));
  for (const [column, name] of columns) {
    const sort = place.parentElement.sort;
    const falling = sort?.column === column ? sort.falling : undefined;
    drawHead(heads, name, column === "symbol" ? "" : "number", falling).onclick = () => {
      const next = falling === undefined ? column !== "symbol" : !falling;
      place.parentElement.sort = { column, falling: next };
      draw(place.parentElement, data, opened);
    };
  }
}

function drawCell(cell, data, from, name, opened) {
  if (!from) return;
  const share = Math.max(-1, Math.min(1, from.value / data.full));
  const [low, middle, high] = data.scale;
  const end = share < 0 ? low : high;
  cell.style.background = `color-mix(in srgb, ${end} ${100 * Math.abs(share)}%, ${middle})`;
  cell.title = from.title;
  const inside = made(from.key ? "button" : "span", cell, undefined, "rate");
  made("span", inside, from.badge, "badge");
  inside.append(from.shown);
  if (!from.key) return;
  inside.type = "button";
  inside.dataset.key = from.key;
  inside.ariaLabel = `${name}: ${from.shown}${from.badge ? `, ${from.badge}` : ""}`;
  inside.onclick = () => opened(from.key);
}

function drawRow(body, data, row, opened) {
  const line = made("tr", body);
  const symbol = made("th", line, undefined, "symbol");
  symbol.scope = "row";
  const name = made(row.key ? "button" : "span", symbol, row.symbol);
  made("td", line, row.shown, "number");
  row.cells.forEach((cell, at) => {
    drawCell(made("td", line), data, cell, `${row.symbol} ${data.venues[at]}`, opened);
  });
  if (!row.key) return;
  name.type = "button";
  name.dataset.key = row.key;
  name.ariaLabel = `Open ${row.symbol}, difference ${row.shown}`;
  name.onclick = () => opened(row.key);
}

function near(body, from, [down, right]) {
  const rows = [...body.rows];
  let y = rows.indexOf(from.closest("tr"));
  let x = [...rows[y].cells].indexOf(from.closest("th, td"));
  for (;;) {
    y += down;
    x += right;
    const cell = rows[y]?.cells[x];
    if (!cell) return null;
    const button = cell.querySelector("button");
    if (button) return button;
  }
}

function draw(place, data, opened) {
  const at = place.getRootNode().activeElement?.closest?.("tbody button")?.ariaLabel;
  const table = document.createElement("table");
  place.replaceChildren(table);
  made("caption", table, data.label);
  drawHeads(table, data, opened);
  const body = made("tbody", table);
  for (const each of order(data, place.sort)) drawRow(body, data, data.rows[each], opened);
  body.onkeydown = (event) => {
    const step = STEPS[event.key];
    const next = step && near(body, event.target, step);
    if (!next) return;
    event.preventDefault();
    next.focus();
  };
  const again = [...body.querySelectorAll("button")].find((button) => button.ariaLabel === at);
  again?.focus({ preventScroll: true });
}

function drawBar(place, data) {
  const [low, middle, high] = data.scale;
  const [first, zero, last] = data.bar;
  place.replaceChildren();
  made("span", place, first);
  made("span", place, "", "scale").style.background =
    `linear-gradient(to right, ${low}, ${middle}, ${high})`;
  made("span", place, last);
  place.title = `The colours are fixed: full from ${first} and ${last}, pale at ${zero}`;
}

function start(component) {
  const { data, parentElement, setTriggerValue } = component;
  const place = parentElement.querySelector("#rates");
  if (!place.grid) {
    const grid = (place.grid = made("span", place, undefined, "grid"));
    const look = () => {
      const right = grid.scrollLeft + grid.clientWidth;
      grid.classList.toggle("goes-on", right < grid.scrollWidth - 1);
    };
    grid.onscroll = look;
    new ResizeObserver(look).observe(grid);
    place.bar = made("span", place, undefined, "bar");
  }
  place.grid.style.maxHeight = data.most_px ? `${data.most_px}px` : "";
  const seen = JSON.stringify(data);
  if (place.seen === seen) return;
  place.seen = seen;
  const top = place.grid.scrollTop;
  draw(place.grid, data, (key) => setTriggerValue("opened", key));
  drawBar(place.bar, data);
  place.grid.scrollTop = top;
}
