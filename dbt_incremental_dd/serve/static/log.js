// The latest changes of a collection, the newest first.
import { element, writeTime } from "./dom.js";
import { added, exactTime, number, removed, value } from "./format.js";

const KEPT = 60;
const ROWS = 3;

export class ChangeLog {
  #root;
  #onTime;

  /** `onTime` is called with the time that someone chooses. */
  constructor(root, onTime) {
    this.#root = root;
    this.#onTime = onTime;
    this.clear();
  }

  clear() {
    this.#root.replaceChildren(element("li", { classes: "none", text: "Changes appear here as they come." }));
  }

  add({ timestamp, inserted, deleted }) {
    this.#root.querySelector(".none")?.remove();
    const time = element("time"), button = element("button", { type: "button", classes: "plain", "aria-label": `Read as of ${exactTime(timestamp)}` }, time);
    writeTime(time, timestamp);
    button.addEventListener("click", () => this.#onTime(timestamp));
    const head = element(
      "div",
      { classes: "of" },
      button,
      element("span", { classes: "added", text: added(inserted.length) }),
      element("span", { classes: "removed", text: removed(deleted.length) }),
    );
    this.#root.prepend(element("li", {}, head, ...rows(deleted, "removed"), ...rows(inserted, "added")));
    while (this.#root.children.length > KEPT) this.#root.lastElementChild.remove();
  }
}

function rows(all, kind) {
  const shown = all.slice(0, ROWS).map((row) => {
    const text = Object.values(row).map(value).join("  ");
    return element("div", { classes: `row ${kind}`, text, title: JSON.stringify(row) });
  });
  const more = all.length - shown.length;
  return more > 0 ? [...shown, element("div", { classes: "quiet", text: `and ${number(more)} more` })] : shown;
}
