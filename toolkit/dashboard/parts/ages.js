// Counts ages on from what the server measured, once a second.
const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

function words(seconds) {
  const first = UNITS.findIndex(([, size]) => seconds >= size);
  if (first < 0) return ["0 s"];
  const [unit, size] = UNITS[first];
  const whole = Math.floor(seconds / size);
  const next = UNITS[first + 1];
  const rest = next ? Math.floor((seconds - whole * size) / next[1]) : 0;
  return rest ? [`${whole} ${unit}`, `${rest} ${next[0]}`] : [`${whole} ${unit}`];
}

// Without limits an age has no state.
// That of a service whose clock stands does not grow.
function showAge(place, { age_s, late_s, old_s, stands }, since, write) {
  const age = Math.floor(age_s + (stands ? 0 : (Date.now() - since) / 1000));
  const limited = age >= old_s ? "old" : age >= late_s ? "late" : "fresh";
  const state = old_s === null ? "none" : limited;
  const text = write(words(age));
  if (place.textContent !== text) place.textContent = text;
  if (place.dataset.state !== state) place.dataset.state = state;
  const alarm = { late: ": later than usual", old: ": stale" }[state] || "";
  place.title = `The newest row ended ${words(age).join(" ")} ago by the service's clock${alarm}`;
}
