// Movement: `step` is called with parts from 0 to 1, the last one always; at once with 1 for who wants no movement, and
// where nobody looks.
const LASTS = 700;
const still = matchMedia("(prefers-reduced-motion: reduce)");

export function moved(step) {
  if (still.matches || document.hidden) {
    step(1);
    return { stop() {} };
  }
  const begun = performance.now();
  let frame = requestAnimationFrame(function next(now) {
    const part = Math.min(Math.max((now - begun) / LASTS, 0), 1);
    if (part < 1) frame = requestAnimationFrame(next);
    step(1 - (1 - part) ** 3);
  });
  return { stop: () => cancelAnimationFrame(frame) };
}
