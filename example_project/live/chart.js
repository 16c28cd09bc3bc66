// A Vega-Lite chart whose data is given as it changes. Colours are those of live.css.
// Vega warns of charts that have no data yet.
const ERRORS = 1;

export async function chart(target, spec) {
  if (!globalThis.vegaEmbed) return without(target);
  const font = getComputedStyle(document.body).fontFamily;
  const config = { font, background: "transparent", view: { stroke: null }, aria: false, text: { baseline: "alphabetic" } };
  const whole = { ...spec, width: "container", autosize: { type: "fit", contains: "padding" }, padding: 0, config };
  // Beside what is there already, such as what is said instead of the chart.
  const place = document.createElement("div");
  target.append(place);
  const { view } = await vegaEmbed(place, whole, { renderer: "svg", actions: false, tooltip: false, logLevel: ERRORS });
  new ResizeObserver(() => view.width(target.clientWidth).runAsync()).observe(target);
  return view;
}

// A chart that never comes, and why.
function without(target) {
  const told = document.createElement("p");
  told.className = "none";
  told.textContent = "Charts need Vega where the server runs: pip install 'dbt-incremental-dd[live]'";
  target.append(told);
  return new Promise(() => {});
}
