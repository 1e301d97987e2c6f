import type { Mailbox } from '../ports';

/**
 * Header values as they go over the wire: ASCII, folded, without anything that could end a header. What ASCII cannot say
 * becomes encoded words (RFC 2047), as does what would read like one.
 */
const lineMax = 76;
/** Octets of one encoded word: `=?UTF-8?B?` + base64 + `?=` stays within 75 characters (RFC 2047 §2). */
const wordOctets = 45;
const plain = /^[\x21-\x7e]+(?: [\x21-\x7e]+)*$/;

/** Free text, like a subject; `nameLength` is that of the header's name, which stands on the first line. */
export function unstructured(text: string, nameLength: number): string {
  if (text === '') return '';
  return isPlain(text) ? fold(text.split(' '), nameLength + 2) : encodedWords(text);
}

/** One or more mailboxes, a fold after each comma that needs one. */
export function mailboxes(list: readonly Mailbox[], nameLength: number): string {
  return fold(list.map((box, i) => mailbox(box) + (i < list.length - 1 ? ',' : '')), nameLength + 2);
}

/** `address`, or `"Name" <address>`; a name is quoted or encoded, so nothing in it is syntax. */
export function mailbox({ name, address }: Mailbox): string {
  if (name === '') return address;
  return `${isPlain(name) ? `"${name.replace(/["\\]/g, '\\$&')}"` : encodedWords(name)} <${address}>`;
}

function isPlain(text: string): boolean {
  return plain.test(text) && !text.includes('=?');
}

/** Joined by single spaces, lines within 76 characters where the parts allow it. */
function fold(parts: readonly string[], firstAt: number): string {
  let column = firstAt;
  return parts.reduce((line, part, i) => {
    const first = part.indexOf('\r\n');
    const length = first < 0 ? part.length : first;
    const folds = i > 0 && column + 1 + length > lineMax;
    column = (folds ? 1 : column + (i > 0 ? 1 : 0)) + length;
    if (first >= 0) column = part.length - part.lastIndexOf('\r\n') - 2;
    return i === 0 ? part : `${line}${folds ? '\r\n ' : ' '}${part}`;
  }, '');
}

/** Each word holds whole characters; the fold between two of them is no part of the text. */
function encodedWords(text: string): string {
  const words: string[] = [];
  let word = '';
  for (const char of text) {
    if (Buffer.byteLength(word) + Buffer.byteLength(char) > wordOctets) {
      words.push(word);
      word = '';
    }
    word += char;
  }
  return [...words, word].map((part) => `=?UTF-8?B?${Buffer.from(part).toString('base64')}?=`).join('\r\n ');
}
