/** A piece of a line: `quoted` text keeps its escapes, so that what reads it can tell them apart. */
export type Token = { text: string; quoted: boolean };

/** One entry of a zone file: a directive or a record. `owner` null: the one before. */
export type ZoneFileLine = { line: number; owner: string | null; tokens: Token[]; comment: string; fault: string | null };

/**
 * Entries of a zone file (RFC 1035 §5.1): comments apart, parentheses resolved, quoted strings whole. Never fails: what
 * cannot be read comes out as an entry with its fault.
 */
export function readLines(text: string): ZoneFileLine[] {
  const entries: ZoneFileLine[] = [];
  let open: ZoneFileLine | null = null;
  let depth = 0;
  for (const [index, raw] of text.split(/\r\n|\n|\r/).entries()) {
    const entry: ZoneFileLine = open ?? { line: index + 1, owner: null, tokens: [], comment: '', fault: null };
    const scanned = scan(raw);
    const named = open === null && !/^[ \t]/.test(raw) && scanned.tokens[0]?.quoted === false;
    entry.owner = named ? (scanned.tokens.shift()?.text ?? null) : entry.owner;
    entry.tokens.push(...scanned.tokens);
    entry.comment ||= scanned.comment;
    entry.fault ??= scanned.fault;
    depth = Math.max(0, depth + scanned.depth);
    open = depth > 0 ? entry : null;
    if (!open && (entry.owner !== null || entry.tokens.length > 0 || entry.fault)) entries.push(entry);
  }
  if (open) entries.push({ ...open, fault: 'a parenthesis is not closed' });
  return entries;
}

const token = /"((?:[^"\\]|\\[^])*)"|([()])|(;.*)|((?:[^\s"();\\]|\\[^])+)|(["\\])/gs;

function scan(raw: string): { tokens: Token[]; comment: string; depth: number; fault: string | null } {
  const found: { tokens: Token[]; comment: string; depth: number; fault: string | null } = { tokens: [], comment: '', depth: 0, fault: null };
  for (const [, quoted, parenthesis, comment, plain, broken] of raw.matchAll(token)) {
    if (quoted !== undefined) found.tokens.push({ text: quoted, quoted: true });
    else if (plain !== undefined) found.tokens.push({ text: plain, quoted: false });
    else if (parenthesis !== undefined) found.depth += parenthesis === '(' ? 1 : -1;
    else if (broken !== undefined) found.fault = 'a quote is not closed';
    else found.comment = comment ?? '';
  }
  return found;
}
