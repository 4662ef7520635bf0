// Counts down to the next settlement of each leg, once a second.
function words(seconds) {
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  return parts.map((part) => String(part).padStart(2, "0")).join(":");
}

function start(component) {
  const { data, parentElement } = component;
  const place = parentElement.querySelector("#countdown");
  const since = Date.now();

  function show() {
    const gone = Math.floor((Date.now() - since) / 1000);
    const legs = data.due.map(({ leg, in_s: left, every_s: every }) => {
      const now = left - gone;
      return `${leg} ${words(now > 0 ? now : every - (-now % every))}`;
    });
    place.textContent = `settles in: ${legs.join(", ")}`;
  }

  place.title = "Hours, minutes and seconds to the next settlement, by the service's clock";
  show();
  const timer = setInterval(show, 1000);
  return () => clearInterval(timer);
}
