// Draws one figure of a notebook. `figure` holds id, data, layout, config and, where the figure
// follows its viewer's theme, `dark`: the template for dark pages.
(function (figure) {
  "use strict";
  const script = document.currentScript;
  const box = script ? script.parentElement : document.getElementById(figure.id);
  if (!box) return;
  const plot = document.createElement("div");
  let template = null;
  let paper = false;

  // JupyterLab and nbconvert, VS Code, and any other page.
  function onDarkPage() {
    const { jpThemeLight, vscodeThemeKind } = document.body.dataset;
    if (jpThemeLight) return jpThemeLight === "false";
    if (vscodeThemeKind) return !vscodeThemeKind.includes("light");
    return matchMedia("(prefers-color-scheme: dark)").matches;
  }

  // Does nothing without plotly.js, out of sight, and where the right template is drawn already.
  // On paper a figure is light.
  function draw(asked) {
    if (asked && asked.detail) paper = asked.detail.paper;
    const dark = figure.dark && !paper && onDarkPage();
    const wanted = dark ? figure.dark : figure.layout.template;
    if (!window.Plotly || !box.clientWidth || template === wanted) return;
    const first = template === null;
    template = wanted;
    if (!first) return void Plotly.relayout(plot, { template });
    box.replaceChildren(plot);
    plot.style.height = box.style.minHeight;
    Plotly.newPlot(plot, figure.data, { ...figure.layout, template }, figure.config);
  }

  function drawAll() {
    for (const each of document.querySelectorAll(".rail-figure")) {
      each.dispatchEvent(new Event("rail-draw"));
    }
  }

  if (!window.railFollowsTheme) {
    window.railFollowsTheme = true;
    // JupyterLab hides its page while it changes the theme, until the next frame.
    const follow = () => requestAnimationFrame(drawAll);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", follow);
    const themes = ["data-jp-theme-light", "data-vscode-theme-kind"];
    new MutationObserver(follow).observe(document.body, { attributeFilter: themes });
  }
  box.addEventListener("rail-draw", draw);
  new ResizeObserver(function () {
    draw();
    if (template !== null && box.clientWidth && !paper) Plotly.Plots.resize(plot);
  }).observe(box);
  // This figure may have brought what those above it wait for.
  drawAll();
  setTimeout(function () {
    draw();
    if (!window.Plotly) box.firstElementChild.textContent = figure.without_plotly;
  }, 3000);
})
