import { temporal } from '@temporalio/proto';

/**
 * Where a secret shows in recorded histories: as it is, in base64, or URL-encoded. Empty when none does.
 * The binary form holds payloads as they are, so their text is found without decoding each.
 */
export function leaksInHistories(histories: ReadonlyMap<string, Uint8Array>, canaries: readonly string[]): string[] {
  const forms = canaries.flatMap((canary) => [...formsOf(canary)]);
  return [...histories].flatMap(([name, bytes]) => {
    const text = Buffer.from(bytes).toString('latin1') + JSON.stringify(temporal.api.history.v1.History.decode(bytes));
    return forms.filter((form) => text.includes(form)).map((form) => `${name}: ${form.slice(0, 4)}…`);
  });
}

/** base64 of a text inside a longer one begins at one of three offsets; the cut ends depend on what stands around them. */
export function formsOf(canary: string): Set<string> {
  const shifted = [0, 1, 2].map((offset) => Buffer.concat([Buffer.alloc(offset), Buffer.from(canary)]).toString('base64').slice(offset === 0 ? 0 : 4, -4));
  return new Set([canary, encodeURIComponent(canary), Buffer.from(canary).toString('latin1'), ...shifted.filter((form) => form.length >= 8)]);
}
