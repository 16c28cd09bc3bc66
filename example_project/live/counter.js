// A number that runs to what it is now; it is said now and then, and not at each step.
import { write } from "./dom.js";
import { moved } from "./motion.js";
import { number } from "./format.js";

const SAID = 15000;

export class Counter {
  #target;
  #said;
  #words;
  #n = null;
  #motion = null;
  #last = 0;

  constructor(target, said, words) {
    this.#target = target;
    this.#said = said;
    this.#words = words;
  }

  show(n) {
    const from = this.#n ?? n;
    this.#motion?.stop();
    this.#motion = moved((part) => {
      this.#n = Math.round(from + (n - from) * part);
      write(this.#target, number(this.#n));
    });
    if (Date.now() - this.#last < SAID) return;
    this.#last = Date.now();
    write(this.#said, this.#words(n));
  }
}
