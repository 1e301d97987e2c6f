import { createHash, sign, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';

const signAsync = promisify<string, Buffer, KeyObject, Buffer>(sign);

export interface DkimKey {
  readonly domain: string;
  readonly selector: string;
  readonly privateKey: KeyObject;
}

/** Signed whether present or not, so that none can be added; From twice, so that no second one can (RFC 6376 §5.4). */
const signedHeaders = [
  'From', 'From', 'To', 'Cc', 'Reply-To', 'Subject', 'Date', 'Message-ID', 'MIME-Version', 'Content-Type', 'Content-Transfer-Encoding', 'X-Holdfast-Id',
] as const;

/**
 * The message with a DKIM-Signature before it: rsa-sha256, relaxed/relaxed, `t=` in seconds (RFC 6376). The same message,
 * key and time give the same bytes. `mime` has CRLF lines. Signing runs on a thread of its own.
 */
export async function signDkim(mime: Buffer, { domain, selector, privateKey }: DkimKey, at: Date): Promise<Buffer> {
  const end = mime.indexOf('\r\n\r\n');
  if (end < 0) throw new Error('A message without a body cannot be signed.');
  const headers = headerLines(mime.toString('latin1', 0, end));
  const bodyHash = createHash('sha256').update(relaxedBody(mime.subarray(end + 4)), 'latin1').digest('base64');
  const names = signedHeaders.map((name) => name.toLowerCase()).join(':');
  const tags = `v=1; a=rsa-sha256; c=relaxed/relaxed; d=${domain}; s=${selector};\r\n t=${Math.floor(at.getTime() / 1000)};\r\n h=${foldAt(names)};\r\n bh=${bodyHash};\r\n b=`;
  const signed = [...pick(headers), relaxedHeader(`DKIM-Signature: ${tags}`)].join('\r\n');
  const signature = (await signAsync('sha256', Buffer.from(signed, 'latin1'), privateKey)).toString('base64');
  return Buffer.concat([Buffer.from(`DKIM-Signature: ${tags}${signature.replace(/.{72}(?=.)/g, '$&\r\n ')}\r\n`), mime]);
}

/** The instances a verifier takes: the last one first, for a name that is listed again the one before it (RFC 6376 §5.4.2). */
function pick(headers: readonly string[]): string[] {
  const rest = [...headers];
  return signedHeaders.flatMap((name) => {
    const at = rest.findLastIndex((line) => line.slice(0, name.length + 1).toLowerCase() === `${name.toLowerCase()}:`);
    return at < 0 ? [] : rest.splice(at, 1).map(relaxedHeader);
  });
}

function headerLines(block: string): string[] {
  return block.split(/\r\n(?![ \t])/);
}

/** RFC 6376 §3.4.2. */
function relaxedHeader(line: string): string {
  const colon = line.indexOf(':');
  return `${line.slice(0, colon).trimEnd().toLowerCase()}:${line.slice(colon + 1).replace(/\r\n/g, '').replace(/[ \t]+/g, ' ').trim()}`;
}

/** RFC 6376 §3.4.4: runs of white space count as one, at the end of lines not at all, nor do empty lines at the end. */
function relaxedBody(body: Buffer): string {
  const text = body.toString('latin1').replace(/[ \t]+/g, ' ').replaceAll(' \r\n', '\r\n');
  let end = text.endsWith(' ') ? text.length - 1 : text.length;
  while (end >= 2 && text.startsWith('\r\n', end - 2)) end -= 2;
  return end === 0 ? '' : `${text.slice(0, end)}\r\n`;
}

function foldAt(names: string): string {
  return names.replace(/^(.{1,70}:)/, '$1\r\n ');
}
