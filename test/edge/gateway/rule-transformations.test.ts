import fc from 'fast-check';
import { transformationIndex, transformations } from '../../../src/edge/gateway/seclang/transformations';

const apply = (name: string, value: string) => {
  const index = transformationIndex(name);
  if (index === undefined) throw new Error(name);
  return transformations[index]?.(value);
};

test.each([
  ['urlDecode', 'a+b%20c%zz%41', 'a b c%zzA'],
  ['urlDecodeUni', '%u0041%uff1c+%41%u00', 'A< A%u00'],
  ['lowercase', 'ÀBc', 'Àbc'],
  ['uppercase', 'aBc', 'ABC'],
  ['jsDecode', '\\u0041\\x42\\103\\n\\q', 'ABC\nq'],
  ['escapeSeqDecode', '\\x41\\102\\t\\\\', 'AB\t\\'],
  ['cssDecode', 'ja\\vascript\\000041 \\41x', 'javascriptAAx'],
  ['cssDecode', '\\41 B\\g\\\nC', 'ABgC'],
  ['htmlEntityDecode', '&lt;&#x41;&#66&quot;&nbsp;&amp;&apos;', '<AB"\xa0&&apos;'],
  ['utf8toUnicode', 'a\xc3\xa9\xe2\x82\xac', 'a%u00e9%u20ac'],
  ['utf8toUnicode', '..\xc0\xaf', '..%u002f'],
  ['base64Decode', 'aGVsbG8=', 'hello'],
  ['base64Decode', 'aGVs!bG8=', 'hel'],
  ['base64DecodeExt', 'aG Vs.bG8=', 'hello'],
  ['base64Encode', 'hello', 'aGVsbG8='],
  ['hexDecode', '414243', 'ABC'],
  ['hexEncode', 'AB\xff', '4142ff'],
  ['sqlHexDecode', "0x414243 or 0xzz", 'ABC or 0xzz'],
  ['removeNulls', 'a\0b', 'ab'],
  ['replaceNulls', 'a\0b', 'a b'],
  ['compressWhitespace', 'a \t\n b\xa0c', 'a b c'],
  ['removeWhitespace', ' a \t b ', 'ab'],
  ['replaceComments', 'a/* x */b/* open', 'a b '],
  ['removeComments', 'a/* x */b<!-- y -->c--d', 'abc'],
  ['removeComments', 'a#b', 'a'],
  ['removeCommentsChar', 'a/*b*/--c#', 'abc'],
  ['cmdLine', 'C^a"T  ,;/etc (x)', 'cat/etc(x)'],
  ['normalizePath', '/a/./b//../c/', '/a/c/'],
  ['normalisePath', 'a/../../b', '../b'],
  ['normalizePathWin', '\\a\\..\\b', '/b'],
  ['length', 'abcd', '4'],
  ['trim', ' \ta b\n ', 'a b'],
  ['trimLeft', '  a ', 'a '],
  ['trimRight', ' a  ', ' a'],
  ['urlEncode', 'a b&', 'a+b%26'],
  ['md5', '', '\xd4\x1d\x8c\xd9\x8f\x00\xb2\x04\xe9\x80\x09\x98\xec\xf8\x42\x7e'],
])('%s of %j', (name, value, expected) => expect(apply(name, value)).toBe(expected));

test('sha1 gives bytes', () => expect(apply('hexEncode', apply('sha1', 'abc') ?? '')).toBe('a9993e364706816aba3e25717850c26c9cd0d89d'));
test('names are known in any case', () => expect(transformationIndex('URLDECODEUNI')).toBe(transformationIndex('urlDecodeUni')));
test('others are not known', () => expect(transformationIndex('parityEven7bit')).toBeUndefined());

test('every transformation answers every byte string with a byte string, soon', () => {
  const hostile = ['%', '\\', '&#', '/*', '<!--', '../', './', '//', ' ', '\0', '+', "'", '"', '^', 'A', '\xc3', '\xa9', '%u', '0x', '=', '-', '#'];
  fc.assert(fc.property(fc.array(fc.constantFrom(...hostile), { maxLength: 400 }), (parts) => {
    const value = parts.join('');
    for (const transform of transformations) expect(/^[\x00-\xff]*$/.test(transform(value))).toBe(true);
  }), { numRuns: 60 });
});

test('a large hostile value is transformed in linear time', () => {
  for (const part of ['/*', '../', '&#x', '\\', ' ', '<!--', '%u00', '//', '""', '\0']) {
    const value = part.repeat(60_000);
    const before = process.cpuUsage();
    for (const transform of transformations) transform(value);
    expect({ part, slow: process.cpuUsage(before).user > 8_000_000 }).toEqual({ part, slow: false });
  }
});
