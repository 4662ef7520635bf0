// Sends the stretch of time that the reader zooms to in a chart, [] for all of it, what is clicked
// on, and the level of a threshold that is dragged.
const LOOK_MS = 200;
const SETTLE_MS = 10;

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

  function returned() {
    send([]);
  }

  function leave() {
    plot?.removeListener?.("plotly_relayout", changed);
    plot?.removeListener?.("plotly_doubleclick", returned);
    plot?.removeListener?.("plotly_click", clicked);
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
  }

  look();
  const timer = setInterval(look, LOOK_MS);
  return () => {
    clearInterval(timer);
    leave();
  };
}
