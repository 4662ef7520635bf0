// Counts the age of the data on from what the server measured, once a second.
const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

function words(seconds) {
  const first = UNITS.findIndex(([, size]) => seconds >= size);
  if (first < 0) return "0 s";
  const [unit, size] = UNITS[first];
  const whole = Math.floor(seconds / size);
  const next = UNITS[first + 1];
  const rest = next ? Math.floor((seconds - whole * size) / next[1]) : 0;
  return rest ? `${whole} ${unit} ${rest} ${next[0]}` : `${whole} ${unit}`;
}

export default function (component) {
  const { data, parentElement } = component;
  const place = parentElement.querySelector("#age");
  const since = Date.now();

  function show() {
    if (data.age_s === null) {
      place.textContent = "no rows yet";
      place.dataset.state = "none";
      return;
    }
    const age = Math.floor(data.age_s + (Date.now() - since) / 1000);
    const state = age >= data.old_s ? "old" : age >= data.late_s ? "late" : "fresh";
    place.textContent = `${words(age)} old`;
    if (place.dataset.state !== state) place.dataset.state = state;
    const alarm = { fresh: "", late: ": later than usual", old: ": stale" }[state];
    place.title = `The newest row ended ${words(age)} ago by the service's clock${alarm}`;
  }

  show();
  const timer = setInterval(show, 1000);
  return () => clearInterval(timer);
}
