const bytesMax = 16 * 1024;
const keysMax = 50;
const keyMax = 64;
const depthMax = 5;
const forbidden = ['__proto__', 'constructor', 'prototype'];

/** Why a message's metadata is refused; null when it is taken, and then returned unchanged (contract mail.md §4.1). */
export function metadataFault(value: Readonly<Record<string, unknown>>): string | null {
  const fault = memberFault(value, 1);
  if (fault) return fault;
  return Buffer.byteLength(JSON.stringify(value)) > bytesMax ? 'must be at most 16 KiB as JSON' : null;
}

/** The depth is checked on the way down: a body may be nested deeper than the stack. */
function memberFault(value: unknown, depth: number): string | null {
  if (typeof value === 'number' && !Number.isFinite(value)) return 'must not hold numbers beyond 1.8e308';
  if (typeof value !== 'object' || value === null) return null;
  if (depth > depthMax) return `must not be nested deeper than ${depthMax}`;
  if (!Array.isArray(value)) {
    const keys = Object.keys(value);
    if (keys.length > keysMax) return `must hold at most ${keysMax} keys`;
    if (keys.some((key) => key.length < 1 || [...key].length > keyMax)) return `keys must be 1 to ${keyMax} characters`;
    const bad = keys.find((key) => forbidden.includes(key));
    if (bad !== undefined) return `must not hold the key "${bad}"`;
  }
  for (const member of Object.values(value)) {
    const fault = memberFault(member, depth + 1);
    if (fault) return fault;
  }
  return null;
}
