import fc from 'fast-check';
import { compilePattern, PatternError, requireGuardedPatterns } from '../../src/gateway/rules/pattern';

const file = (source: string, captures = false) => compilePattern(source, { source: 'file', captures });
const user = (source: string, ignoreCase = false) => compilePattern(source, { source: 'user', ignoreCase });

test('the boot check passes', () => expect(() => requireGuardedPatterns()).not.toThrow());

test.each([
  ['case-insensitivity becomes classes', '(?i)select\\s+[a-f]', 'SELECT\tD', 'SELECT G'],
  ['flags may be lifted in the middle', 'a(?i)b(?-i)c', 'aBc', 'aBC'],
  ['scoped flags end with their group', '(?i:ab)c', 'ABc', 'ABC'],
  ['POSIX classes', '^[[:alpha:][:digit:]_]+$', 'aZ9_', 'a-b'],
  ['negated POSIX classes', '^[[:^digit:]]+$', 'abc', 'a1'],
  ['\\x{hh} and \\xh', '^\\x{41}\\x42$', 'AB', 'ab'],
  ['possessive marks are dropped', '^a++b$', 'aaab', 'aaa'],
  ['long repeats are split', '^x{1,40}$', 'x'.repeat(40), 'x'.repeat(41)],
  ['nested repeats are split', '^(?:a{2}b){20}$', 'aab'.repeat(20), 'aab'.repeat(19)],
  ['open repeats are split', '^x{20,}$', 'x'.repeat(25), 'x'.repeat(19)],
  ['quoted text', '^\\Qa.b\\E$', 'a.b', 'axb'],
  ['a bracket first in a class', '^[]a]+$', ']a', 'b'],
  ['octal and control escapes', '^\\101\\cA$'.replace('\\101', '\\x41'), 'A\u0001', 'AA'],
  ['the dot is any character in a rule file', '^a.b$', 'a\nb', 'ab'],
  ['lines have ends in a rule file', '^b$', 'a\nb', 'ab'],
  ['white space is ASCII', '^\\s$', ' ', '\u00a0'],
  ['extended mode skips space and comments', '(?x)a b # c\n d', 'abd', 'a b d'],
  ['back-references', '^(a|b)\\1$', 'bb', 'ab'],
  ['named groups', '^(?P<q>[ab])\\k<q>$', 'aa', 'ba'],
])('%s', (_what, source, yes, no) => {
  expect(file(source).test(yes)).toBe(true);
  expect(file(source).test(no)).toBe(false);
});

test.each([
  '(?=a)b', '(?!a)b', '(?<=a)b', '(a)\\1', '(?<n>a)\\k<n>', 'a'.repeat(513), '^(a{1,20}){1,20}$', '(a{0,100}){0,100}b', '((a{1,5}){1,5}){1,5}$', '(?:.{0,64}x){8}', '(?:a{16}){16}{16}', '(?:a?){300}a{300}', '.*a'.repeat(21), '(.*,){30}P',
])('a customer’s %s is refused', (source) => {
  expect(() => user(source)).toThrow(PatternError);
  expect(() => user(source, true)).toThrow(PatternError);
});

test.each(['^/api/v[0-9]+/', '\\.(?:php|asp)$', '^(?:\\d{1,3}\\.){3}\\d{1,3}$', '[a-z]{1,200}', '(?:ab){20}', '.*a.*b.*c', '^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$'])('a customer’s %s is taken', (source) => {
  expect([user(source).guard, user(source, true).guard]).toEqual(['guarded', 'guarded']);
});

test.each(['(', ')', '[', '*a', 'a{2,1}', '[z-a]', '(?<n', '\\', '(?y)a', '[[:nope:]]', 'x{1001}'])('%s cannot be read', (source) => {
  expect(() => user(source)).toThrow(PatternError);
});

test('a pattern says what guards it', () => {
  expect([file('a{1,40}').guard, file('(a{2}){1,30}', true).guard, file('a(?!b)').guard]).toEqual(['guarded', 're2', 'prefix']);
});

test('groups keep their numbers when they are asked for', () => {
  expect(file('(a+)(?:x)(b)?', true).exec('aax')).toEqual(['aax', 'aa', undefined]);
  expect(file('((a{2}){1,30})c', true).exec('aaaac')?.[1]).toBe('aaaa');
});

test('no hostile value holds the event loop', () => {
  for (const source of ['^(a+)+$', '^(a|a)*$', '^([aA]+)+$', '(a*)*b', '(.*a){12}$', '^(a{1,4}){1,4}$', '(x+x+)+y', '.*a'.repeat(20)]) {
    const pattern = user(source, true);
    const began = process.cpuUsage();
    pattern.test(`${'a'.repeat(4_000)}!`);
    pattern.test(`${'x'.repeat(4_000)}!`);
    const { user: micros } = process.cpuUsage(began);
    expect({ source, slow: micros > 2_000_000 }).toEqual({ source, slow: false });
  }
});

test('a value that matches holds one of the literals', () => {
  const sources = ['(?i)union.{1,20}select', 'foo|ba[rz]', '(?:ab?c){2}d', 'x(?:y|zz)?w', '[ab]c[de]', 'https?://', '(?:on(?:load|error))\\s*='];
  const values = fc.array(fc.constantFrom('union', 'SELECT', 'foo', 'bar', 'baz', 'abc', 'ac', 'd', 'x', 'y', 'zz', 'w', 'a', 'b', 'c', 'e', 'http', 's', '://', 'onload', 'ONERROR', '=', ' '), { maxLength: 8 });
  fc.assert(fc.property(fc.constantFrom(...sources), values, (source, words) => {
    const pattern = compilePattern(source, { source: 'file', ignoreCase: true });
    const value = words.join('');
    const lower = value.toLowerCase();
    if (pattern.test(value)) expect(pattern.literals?.some((literal) => lower.includes(literal)) ?? true).toBe(true);
    expect(pattern.test(value)).toBe(new RegExp(source.replace('(?i)', ''), 'ims').test(value));
  }));
});
