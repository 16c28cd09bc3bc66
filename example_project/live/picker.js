// A list of names in which one is chosen, with a box to search it. It keeps its order while someone points at it.
import { element, write } from "./dom.js";
import { number } from "./format.js";

const SHOWN = 100;

export class Picker {
  #search;
  #list;
  #onChoice;
  #items = [];
  #order = [];
  #chosen = null;
  #lines = new Map();

  constructor(search, list, onChoice) {
    this.#search = search;
    this.#list = list;
    this.#onChoice = onChoice;
    search.addEventListener("input", () => this.#draw());
  }

  /** [{name, amount}], the first one first. */
  offer(items) {
    this.#items = items;
    this.#draw();
  }

  choose(name) {
    this.#chosen = name;
    this.#draw();
  }

  #draw() {
    const amounts = new Map(this.#items.map(({ name, amount }) => [name, amount]));
    const wanted = this.#search.value.trim().toLowerCase();
    const isBusy = this.#list.matches(":hover, :focus-within");
    const known = new Set(this.#order);
    const names = isBusy ? [...this.#order, ...[...amounts.keys()].filter((name) => !known.has(name))] : [...amounts.keys()];
    this.#order = names.filter((name) => amounts.has(name));
    const shown = this.#order.filter((name) => name.toLowerCase().includes(wanted)).slice(0, SHOWN);
    const lines = shown.map((name) => this.#line(name, amounts.get(name)));
    for (const name of [...this.#lines.keys()]) if (!amounts.has(name)) this.#lines.delete(name);
    const isSame = lines.length === this.#list.children.length && lines.every((line, i) => line === this.#list.children[i]);
    if (!isSame) this.#list.replaceChildren(...lines);
  }

  #line(name, amount) {
    let line = this.#lines.get(name);
    if (!line) {
      const button = element("button", { type: "button", title: name }, element("span", { text: name }), element("span"));
      button.addEventListener("click", () => this.#onChoice(name));
      line = element("li", {}, button);
      this.#lines.set(name, line);
    }
    const button = line.firstElementChild;
    button.setAttribute("aria-pressed", String(name === this.#chosen));
    write(button.lastElementChild, number(amount));
    return line;
  }
}
