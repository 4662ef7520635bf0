// Sends the stretch of time that the reader zooms to in a chart, [] for all of it, what is clicked
// on, and the level of a threshold that is dragged.
const LOOK_MS = 200;
const SETTLE_MS = 10;
const FAINT = 0.2;

function start(component) {
  const { data, setTriggerValue } = component;
  let plot = null;
  let pending = null;

  function send(range) {
    clearTimeout(pending);
    pending = setTimeout(() => setTriggerValue("range", range), SETTLE_MS);
  }

  function changed(change) {
    for (const [name, value] of Object.entries(change)) {
      const shape = name.match(/^shapes\[(\d+)\]\.y0$/);
      if (shape && plot.layout.shapes[shape[1]]?.name === "threshold") {
        setTriggerValue("threshold", Number(value));
        return;
      }
    }
    for (const axis of ["xaxis", "xaxis2"]) {
      const [since, until] = change[`${axis}.range`] ?? [
        change[`${axis}.range[0]`],
        change[`${axis}.range[1]`],
      ];
      if (since === undefined || until === undefined) continue;
      send([String(since), String(until)]);
      return;
    }
  }

  function clicked({ points }) {
    const opened = points[0]?.customdata;
    if (typeof opened === "string") setTriggerValue("opened", opened);
  }

  // Where one box has all lines in order, the one nearest to the pointer stands out.
  function pointed({ points, event }) {
    const lines = points.filter(({ fullData }) => fullData.type === "scatter");
    if (!event || lines.length < 2 || !plot.layout.hoversort) return;
    const box = plot.getBoundingClientRect();
    const away = ({ yaxis, y }) => Math.abs(event.clientY - box.top - yaxis._offset - yaxis.d2p(y));
    const nearest = lines.reduce((one, other) => (away(other) < away(one) ? other : one));
    emphasise(nearest.fullData.legendgroup || nearest.fullData.name);
  }

  function emphasise(chosen) {
    for (const trace of plot?.calcdata ?? []) {
      const { trace: line, node3 } = trace[0] ?? {};
      if (!node3 || line.type !== "scatter") continue;
      const mine = chosen === null || (line.legendgroup || line.name) === chosen;
      node3.style("opacity", mine ? null : FAINT);
    }
  }

  function unpointed() {
    emphasise(null);
  }

  function returned() {
    send([]);
  }

  function leave() {
    plot?.removeListener?.("plotly_relayout", changed);
    plot?.removeListener?.("plotly_doubleclick", returned);
    plot?.removeListener?.("plotly_click", clicked);
    plot?.removeListener?.("plotly_hover", pointed);
    plot?.removeListener?.("plotly_unhover", unpointed);
  }

  // Streamlit may put another chart in the place of this one at any time.
  function look() {
    const found = document.querySelector(`.st-key-${data.chart} .js-plotly-plot`);
    if (found === plot || !found?.on) return;
    leave();
    plot = found;
    plot.on("plotly_relayout", changed);
    plot.on("plotly_doubleclick", returned);
    plot.on("plotly_click", clicked);
    plot.on("plotly_hover", pointed);
    plot.on("plotly_unhover", unpointed);
  }

  look();
  const timer = setInterval(look, LOOK_MS);
  return () => {
    clearInterval(timer);
    leave();
  };
}
