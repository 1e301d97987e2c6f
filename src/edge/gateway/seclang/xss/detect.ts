import { type HtmlContext, HtmlTokenizer } from './html';

const tags = new Set(['APPLET', 'BASE', 'COMMENT', 'EMBED', 'FRAME', 'FRAMESET', 'HANDLER', 'IFRAME', 'IMPORT', 'ISINDEX', 'LINK', 'LISTENER', 'META', 'NOSCRIPT', 'OBJECT', 'SCRIPT', 'STYLE', 'VMLFRAME', 'XML', 'XSS']);
type Danger = 'always' | 'url' | 'names' | 'none';
const attributes: ReadonlyMap<string, Danger> = new Map([
  ...['ACTION', 'BY', 'BACKGROUND', 'DYNSRC', 'FORMACTION', 'FOLDER', 'FROM', 'HANDLER', 'HREF', 'LOWSRC', 'POSTER', 'SRC', 'TO', 'VALUES', 'XLINK:HREF'].map((name): [string, Danger] => [name, 'url']),
  ...['DATAFORMATAS', 'DATASRC', 'FILTER', 'STYLE'].map((name): [string, Danger] => [name, 'always']),
  ['ATTRIBUTENAME', 'names'],
]);
const schemes = ['DATA', 'VIEW-SOURCE', 'VBSCRIPT', 'JAVA'];
const contexts: readonly HtmlContext[] = ['text', 'bare', "'", '"', '`'];

/** Whether a value would run script, or load something that can, once pasted into a page: between tags or in an attribute. */
export function detectXss(value: string): boolean {
  if (!/[<>=]/.test(value)) return false;
  return contexts.some((context) => isDangerous(value, context));
}

function isDangerous(value: string, context: HtmlContext): boolean {
  const tokenizer = new HtmlTokenizer(value, context);
  let attribute: Danger = 'none';
  for (let token = tokenizer.next(); token; token = tokenizer.next()) {
    if (token.kind !== 'value') attribute = 'none';
    switch (token.kind) {
      case 'doctype': return true;
      case 'tag': if (isDangerousTag(token.text)) return true; break;
      case 'name': attribute = dangerOf(token.text); break;
      case 'comment': if (isDangerousComment(token.text)) return true; break;
      case 'value':
        if (attribute === 'always' || (attribute === 'url' && isDangerousUrl(token.text)) || (attribute === 'names' && dangerOf(token.text) !== 'none')) return true;
        attribute = 'none';
        break;
      case 'text': case 'end': break;
    }
  }
  return false;
}

/** Old browsers pass over NUL in names. */
const plain = (name: string): string => name.replaceAll('\0', '').toUpperCase();

function isDangerousTag(name: string): boolean {
  return name.length >= 3 && (tags.has(plain(name)) || /^(?:svg|xsl)/i.test(name));
}

function dangerOf(name: string): Danger {
  if (name.length < 2) return 'none';
  if (name.length >= 5 && /^(?:on|xmlns|xlink)/i.test(name)) return 'always';
  return attributes.get(plain(name)) ?? 'none';
}

/** Conditional comments, `<?xml`, `<?import` and `<!entity` run in old browsers; so do back quotes. */
function isDangerousComment(text: string): boolean {
  return text.includes('`') || (text.length > 3 && /^(?:\[if|xml)/i.test(text)) || (text.length > 5 && /^(?:import|entity)/i.test(plain(text).slice(0, 6)));
}

function isDangerousUrl(text: string): boolean {
  const start = text.replace(/^[\x00-\x20\x7f-\xff]+/, '');
  const decoded = decode(start.slice(0, 256)).toUpperCase();
  return schemes.some((scheme) => decoded.startsWith(scheme));
}

/** Numeric entities decoded; NUL and line feeds, which browsers drop in a scheme, gone. */
function decode(text: string): string {
  return text.replace(/&#(?:[xX]([0-9a-fA-F]+)|(\d+));?/g, (_all, hex: string | undefined, decimal: string | undefined) => {
    const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
    return code > 0x1000ff ? '&' : String.fromCharCode(code & 0xffff);
  }).replace(/[\0\n]/g, '');
}
