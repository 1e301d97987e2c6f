const half = 2 ** 31;
const full = 2 ** 32;

/** Serial after `old`: `max(old + 1, YYYYMMDD00)` in the arithmetic of RFC 1982. */
export function nextSerial(old: number, now: Date): number {
  const today = Number(`${now.toISOString().slice(0, 10).replaceAll('-', '')}00`);
  const next = (old + 1) % full;
  return isSerialAfter(today, next) ? today : next;
}

/** Whether serial `a` is newer than `b` (RFC 1982 §3.2). */
export function isSerialAfter(a: number, b: number): boolean {
  return a !== b && (a - b + full) % full < half;
}
