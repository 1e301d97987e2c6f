import { appendFileSync, mkdirSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';

const fileBytesMax = 10 * 1024 * 1024;
const shownLevels = new Set(['info', 'warn', 'error', 'fatal']);
/** Said by the format of the line, or of no use to somebody who watches. */
const hiddenKeys = new Set(['level', 'time', 'process', 'pid', 'hostname', 'msg', 'err', 'error']);

/** Every line of a process in `<dir>/<name>.log` (0600; beyond 10 MB the file becomes `.log.1`), what matters also on the terminal. */
export function logLines(dir: string, name: string, print: (text: string) => void): (line: string) => void {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const file = join(dir, `${name}.log`);
  let size = sizeOf(file);
  return (line) => {
    if (size > fileBytesMax) {
      renameSync(file, `${file}.1`);
      size = 0;
    }
    appendFileSync(file, `${line}\n`, { mode: 0o600 });
    size += Buffer.byteLength(line) + 1;
    const text = compact(line);
    if (text !== null) print(`${name.padEnd(18)} ${text}`);
  };
}

/** A JSON log line as a person reads it; null for what belongs in the file only: debug, and single requests that went well. */
export function compact(line: string): string | null {
  const entry = parse(line);
  if (!entry) return line.trim() === '' ? null : line;
  const level = textOf(entry['level']) || 'info';
  if (!shownLevels.has(level) || (level === 'info' && 'requestId' in entry)) return null;
  const rest = Object.entries(entry).filter(([key]) => !hiddenKeys.has(key)).map(([key, value]) => `${key}=${textOf(value)}`);
  const text = [level === 'info' ? '' : `${level}:`, textOf(entry['msg']), messageOf(entry['err'] ?? entry['error']), ...rest].filter(Boolean).join(' ');
  return text.length > 300 ? `${text.slice(0, 299)}…` : text;
}

function parse(line: string): Record<string, unknown> | null {
  if (!line.startsWith('{')) return null;
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? { ...value } : null;
  } catch {
    return null;
  }
}

function messageOf(error: unknown): string {
  if (typeof error !== 'object' || error === null || !('message' in error)) return '';
  return `(${textOf(error.message)})`;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}

function sizeOf(file: string): number {
  try {
    return statSync(file).size;
  } catch {
    return 0;
  }
}
