import { depthMax, type Excess } from './types';

export interface XmlContent { readonly text: string; readonly attributes: readonly string[]; readonly error: string | null; readonly excess: readonly Excess[] }

const token = /<!--[^]*?-->|<!\[CDATA\[([^]*?)\]\]>|<\?[^]*?\?>|<!DOCTYPE(?:[^[\]<>"']|"[^"]*"|'[^']*')*(?:\[[^\]]*\]\s*)?>|<\/([^\s<>/]+)\s*>|<([^\s<>/!?]+)((?:[^<>"']|"[^"<]*"|'[^'<]*')*)>|([^<]+)/gy;
const attribute = /\s*([^\s=<>"'/]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/gy;

/**
 * `XML:/*`: the text of the whole document; `XML://@*`: the attributes' values. Own entities of a document type are not expanded, nothing is fetched.
 * A body cut off by the inspection limit gives what stands before the cut.
 */
export function parseXml(source: string, complete: boolean): XmlContent {
  const attributes: string[] = [];
  const open: string[] = [];
  let text = '';
  let roots = 0;
  const done = (error: string | null, excess: Excess[] = []): XmlContent => ({ text, attributes, error: complete ? error : null, excess });
  token.lastIndex = 0;
  while (token.lastIndex < source.length) {
    const at = token.lastIndex;
    const found = token.exec(source);
    if (!found) { text += source.slice(at); return done('markup is not well-formed'); }
    const [, cdata, close, start, rest = '', plain] = found;
    if (cdata !== undefined) text += cdata;
    else if (plain !== undefined) text += entities(plain);
    else if (close !== undefined && open.pop() !== close) return done('an element is closed that was not open');
    else if (start !== undefined) {
      if (!readAttributes(rest, attributes)) return done('an attribute is not well-formed');
      if (open.length === 0) roots += 1;
      if (!rest.endsWith('/')) open.push(start);
      if (open.length > depthMax) return done(null, ['depth']);
    }
  }
  return done(open.length > 0 ? 'an element is not closed' : roots === 1 ? null : 'there is not one root element');
}

function readAttributes(text: string, into: string[]): boolean {
  const inner = (text.endsWith('/') ? text.slice(0, -1) : text).trimEnd();
  attribute.lastIndex = 0;
  let end = 0;
  while (end < inner.length) {
    const found = attribute.exec(inner);
    if (!found) return false;
    end = attribute.lastIndex;
    into.push(entities(found[2] ?? found[3] ?? ''));
  }
  return true;
}

const named: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };

function entities(text: string): string {
  if (!text.includes('&')) return text;
  return text.replace(/&(?:#x([0-9a-fA-F]{1,6})|#(\d{1,7})|(lt|gt|amp|quot|apos));/g, (all, hex: string | undefined, decimal: string | undefined, name: string | undefined) => {
    if (name !== undefined) return named[name] ?? all;
    const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
    return code > 0x10ffff ? all : Buffer.from(String.fromCodePoint(code), 'utf8').toString('latin1');
  });
}
