import { open, readFile, rename } from 'node:fs/promises';

/** The file holds `text` or what it held before, also after a power cut; `mode` as in chmod. */
export async function replaceFile(path: string, text: string, mode = 0o600): Promise<void> {
  const half = `${path}.new`;
  const file = await open(half, 'w', mode);
  try {
    await file.writeFile(text);
    await file.chmod(mode);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(half, path);
}

/** Null when there is no such file. */
export async function readFileIfAny(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

/** Whether an error says that a path does not exist. */
export function isMissing(error: unknown): boolean {
  return systemCode(error) === 'ENOENT';
}

/** The operating system's name of what went wrong (errno(3)); null for any other error. */
export function systemCode(error: unknown): string | null {
  return typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string' ? error.code : null;
}
