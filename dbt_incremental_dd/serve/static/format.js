// Numbers, times, durations and sizes as people read them. Times are of the viewer's zone; UTC is told beside.
const DAY = 86400000;

// What the reader may not know is null.
export const number = (n) => n?.toLocaleString("en") ?? "?";
export const added = (n) => `+${number(n)}`;
export const removed = (n) => `\u2212${number(n)}`;

const two = (n) => String(n).padStart(2, "0");
const clock = (moment) => `${two(moment.getHours())}:${two(moment.getMinutes())}:${two(moment.getSeconds())}`;
const date = (moment) => `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())}`;

// The clock alone where it is of today.
export function time(ms) {
  const moment = new Date(ms);
  const isToday = date(moment) === date(new Date());
  return isToday ? clock(moment) : `${date(moment)} ${clock(moment)}`;
}

export const exactTime = (ms) => `${date(new Date(ms))} ${clock(new Date(ms))}.${String(ms % 1000).padStart(3, "0")}`;
export const utc = (ms) => `${new Date(ms).toISOString().replace("T", " ").replace("Z", "")} UTC`;

const UNITS = [
  ["y", 365 * DAY],
  ["d", DAY],
  ["h", 3600000],
  ["min", 60000],
  ["s", 1000],
];

export function duration(ms) {
  if (Math.abs(ms) < 1000) return `${Math.round(ms)} ms`;
  const [unit, size] = UNITS.find(([, length]) => Math.abs(ms) >= length);
  return `${number(Math.floor(ms / size))} ${unit}`;
}

// How long ago; what a clock that is a little ahead says has just been.
export const ago = (ms, now = Date.now()) => (now - ms < 1000 ? "now" : `${duration(now - ms)} ago`);

export function bytes(n) {
  if (n === null) return "?";
  const power = n < 1 ? 0 : Math.min(Math.floor(Math.log10(n) / 3), 4);
  const value = n / 1000 ** power;
  return `${power && value < 10 ? value.toFixed(1) : Math.round(value)} ${["B", "kB", "MB", "GB", "TB"][power]}`;
}

// A value of a row.
export function value(one) {
  if (one === null || one === undefined) return "NULL";
  if (typeof one === "object") return JSON.stringify(one);
  return typeof one === "number" && Number.isInteger(one) ? number(one) : String(one);
}
