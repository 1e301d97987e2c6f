import { temporal } from '@temporalio/proto';

/**
 * Where a secret shows in recorded histories: as it is, in base64, or URL-encoded. Empty when none does.
 * The binary form holds payloads as they are, so their text is found without decoding each.
 */
export function leaksInHistories(histories: ReadonlyMap<string, Uint8Array>, canaries: readonly string[]): string[] {
  const found: string[] = [];
  for (const [name, bytes] of histories) {
    const text = Buffer.from(bytes).toString('latin1') + JSON.stringify(temporal.api.history.v1.History.decode(bytes));
    for (const canary of canaries) for (const form of formsOf(canary)) if (text.includes(form)) found.push(`${name}: ${form.slice(0, 4)}…`);
  }
  return found;
}

/** base64 of a text inside a longer one begins at one of three offsets; the cut ends depend on what stands around them. */
function formsOf(canary: string): Set<string> {
  const shifted = [0, 1, 2].map((offset) => Buffer.concat([Buffer.alloc(offset), Buffer.from(canary)]).toString('base64').slice(offset === 0 ? 0 : 4, -4));
  return new Set([canary, encodeURIComponent(canary), Buffer.from(canary).toString('latin1'), ...shifted.filter((form) => form.length >= 8)]);
}
