import { urlDecode } from '../transformations/decode';
import { argumentsMax, type Excess, type FilePart, type Pair, partsMax } from './types';

export interface MultipartContent {
  readonly args: readonly Pair[];
  readonly files: readonly FilePart[];
  readonly partHeaders: readonly Pair[];
  readonly flags: readonly string[];
  readonly error: string | null;
  readonly excess: readonly Excess[];
}

const partHeadersMax = 16;
const lineBreak = '\r\n';

/**
 * multipart/form-data (RFC 7578), strictly: whatever two parsers could read differently raises a flag named as ModSecurity's MULTIPART_ variables, and
 * any flag is a strict error. Contents of files are not arguments. A body cut off by the inspection limit gives what stands before the cut.
 */
export function parseMultipart(body: string, contentType: string, complete: boolean): MultipartContent {
  const reader = new Multipart(complete);
  const boundary = reader.boundary(contentType);
  if (boundary !== null) reader.read(body, boundary);
  return { args: reader.args, files: reader.files, partHeaders: reader.partHeaders, flags: [...reader.flags], error: reader.error, excess: [...reader.excess] };
}

class Multipart {
  readonly args: Pair[] = [];
  readonly files: FilePart[] = [];
  readonly partHeaders: Pair[] = [];
  readonly flags = new Set<string>();
  readonly excess = new Set<Excess>();
  error: string | null = null;
  constructor(private readonly complete: boolean) {}

  boundary(contentType: string): string | null {
    const given = [...contentType.matchAll(/;\s*boundary\s*=/gi)].length;
    const found = /;\s*boundary=(?:"([^"]*)"|([^\s;,"]+))\s*(?:;|$)/i.exec(contentType);
    const boundary = found?.[1] ?? found?.[2] ?? '';
    if (given > 1) this.flags.add('BOUNDARY_REPEATED');
    if (found?.[1] !== undefined) this.flags.add('BOUNDARY_QUOTED');
    if (/boundary\s+=|boundary=\s/i.test(contentType)) this.flags.add('BOUNDARY_WHITESPACE');
    if (boundary === '' || boundary.length > 70 || !/^[\w'()+,\-./:=? ]+$/.test(boundary)) {
      this.error = 'the boundary is missing or not allowed';
      return null;
    }
    return boundary;
  }

  read(body: string, boundary: string): void {
    const mark = `--${boundary}`;
    let at = body.startsWith(mark) ? 0 : this.first(body, mark);
    if (at < 0) return;
    for (let parts = 0; ; parts += 1) {
      at += mark.length;
      if (body.startsWith('--', at)) return this.epilogue(body.slice(at + 2));
      const start = this.lineEnd(body, at);
      if (start < 0) return;
      if (parts >= partsMax) { this.excess.add('parts'); return; }
      const next = this.nextMark(body, mark, start);
      this.part(body.slice(start, next.end));
      if (next.at < 0) return;
      at = next.at;
    }
  }

  /** What stands before the first boundary is the preamble. */
  private first(body: string, mark: string): number {
    const at = body.indexOf(`\n${mark}`);
    if (at >= 0 && /[^\r\n]/.test(body.slice(0, at))) this.flags.add('DATA_BEFORE');
    if (at < 0 && this.complete) { this.flags.add('UNMATCHED_BOUNDARY'); this.error = 'no part begins'; }
    return at < 0 ? -1 : at + 1;
  }

  /** The position behind the line break after a boundary. */
  private lineEnd(body: string, at: number): number {
    if (body.startsWith(lineBreak, at)) { this.flags.add('CRLF_LINE'); return at + 2; }
    if (body.startsWith('\n', at)) { this.flags.add('LF_LINE'); return at + 1; }
    if (at >= body.length && !this.complete) return -1;
    this.flags.add('INVALID_BOUNDARY');
    this.error = 'a boundary is followed by something else';
    return -1;
  }

  private nextMark(body: string, mark: string, from: number): { at: number; end: number } {
    const at = body.indexOf(`\n${mark}`, Math.max(0, from - 1));
    if (at >= 0) {
      const crlf = body.charAt(at - 1) === '\r';
      this.flags.add(crlf ? 'CRLF_LINE' : 'LF_LINE');
      return { at: at + 1, end: Math.max(from, crlf ? at - 1 : at) };
    }
    if (this.complete) { this.flags.add('UNMATCHED_BOUNDARY'); this.error = 'the last boundary is missing'; }
    return { at: -1, end: body.length };
  }

  private epilogue(rest: string): void {
    if (!/^[\r\n]*$/.test(rest)) this.flags.add('DATA_AFTER');
  }

  private part(text: string): void {
    const blank = /\r\n\r\n|\n\n/.exec(text.startsWith(lineBreak) ? `\r\n${text}` : text);
    if (!blank) {
      if (this.complete) { this.flags.add('HEADER_INCOMPLETE'); this.error = 'a part has no end of its header'; }
      return;
    }
    const head = text.slice(0, blank.index);
    if (blank[0] === '\n\n') this.flags.add('LF_LINE');
    const value = text.slice(blank.index + blank[0].length);
    const headers = this.headers(head);
    const dispositions = headers.filter(({ name }) => name === 'content-disposition');
    const disposition = this.disposition(dispositions[0]?.value ?? '');
    if (dispositions.length !== 1 || disposition === null) return;
    for (const { line } of headers) this.partHeaders.push({ name: disposition.name, value: line });
    if (disposition.fileNames.length > 0) for (const fileName of disposition.fileNames) this.files.push({ field: disposition.name, fileName, size: value.length });
    else if (this.args.length < argumentsMax) this.args.push({ name: disposition.name, value });
    else this.excess.add('arguments');
  }

  private headers(head: string): { name: string; value: string; line: string }[] {
    const lines: string[] = [];
    for (const line of head.split(/\r?\n/)) {
      if (/^[ \t]/.test(line) && lines.length > 0) {
        this.flags.add('HEADER_FOLDING');
        lines.push(`${lines.pop() ?? ''} ${line.trim()}`);
      } else if (line !== '') lines.push(line);
    }
    if (lines.length > partHeadersMax) this.excess.add('parts');
    const headers = lines.slice(0, partHeadersMax).map((line) => {
      const found = /^([!#$%&'*+\-.^`|~\w]+):([^]*)$/.exec(line);
      if (!found) this.flags.add('INVALID_HEADER');
      return { name: (found?.[1] ?? '').toLowerCase(), value: (found?.[2] ?? '').trim(), line };
    });
    if (new Set(headers.map(({ name }) => name)).size !== headers.length) this.flags.add('HEADER_REPEATED');
    return headers;
  }

  /** RFC 7578 §4.2: `form-data; name="…"; filename="…"`, each once. It forbids `filename*` (RFC 8187), which clients send nevertheless: rules see both names. */
  private disposition(value: string): { name: string; fileNames: readonly string[] } | null {
    const wrong = (flag: string, why: string) => { this.flags.add(flag); this.error = why; return null; };
    if (!/^form-data\s*(?:;|$)/i.test(value)) return wrong('INVALID_PART', 'a part is not form-data');
    const found = new Map<string, string>();
    const parameter = /\s*;\s*([\w*-]+)=(?:"((?:[^"\\]|\\[^])*)"|([^\s;"]+))/gy;
    parameter.lastIndex = 'form-data'.length;
    let end = parameter.lastIndex;
    for (let match = parameter.exec(value); match; match = parameter.exec(value)) {
      end = parameter.lastIndex;
      const name = (match[1] ?? '').toLowerCase();
      if (found.has(name)) return wrong('INVALID_PART', 'a parameter of a part stands twice');
      if (match[2] === undefined && name !== 'filename*' && !bareValue.test(match[3] ?? '')) this.flags.add('INVALID_QUOTING');
      found.set(name, (match[2] ?? match[3] ?? '').replace(/\\(["\\])/g, '$1'));
    }
    if (!/^\s*;?\s*$/.test(value.slice(end))) return wrong('INVALID_QUOTING', 'the parameters of a part cannot be read');
    const name = found.get('name');
    if (name === undefined) return wrong('INVALID_PART', 'a part has no name');
    const extended = found.get('filename*');
    const decoded = extended === undefined ? [] : extendedValue(extended);
    if (decoded === null) return wrong('INVALID_PART', 'the name of a file cannot be read');
    return { name, fileNames: [...new Set([...found.has('filename') ? [found.get('filename') ?? ''] : [], ...decoded])] };
  }
}

/** A token (RFC 9110 §5.6.2), but for the single quote that some readers take for one. */
const bareValue = /^[\w!#$%&*+\-.^`|~]+$/;

/** RFC 8187 §3.2: `utf-8''na%C3%AFve.txt`; null for what is not, or of another charset than that and latin1. */
function extendedValue(text: string): readonly string[] | null {
  const found = /^(utf-8|iso-8859-1)'[\w-]*'((?:[\w!#$&+\-.^`|~]|%[0-9a-fA-F]{2})*)$/i.exec(text);
  return found ? [urlDecode((found[2] ?? '').replaceAll('+', '%2b'))] : null;
}
