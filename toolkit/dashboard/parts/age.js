function start(component) {
  const { data, parentElement } = component;
  const place = parentElement.querySelector("#age");
  const since = Date.now();

  function show() {
    if (data.age_s !== null) {
      showAge(place, data, since, (parts) => `${parts.join(" ")} old`);
      return;
    }
    place.textContent = "no rows yet";
    place.dataset.state = "none";
  }

  show();
  const timer = setInterval(show, 1000);
  return () => clearInterval(timer);
}
