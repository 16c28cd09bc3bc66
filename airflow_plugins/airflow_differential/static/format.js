// Times (UTC), durations and sizes as people read them.
export const number = (n) => n.toLocaleString("en");
export const share = (part) => `${Math.round(part * 100)} %`;
export const time = (ms) => new Date(ms).toISOString().slice(0, 19).replace("T", " ");

const UNITS = [
  ["y", 365 * 86400000],
  ["d", 86400000],
  ["h", 3600000],
  ["min", 60000],
  ["s", 1000],
];

export function duration(ms) {
  if (Math.abs(ms) < 1000) return `${Math.round(ms)} ms`;
  const [unit, size] = UNITS.find(([, length]) => Math.abs(ms) >= length);
  const value = ms / size;
  return `${Math.abs(value) < 10 ? value.toFixed(1) : number(Math.round(value))} ${unit}`;
}

export function bytes(n) {
  const power = n < 1 ? 0 : Math.min(Math.floor(Math.log10(n) / 3), 4);
  const value = n / 1000 ** power;
  return `${power && value < 10 ? value.toFixed(1) : Math.round(value)} ${["B", "kB", "MB", "GB", "TB"][power]}`;
}
