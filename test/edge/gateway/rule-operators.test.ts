import { compileOperator } from '../../../src/edge/gateway/seclang/operators';
import { Unsupported } from '../../../src/edge/gateway/seclang/directives';
import { OperatorTable } from '../../../src/edge/gateway/seclang/operator-table';
import { RepeatedTexts, Texts } from '../../../src/edge/gateway/seclang/text';
import { detectSqli } from '../../../src/edge/gateway/seclang/sqli/detect';
import { detectXss } from '../../../src/edge/gateway/seclang/xss/detect';

const phrases = (name: string) => (name === 'words.data' ? ['alpha', 'Beta Gamma'] : ['10.0.0.0/8']);
const texts = () => new Texts(new RepeatedTexts());

const table: readonly [string, string, readonly string[], readonly string[]][] = [
  ['rx', '(?i)^ab+c$', ['ABBC', 'x\nabc'], ['ac']],
  ['pm', 'foo BAR |41 42|', ['xFOOx', 'a bar', 'zAB'], ['fo o', 'A B']],
  ['pmfromfile', 'words.data', ['ALPHA', 'a beta gamma b'], ['beta', 'gamma']],
  ['lt', '5', ['4', 'x', ''], ['5', '6']],
  ['le', '5', ['5'], ['6']],
  ['eq', '5', ['5', '5abc'], ['4', '']],
  ['ge', '5', ['5', '6'], ['4', 'x']],
  ['gt', '5', ['6'], ['5']],
  ['streq', 'Abc', ['Abc'], ['abc', 'Abcd']],
  ['within', 'GET POST HEAD', ['GET', 'POST', 'T P'], ['PUT']],
  ['contains', 'b c', ['ab cd'], ['B C']],
  ['strmatch', 'b', ['abc'], ['ac']],
  ['beginswith', '/ad', ['/admin'], ['x/admin', '/AD']],
  ['endswith', '.php', ['a.php'], ['a.php5']],
  ['ipmatch', '192.0.2.0/24,2001:db8::/32 198.51.100.7', ['192.0.2.9', '2001:db8::1', '198.51.100.7', '::ffff:192.0.2.1'], ['192.0.3.1', 'x', '']],
  ['ipmatchfromfile', 'nets', ['10.1.2.3'], ['11.0.0.1']],
  ['validatebyterange', '32-126,10,13', ['a\tb', '\x80'], ['a b\r\n']],
  ['validateutf8encoding', '', ['\xc3', '\xc0\xaf', '\xed\xa0\x80', '\xf5\x80\x80\x80'], ['abc', '\xc3\xa9', '\xf0\x9f\x98\x80']],
  ['validateurlencoding', '', ['%', '%4', 'a%zz'], ['%41', 'a']],
  ['unconditionalmatch', '', ['', 'x'], []],
  ['nomatch', '', [], ['', 'x']],
  ['detectsqli', '', ["1' OR '1'='1", '1 UNION SELECT 1'], ['hello', "O'Brien"]],
  ['detectxss', '', ['<script>', '<img src=x onerror=a>'], ['a < b', 'hello']],
];

test.each(table)('@%s %s', (name, argument, yes, no) => {
  const operator = compileOperator(name, argument, phrases, false);
  const shared = new OperatorTable();
  shared.add({ name: 'rx', argument: 'unrelated', negated: false }, phrases, 'f', false);
  const index = shared.add({ name, argument, negated: false }, phrases, 'f', false);
  shared.close();
  for (const value of yes) expect([value, operator.test(value), shared.matches(index, texts().of(value))]).toEqual([value, true, true]);
  for (const value of no) expect([value, operator.test(value), shared.matches(index, texts().of(value))]).toEqual([value, false, false]);
});

test.each(['geolookup', 'rbl', 'inspectfile', 'verifycc', 'nonsense'])('@%s is not run', (name) => {
  expect(() => compileOperator(name, '', phrases, false)).toThrow(Unsupported);
});

test('captures are the groups of an expression, the phrase, the fingerprint', () => {
  expect(compileOperator('rx', '(a)(x)?(b)', phrases, true).captures('ab')).toEqual(['ab', 'a', undefined, 'b']);
  expect(compileOperator('pm', 'foo bar', phrases, true).captures('a BAR')).toEqual(['bar']);
  expect(compileOperator('detectsqli', '', phrases, true).captures("1' or 1=1--")).toEqual(['s&1c']);
});

test('\\A and \\z are the ends of the value, ^ and $ those of its lines', () => {
  const test_ = (pattern: string) => compileOperator('rx', pattern, phrases, false).test('a\nb\nc');
  expect(['^b$', '\\Ab\\z', '\\Aa', 'c\\z', 'a\\z'].map(test_)).toEqual([true, false, true, true, false]);
});

test('a long value is looked at in overlapping windows', () => {
  const shared = new OperatorTable();
  const index = shared.add({ name: 'rx', argument: 'needle(\\d{3})here', negated: false }, phrases, 'f', true);
  shared.close();
  for (const at of [0, 7_670, 8_185, 8_200, 15_350, 30_000]) {
    const text = texts().of(`${'x'.repeat(at)}needle123here${'y'.repeat(20_000)}`);
    expect([at, shared.matches(index, text), shared.captures(index, text)]).toEqual([at, true, ['needle123here', '123']]);
  }
  expect(shared.matches(index, texts().of('x'.repeat(40_000)))).toBe(false);
});

test.each([
  ["1' OR 1=1--", 's&1c'], ["admin'--", 'sc'], ['1 UNION SELECT 1,2', '1UE1'], ['1; DROP TABLE x', '1;Tnn'], ["' or ''='", 's&sos'], ['1 OR 1=1', '1&1'],
  ["x' and sleep(5)#", 's&f(1'], ['1/*!50000union*/', 'X'], ['-1 or 1 in (select 1)', '1&1o('], ["'; exec xp_cmdshell('dir')", 's;Tn('], ['" or "a"="a', 's&sos'], ['1 and @@version like 5', '1&v'],
])('SQL %s has the fingerprint %s', (value, fingerprint) => {
  const found = detectSqli(value);
  expect(found).not.toBeNull();
  if (fingerprint.length < 5) expect(found).toBe(fingerprint);
});

test.each(['', 'hello world', "rock'n'roll", "O'Brien and sons", 'union membership', 'select a seat', '1 or 2 bedrooms', '2024-11-21', 'a@b.co', 'price < 5', 'x = y', '100%', '-- a dash', 'C#', '#1', 'node.js', '3.14', "it's 5 o'clock"])(
  '%j is not SQL', (value) => expect(detectSqli(value)).toBeNull());

test.each(['<script>alert(1)', '<SCRIPT/x>', '<img src=x onerror=a>', '"onclick=alert(1) x="', "' onfocus=a '", '<a href=javascript:a>', '<a href="&#106;avascript:a">', '<svg onload=a>', '<style>', '<!DOCTYPE x>',
  '<!--[if IE]>', '<x style=a>', '<iframe src=x>', '<%`%>', '<a xlink:href=x onx=1>', '<base href=/>', '<meta http-equiv=x>', '<\0script>', 'x\' onerror\0=a '])('%j is script', (value) => expect(detectXss(value)).toBe(true));

test.each(['', 'hello', 'a < b and c > d', '<b>bold</b>', '<p class="x">text</p>', 'x=1&y=2', 'I <3 NY', '->', '<a href="https://example.com">x</a>', '<!-- note -->', 'if (a<b) c=d', '<br/>'])(
  '%j is not script', (value) => expect(detectXss(value)).toBe(false));
