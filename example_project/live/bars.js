// Bars that move to where they belong: the longest first, with the name over each. What is no longer among them leaves.
import { chart } from "./chart.js";
import { element, write } from "./dom.js";
import { number } from "./format.js";
import { moved } from "./motion.js";

const LINE = 38;
const THICK = 8;

const SPEC = {
  data: { name: "bars", values: [] },
  encoding: { opacity: { field: "shown", type: "quantitative", scale: null, legend: null } },
  layer: [
    {
      name: "ground",
      mark: { type: "rect", cornerRadius: THICK / 2 },
      encoding: { x: { value: 0 }, x2: { value: "width" } },
    },
    {
      name: "bars",
      mark: { type: "rect", cornerRadius: THICK / 2 },
      encoding: { x: { field: "amount", type: "quantitative", axis: null, scale: { domainMin: 0, nice: false } }, x2: { datum: 0 } },
    },
    {
      name: "names",
      mark: { type: "text", align: "left", fontSize: 14, limit: { expr: "max(width - 90, 20)" } },
      encoding: { x: { value: 0 }, text: { field: "name" } },
    },
    {
      name: "amounts",
      mark: { type: "text", align: "right", fontSize: 14 },
      encoding: { x: { value: "width" }, text: { field: "text" } },
    },
  ],
};

export class Bars {
  #count;
  #view;
  #list;
  #none;
  #bars = new Map();
  #motion = null;

  /** `of`: what they are, for who does not see them. */
  constructor(target, { count, of }) {
    this.#count = count;
    target.style.setProperty("--height", `${count * LINE}px`);
    this.#list = element("ol", { classes: "unseen", "aria-label": of });
    this.#none = element("p", { classes: "none", text: "\u00a0" });
    target.append(this.#list, this.#none);
    const place = element("div", { "aria-hidden": "true" });
    target.append(place);
    this.#view = chart(place, spec(count));
  }

  /** [{name, amount}], the first one first. */
  show(items) {
    const wanted = items.slice(0, this.#count);
    this.#none.hidden = wanted.length > 0;
    write(this.#none, "Nothing yet.");
    this.#list.replaceChildren(...wanted.map(({ name, amount }) => element("li", { text: `${name}: ${number(amount)}` })));
    const moves = this.#moves(wanted);
    this.#motion?.stop();
    this.#motion = moved((part) => {
      for (const { bar, from, to } of moves)
        for (const field of ["place", "amount", "shown"]) bar[field] = from[field] + (to[field] - from[field]) * part;
      if (part === 1) for (const { bar } of moves) if (!bar.shown) this.#bars.delete(bar.name);
      this.#draw();
    });
  }

  #moves(wanted) {
    const isFirst = this.#bars.size === 0;
    const places = new Map(wanted.map(({ name, amount }, place) => [name, { place, amount, shown: 1 }]));
    for (const [name, to] of places)
      if (!this.#bars.has(name))
        this.#bars.set(name, { name, ...to, amount: isFirst ? 0 : to.amount, place: isFirst ? to.place : this.#count, shown: 0 });
    return [...this.#bars.values()].map((bar) => {
      const to = places.get(bar.name) ?? { place: this.#count, amount: bar.amount, shown: 0 };
      return { bar, from: { ...bar }, to };
    });
  }

  async #draw() {
    const rows = [...this.#bars.values()].map(({ name, place, amount, shown }) => ({
      name,
      amount,
      shown,
      text: number(Math.round(amount)),
      base: place * LINE + 16,
      top: place * LINE + 22,
      bottom: place * LINE + 22 + THICK,
    }));
    const view = await this.#view;
    view.data("bars", rows).runAsync();
  }
}

function spec(count) {
  const inPixels = (field) => ({ field, type: "quantitative", scale: null, axis: null });
  const layer = SPEC.layer.map((one) => {
    const across = one.mark.type === "text" ? { y: inPixels("base") } : { y: inPixels("top"), y2: { field: "bottom" } };
    return { ...one, encoding: { ...one.encoding, ...across } };
  });
  return { ...SPEC, layer, height: count * LINE };
}
