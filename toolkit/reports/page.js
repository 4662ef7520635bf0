// Inflates plotly.js, which is in the page as gzip, and has the figures drawn. For paper the
// figures are drawn light and as wide as a page, and what is folded is opened.
(async function () {
  "use strict";
  const paper = 680;
  const figures = () => document.querySelectorAll(".rail-figure");

  async function inflated(text) {
    const bytes = Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  function onPaper(width) {
    for (const box of figures()) {
      const plot = box.firstElementChild;
      box.dispatchEvent(new CustomEvent("rail-draw", { detail: { paper: Boolean(width) } }));
      if (plot && plot.layout) Plotly.relayout(plot, width ? { width } : { width: null, autosize: true });
    }
  }

  addEventListener("beforeprint", function () {
    for (const each of document.querySelectorAll("details:not([open])")) {
      each.dataset.folded = "";
      each.open = true;
    }
    if (window.Plotly) onPaper(paper);
  });
  addEventListener("afterprint", function () {
    for (const each of document.querySelectorAll("details[data-folded]")) each.open = false;
    if (window.Plotly) onPaper(0);
  });

  const script = document.createElement("script");
  script.textContent = await inflated(document.getElementById("plotly").textContent);
  document.head.append(script);
  for (const box of figures()) box.dispatchEvent(new Event("rail-draw"));
})();
