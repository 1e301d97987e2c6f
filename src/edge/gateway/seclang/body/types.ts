/** One name with its value, latin1 bytes. */
export interface Pair { readonly name: string; readonly value: string }

export interface FilePart { readonly field: string; readonly fileName: string; readonly size: number }

export type Processor = 'URLENCODED' | 'MULTIPART' | 'JSON' | 'XML' | '';

/** What went beyond the engine's limits (contract gateway.md §4.4): each counts as a critical match. */
export type Excess = 'arguments' | 'parts' | 'depth' | 'decoding';

/** A parsed request body. `error` is null when it could be read. */
export interface ParsedBody {
  readonly processor: Processor;
  readonly args: readonly Pair[];
  readonly files: readonly FilePart[];
  /** Header lines of multipart parts, by the part's name. */
  readonly partHeaders: readonly Pair[];
  /** Strict multipart checks that failed, by ModSecurity's names without `MULTIPART_`. */
  readonly multipartFlags: readonly string[];
  readonly xml: { readonly text: string; readonly attributes: readonly string[] } | null;
  readonly error: string | null;
  readonly excess: readonly Excess[];
}

export const emptyBody: ParsedBody = { processor: '', args: [], files: [], partHeaders: [], multipartFlags: [], xml: null, error: null, excess: [] };

export const argumentsMax = 1_000;
export const partsMax = 64;
export const depthMax = 64;
export const ratioMax = 100;
