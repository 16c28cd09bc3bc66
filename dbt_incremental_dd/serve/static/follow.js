/**
 * Follows a collection: all of its rows as they are now, and from then on every change of them.
 *
 *     import { follow, literal } from "/follow.js";
 *
 *     const followed = follow("wikirecent.top10", ({ rows, inserted, deleted, timestamp }) => {
 *       // once for each time, when it is whole
 *     });
 *     follow("clickstream.visits_by_url", { where: `url = ${literal(url)}` }, ({ rows }) => ...);
 *     followed.close();
 *
 * Options, all of them optional:
 *
 *   where, select  a condition on the columns, and expressions of them, in SQL
 *   key            columns (a name or a list) of which each value has one row
 *   snapshot       false: changes alone, and no `rows`
 *   onState        called with { state, error, remedy }; state is one of
 *                    "connecting"    it has not begun yet
 *                    "live"          the rows are complete and kept up to date
 *                    "reconnecting"  the rows are as they were; it goes on by itself
 *                    "failed"        the server says why in `error`; it is asked again later
 *                    "closed"        by close()
 *   onTime         called with each time (ms since 1970) that the collection has come to, changes or none
 *   server         where it is (default: where this file came from)
 *
 * A callback gets { rows, inserted, deleted, timestamp, snapshot }. Rows are held as often as the collection holds them.
 * `inserted` and `deleted` lead from the rows before to these. `snapshot` is true where the rows came anew, as when it
 * begins, and when the server could not go on where a connection broke off. With a key there is also `violations`: the
 * keys that have more rows than one, which `rows` leaves out.
 *
 * Integers that a JavaScript number cannot hold exactly come as texts.
 */
export function follow(name, options, onChange) {
  return typeof options === "function" ? new Followed(name, {}, options) : new Followed(name, options, onChange);
}

/** A value as SQL writes it, for conditions. */
export function literal(value) {
  if (value === null || value === undefined) return "NULL";
  return typeof value === "string" ? `'${value.replaceAll("'", "''")}'` : String(value);
}

// All in ms: pauses after a connection broke, and after the server said no; and how soon it would have said so.
const SHORTEST = 250, LONGEST = 8000;
const ASKED_AGAIN = 1500, ASKED_AT_LAST = 30000;
const SETTLED = 400;

class Followed {
  #url;
  #held;
  #onChange;
  #onState;
  #onTime;
  #socket = null;
  #timer = 0;
  #waits = 0;
  #refusals = 0;
  #told = { state: "" };
  /** The latest time up to which everything has come; null where it has to begin anew. */
  #at = null;
  /** Messages of a time that goes on. */
  #parts = [];

  constructor(name, { where, select, key, snapshot = true, server, onState, onTime }, onChange) {
    this.#url = new URL(`collections/${encodeURIComponent(name)}/changes`, server ?? new URL(".", import.meta.url));
    this.#url.protocol = this.#url.protocol.replace("http", "ws");
    const query = this.#url.searchParams;
    query.set("progress", "true");
    if (where) query.set("where", where);
    if (select) query.set("select", select);
    const keys = key === undefined ? [] : [key].flat();
    for (const column of keys) query.append("key", column);
    this.#held = !snapshot ? new Nothing() : keys.length ? new ByKey(keys) : new Multiset();
    this.#onChange = onChange ?? (() => {});
    this.#onState = onState ?? (() => {});
    this.#onTime = onTime ?? (() => {});
    addEventListener("online", this.#now);
    document.addEventListener("visibilitychange", this.#now);
    this.#tell("connecting");
    this.#connect();
  }

  /** "connecting", "live", "reconnecting", "failed" or "closed". */
  get state() {
    return this.#told.state;
  }

  /** The rows as of the last time that was whole. */
  get rows() {
    return this.#held.rows;
  }

  /** Ends it. */
  close() {
    removeEventListener("online", this.#now);
    document.removeEventListener("visibilitychange", this.#now);
    this.#leave();
    this.#tell("closed");
  }

  #connect() {
    const url = new URL(this.#url);
    const goesOn = this.#at !== null;
    if (goesOn) url.searchParams.set("as_of", this.#at);
    if (goesOn || this.#held instanceof Nothing) url.searchParams.set("snapshot", "false");
    this.#parts = [];
    const socket = (this.#socket = new WebSocket(url));
    let hasCome = false;
    socket.onopen = () => {
      // Where it begins with nothing, nothing may come for long; a refusal comes at once.
      const beginsWithNothing = url.searchParams.get("snapshot") === "false";
      if (beginsWithNothing) this.#timer = setTimeout(() => this.#isLive(), SETTLED);
    };
    socket.onmessage = ({ data }) => {
      const message = parsed(data);
      if (message.error !== undefined) this.#refused(message, goesOn || hasCome);
      else this.#take(message);
      hasCome = true;
    };
    socket.onclose = () => this.#lost();
  }

  #leave() {
    clearTimeout(this.#timer);
    if (!this.#socket) return;
    this.#socket.onopen = this.#socket.onmessage = this.#socket.onclose = null;
    this.#socket.close();
    this.#socket = null;
  }

  #again(wait) {
    this.#leave();
    this.#timer = setTimeout(() => this.#connect(), wait);
  }

  /** A connection broke: soon, and then less and less often. */
  #lost() {
    if (this.#told.state === "live") this.#tell("reconnecting");
    const wait = Math.min(LONGEST, SHORTEST * 2 ** this.#waits++);
    this.#again(wait * (0.75 + Math.random() / 2));
  }

  /** The server says no. Where it was about going on, as when the history is gone, it begins anew. */
  #refused({ error, remedy }, wasGoingOn) {
    this.#at = null;
    if (wasGoingOn) return this.#again(0);
    this.#tell("failed", error, remedy);
    this.#again(Math.min(ASKED_AT_LAST, ASKED_AGAIN * 2 ** this.#refusals++));
  }

  /** Whoever looks at the page again does not wait. */
  #now = () => {
    const isWaiting = !this.#socket && this.#told.state !== "closed";
    if (!isWaiting || document.hidden) return;
    this.#waits = 0;
    this.#again(0);
  };

  #take(message) {
    if (message.progress) {
      this.#at = message.timestamp - 1;
      this.#isLive();
      this.#onTime(this.#at);
      return;
    }
    this.#parts.push(message);
    if (message.more) return;
    const parts = this.#parts;
    this.#parts = [];
    const snapshot = parts[0].snapshot === true;
    const change = snapshot ? this.#held.replace(parts) : this.#held.apply(parts);
    if (change === null) {
      // What was to go was not there: the rows cannot be trusted.
      this.#at = null;
      this.#again(0);
      return;
    }
    this.#at = message.timestamp;
    this.#isLive();
    const held = this.#held;
    const rows = { get rows() { return held.rows; } };
    this.#onChange(Object.assign(rows, change, { timestamp: message.timestamp, snapshot }));
    if (this.#socket) this.#onTime(this.#at);
  }

  #isLive() {
    clearTimeout(this.#timer);
    this.#waits = this.#refusals = 0;
    this.#tell("live");
  }

  #tell(state, error = "", remedy = "") {
    if (this.#told.state === state && this.#told.error === error) return;
    this.#told = { state, error, remedy };
    this.#onState(this.#told);
  }
}

/** Rows and how often each is held, by their JSON. */
class Multiset {
  #counts = new Map();

  get rows() {
    const found = [];
    for (const { row, count } of this.#counts.values()) for (let i = 0; i < count; i++) found.push(row);
    return found;
  }

  replace(parts) {
    const before = this.#counts;
    this.#counts = new Map();
    for (const { inserted } of parts) for (const row of inserted) this.#add(row);
    return { inserted: missing(this.#counts, before), deleted: missing(before, this.#counts) };
  }

  /** null where a row goes that is not there. */
  apply(parts) {
    const inserted = parts.flatMap((part) => part.inserted), deleted = parts.flatMap((part) => part.deleted);
    for (const row of inserted) this.#add(row);
    return deleted.every((row) => this.#remove(row)) ? { inserted, deleted } : null;
  }

  #add(row) {
    const json = JSON.stringify(row), held = this.#counts.get(json);
    if (held) held.count++;
    else this.#counts.set(json, { row, count: 1 });
  }

  #remove(row) {
    const json = JSON.stringify(row), held = this.#counts.get(json);
    if (!held) return false;
    if (--held.count === 0) this.#counts.delete(json);
    return true;
  }
}

/** Rows of `counts` that `others` do not have, as often as they do not. */
function missing(counts, others) {
  const found = [];
  for (const [json, { row, count }] of counts)
    for (let i = others.get(json)?.count ?? 0; i < count; i++) found.push(row);
  return found;
}

/** One row for each key. */
class ByKey {
  #rows = new Map();
  #violations = new Map();

  constructor(columns) {
    this.columns = columns.map((column) => column.toLowerCase());
  }

  get rows() {
    return [...this.#rows.values()];
  }

  replace(parts) {
    const before = this.#rows;
    this.#rows = new Map();
    this.#violations.clear();
    this.apply(parts);
    const changed = (one, other) => [...one].filter(([key, row]) => !isSame(row, other.get(key))).map(([, row]) => row);
    return this.#told(changed(this.#rows, before), changed(before, this.#rows));
  }

  apply(parts) {
    const inserted = [], deleted = [];
    const go = (key) => {
      if (this.#rows.has(key)) deleted.push(this.#rows.get(key));
      this.#rows.delete(key);
      this.#violations.delete(key);
    };
    for (const part of parts) {
      for (const row of part.deleted) go(this.#key(row));
      for (const row of part.upserted) {
        const key = this.#key(row), before = this.#rows.get(key);
        if (before) deleted.push(before);
        this.#rows.set(key, row);
        this.#violations.delete(key);
        inserted.push(row);
      }
      for (const row of part.key_violations ?? []) {
        go(this.#key(row));
        this.#violations.set(this.#key(row), row);
      }
    }
    return this.#told(inserted, deleted);
  }

  #told(inserted, deleted) {
    return { inserted, deleted, violations: [...this.#violations.values()] };
  }

  #key(row) {
    const names = Object.keys(row).filter((name) => this.columns.includes(name.toLowerCase()));
    return JSON.stringify(names.map((name) => row[name]));
  }
}

/** Changes alone. */
class Nothing {
  rows = [];

  replace(parts) {
    return this.apply(parts);
  }

  apply(parts) {
    return {
      inserted: parts.flatMap((part) => part.inserted ?? part.upserted),
      deleted: parts.flatMap((part) => part.deleted),
    };
  }
}

function isSame(one, other) {
  return other !== undefined && JSON.stringify(one) === JSON.stringify(other);
}

function parsed(text) {
  return /\d{16}/.test(text) ? JSON.parse(text, exact) : JSON.parse(text);
}

function exact(_, value, context) {
  const isLost = typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "");
  return isLost ? context.source : value;
}
