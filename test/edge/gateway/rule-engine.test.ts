import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import type { ManagedVerdict, RequestFacts } from '../../../src/gateway/ports';
import type { Policy } from '../../../src/gateway/schemas';
import { startRuleEngine } from '../../../src/edge/gateway/rule-engine';
import { createRuleEngine, inspectWithin } from '../../../src/edge/gateway/seclang/engine';
import { loadRuleSet, RuleSetRefused } from '../../../src/edge/gateway/seclang/rule-set';
import { loadSets } from '../../../src/edge/gateway/seclang/sets';
import { shortVerdict } from '../../../src/edge/gateway/seclang/verdict';
import { attacks, benign, factsOf } from '../../support/gateway-corpus';
import { managedSettings } from '../../support/managed-settings';

const rulesDir = resolve(__dirname, '../../../rules/base');
const base = loadRuleSet('base', rulesDir);

/** A rule set of these lines, as files of a folder. */
function setOf(rules: string, data: Readonly<Record<string, string>> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-rules-'));
  writeFileSync(join(folder, 'a.conf'), `SecComponentSignature "test/7"\n${rules}`);
  for (const [name, content] of Object.entries(data)) writeFileSync(join(folder, name), content);
  return loadRuleSet('base', folder);
}

interface Asked { readonly target?: string; readonly method?: string; readonly headers?: readonly (readonly [string, string])[]; readonly body?: string; readonly managed?: Partial<Policy['managedRules']> }

const facts = ({ target = '/', method = 'GET', headers = [], body }: Asked): RequestFacts => factsOf({ name: '', method, target, headers: [['host', 'shop.example.com'], ...headers], body: body === undefined ? null : Buffer.from(body, 'latin1') });

function ask(set: ReturnType<typeof setOf>, asked: Asked = {}): ManagedVerdict {
  const verdict = createRuleEngine({ sets: { base: set }, elsewhere: null, budgetMs: 60_000 }).inspectRequest(facts(asked), managedSettings({ ruleSet: 'base', ...asked.managed }), 0);
  if (verdict instanceof Promise) throw new Error('not synchronous');
  return verdict;
}

const ids = (verdict: ManagedVerdict) => verdict.matches.map(({ id }) => id);
const hit = "block,msg:'m',severity:CRITICAL,tag:'paranoia-level/1',setvar:'tx.anomaly_score_pl1=+5'";
const matching = (rule: string, asked?: Asked) => ids(ask(setOf(rule), asked));

describe('variables', () => {
  const form = { method: 'POST', headers: [['content-type', 'application/x-www-form-urlencoded']], body: 'p=posted&q=2' } as const;
  test.each<[string, string, Asked, boolean]>([
    ['ARGS', '@streq 1', { target: '/?a=1' }, true], ['ARGS:b', '@streq 1', { target: '/?a=1' }, false], ['ARGS:A', '@streq 1', { target: '/?a=1' }, true],
    ['ARGS|!ARGS:a', '@streq 1', { target: '/?a=1' }, false], ['ARGS:/^a/', '@streq 1', { target: '/?abc=1' }, true], ["ARGS:'/^a/'", '@streq 1', { target: '/?abc=1' }, true],
    ['ARGS|!ARGS:/^a/', '@streq 1', { target: '/?abc=1' }, false], ['&ARGS', '@eq 2', { target: '/?a=1&b=2' }, true], ['&ARGS:a', '@eq 2', { target: '/?a=1&a=2&b=3' }, true],
    ['ARGS_NAMES', '@streq Abc', { target: '/?Abc=1' }, true], ['ARGS_GET', '@streq posted', form, false], ['ARGS_POST', '@streq posted', form, true], ['ARGS_POST_NAMES', '@streq p', form, true],
    ['ARGS_GET_NAMES', '@streq a', { target: '/?a=1' }, true], ['ARGS_COMBINED_SIZE', '@eq 4', { target: '/?a=1&b=2' }, true],
    ['REQUEST_HEADERS:X-Test', '@streq v', { headers: [['x-test', 'v']] }, true], ['REQUEST_HEADERS_NAMES', '@streq x-test', { headers: [['x-test', 'v']] }, true],
    ['REQUEST_COOKIES:a', '@streq b=c', { headers: [['cookie', 'x=1; a=b=c']] }, true], ['REQUEST_COOKIES_NAMES', '@streq a', { headers: [['cookie', 'a=1']] }, true],
    ['REQUEST_METHOD', '@streq PUT', { method: 'PUT' }, true], ['REQUEST_PROTOCOL', '@streq HTTP/1.1', {}, true], ['REQUEST_LINE', '@streq GET /a?b=%41 HTTP/1.1', { target: '/a?b=%41' }, true],
    ['REQUEST_URI', '@streq /a?b=A', { target: '/a?b=%41' }, true], ['REQUEST_URI_RAW', '@streq /%41?b=%41', { target: '/%41?b=%41' }, true], ['QUERY_STRING', '@streq b=%41', { target: '/a?b=%41' }, true],
    ['REQUEST_FILENAME', '@streq /a+b c', { target: '/a+b%20c?x' }, true], ['REQUEST_BASENAME', '@streq c.php', { target: '/a/b/c.php' }, true],
    ['REQUEST_BODY', '@streq p=posted&q=2', form, true], ['REQUEST_BODY_LENGTH', '@eq 12', form, true], ['REQBODY_PROCESSOR', '@streq URLENCODED', form, true],
    ['REMOTE_ADDR', '@ipMatch 203.0.113.0/24', {}, true], ['UNIQUE_ID', '@streq req_1', {}, true], ['SERVER_NAME', '@streq shop.example.com', {}, true], ['DURATION', '@ge 0', {}, true],
    ['&IP:counter', '@eq 0', {}, true], ['&GLOBAL:x', '@eq 0', {}, true], ['&SESSION', '@eq 0', {}, true],
    ['XML:/*', '@contains needle', { method: 'POST', headers: [['content-type', 'text/xml']], body: '<a b="attr">needle</a>' }, true],
    ['XML://@*', '@streq attr', { method: 'POST', headers: [['content-type', 'text/xml']], body: '<a b="attr">needle</a>' }, true],
    ['TX:paranoia_level', '@eq 1', {}, true], ['TX:/^paranoia/', '@eq 1', {}, true],
  ])('%s %s', (variables, operator, asked, expected) => {
    expect(matching(`SecRule ${variables} "${operator}" "id:1,phase:2,t:none,${hit}"`, asked)).toEqual(expected ? ['1'] : []);
  });

  test('files and parts of multipart bodies', () => {
    const body = '--X\r\nContent-Disposition: form-data; name="up"; filename="a.php"\r\nContent-Type: x/y\r\n\r\n12345\r\n--X--\r\n';
    const asked: Asked = { method: 'POST', headers: [['content-type', 'multipart/form-data; boundary=X']], body };
    for (const [variable, value] of [['FILES', 'a.php'], ['FILES_NAMES', 'up'], ['FILES_SIZES', '5'], ['FILES_COMBINED_SIZE', '5'], ['MULTIPART_PART_HEADERS:up', 'Content-Type: x/y'], ['MULTIPART_FILENAME', 'a.php'], ['MULTIPART_NAME', 'up']]) {
      expect([variable, matching(`SecRule ${variable} "@streq ${value}" "id:1,phase:2,${hit}"`, asked)]).toEqual([variable, ['1']]);
    }
  });
});

describe('actions', () => {
  test('a chain matches when all of it does, and its last rule adds the score', () => {
    const rule = `SecRule ARGS:a "@rx ^x(\\d+)" "id:1,phase:2,capture,block,msg:'n %{tx.1} in %{MATCHED_VAR_NAME}',chain"\n  SecRule TX:1 "@gt 5" "setvar:'tx.anomaly_score_pl1=+5'"`;
    expect(ask(setOf(rule), { target: '/?a=x9' })).toMatchObject({ score: 5, blocked: true, matches: [{ id: '1', variable: 'ARGS:a', matched: 'x9' }] });
    expect(ask(setOf(rule), { target: '/?a=x3' })).toMatchObject({ score: 0, matches: [] });
  });
  test('every value that matches adds to the score', () => expect(ask(setOf(`SecRule ARGS "@streq x" "id:1,phase:2,${hit}"`), { target: '/?a=x&b=y&c=x' })).toMatchObject({ score: 10 }));
  test('skipAfter goes on behind its marker', () => {
    expect(matching(`SecRule ARGS:a "@streq 1" "id:1,phase:2,pass,nolog,skipAfter:END"\nSecAction "id:2,phase:2,${hit}"\nSecMarker END\nSecAction "id:3,phase:2,${hit}"`, { target: '/?a=1' })).toEqual(['3']);
  });
  test('skip passes over the rules that follow', () => {
    const rules = `SecRule ARGS:a "@streq 1" "id:1,phase:2,pass,nolog,skip:2"\nSecAction "id:2,phase:2,${hit}"\nSecRule ARGS "@rx ." "id:3,phase:2,${hit},chain"\n  SecRule ARGS "@rx ."\nSecAction "id:4,phase:2,${hit}"`;
    expect(matching(rules, { target: '/?a=1' })).toEqual(['4']);
    expect(matching(rules, { target: '/?a=2' })).toEqual(['2', '3', '4']);
  });
  test('SecRuleUpdateTargetById takes values out, wherever it stands', () => {
    const rules = `SecRule REQUEST_COOKIES "@streq x" "id:5,phase:2,${hit}"\nSecRuleUpdateTargetById 4-6 "!REQUEST_COOKIES:/^_ga/"`;
    expect(matching(rules, { headers: [['cookie', '_ga_1=x']] })).toEqual([]);
    expect(matching(rules, { headers: [['cookie', '_ga_1=x; b=x']] })).toEqual(['5']);
  });
  test('macros name any variable', () => {
    expect(matching(`SecRule REQUEST_METHOD "!@streq %{ARGS._method}" "id:1,phase:2,t:lowercase,${hit}"`, { target: '/?_method=get' })).toEqual([]);
    expect(ask(setOf(`SecAction "id:1,phase:2,${hit.replace("msg:'m'", "msg:'%{REQUEST_METHOD} %{request_headers.x-a} %{NONSENSE}.'")}"`), { headers: [['x-a', 'b']] })).toMatchObject({ matches: [{ message: 'GET b .' }] });
  });
  test('multiMatch looks after each transformation', () => {
    expect(matching(`SecRule ARGS "@rx ^%41$" "id:1,phase:2,t:none,t:urlDecode,${hit}"`, { target: '/?a=%2541' })).toEqual([]);
    expect(matching(`SecRule ARGS "@rx ^%41$" "id:1,phase:2,t:none,t:urlDecode,multiMatch,${hit}"`, { target: '/?a=%2541' })).toEqual(['1']);
  });
  test('MATCHED_VARS holds transformed values', () => {
    expect(matching(`SecRule ARGS "@rx ." "id:1,phase:2,t:lowercase,${hit},chain"\nSecRule MATCHED_VARS "@streq abc" "t:none"`, { target: '/?a=ABC' })).toEqual(['1']);
  });
  test('setvar counts, copies and removes', () => {
    const rules = `SecAction "id:1,phase:1,nolog,pass,setvar:tx.a=3,setvar:tx.a=+4,setvar:tx.a=-2,setvar:tx.b=%{tx.a},setvar:tx.c=1,setvar:!tx.c,setvar:'tx.%{tx.b}x=y'"
SecRule TX:b "@eq 5" "id:2,phase:2,${hit}"\nSecRule &TX:c "@eq 0" "id:3,phase:2,${hit}"\nSecRule TX:5x "@streq y" "id:4,phase:2,${hit}"`;
    expect(matching(rules)).toEqual(['2', '3', '4']);
  });
  test('deny blocks whatever the score, pass and nolog say nothing', () => {
    expect(ask(setOf('SecAction "id:1,phase:1,deny,status:403,msg:\'no\'"'))).toMatchObject({ blocked: true, score: 0, deciding: { id: '1' } });
    expect(ask(setOf('SecAction "id:1,phase:1,pass,nolog"'))).toMatchObject({ blocked: false, matches: [] });
  });
  test('allow ends evaluation, allow:phase its phase', () => {
    expect(matching(`SecAction "id:1,phase:1,allow,nolog"\nSecAction "id:2,phase:2,${hit}"`)).toEqual([]);
    expect(matching(`SecAction "id:1,phase:1,allow:phase,nolog"\nSecAction "id:2,phase:1,${hit}"\nSecAction "id:3,phase:2,${hit}"`)).toEqual(['3']);
  });
  test.each([
    ['ruleRemoveById=2', []], ['ruleRemoveById=1-9', []], ['ruleRemoveByTag=t2', []], ['ruleRemoveTargetById=2;ARGS:a', []], ['ruleRemoveTargetById=2;ARGS', []], ['ruleRemoveTargetByTag=t2;ARGS:a', []],
    ['ruleRemoveTargetById=2;ARGS:b', ['2']], ['ruleRemoveTargetById=3;ARGS:a', ['2']], ['ruleRemoveByTag=t3', ['2']], ['ruleEngine=Off', []], ['auditLogParts=+E', ['2']],
  ])('ctl:%s', (ctl, expected) => {
    expect(matching(`SecAction "id:1,phase:1,pass,nolog,ctl:${ctl}"\nSecRule ARGS "@streq x" "id:2,phase:2,tag:t2,${hit}"`, { target: '/?a=x' })).toEqual(expected);
  });
  test('ctl chooses the body processor', () => {
    const asked: Asked = { method: 'POST', headers: [['content-type', 'application/octet-stream']], body: '{"a":"x"}' };
    expect(matching(`SecRule ARGS:json.a "@streq x" "id:2,phase:2,${hit}"`, asked)).toEqual([]);
    expect(matching(`SecAction "id:1,phase:1,pass,nolog,ctl:requestBodyProcessor=JSON"\nSecRule ARGS:json.a "@streq x" "id:2,phase:2,${hit}"`, asked)).toEqual(['2']);
  });
  test('SecDefaultAction and t:none', () => {
    const rules = `SecDefaultAction "phase:2,deny,log,t:lowercase"\nSecRule ARGS "@streq abc" "id:1,phase:2,block,msg:'m'"\nSecRule ARGS "@streq ABC" "id:2,phase:2,t:none,pass"`;
    expect(ask(setOf(rules), { target: '/?a=ABC' })).toMatchObject({ blocked: true });
  });
});

describe('rule sets', () => {
  test('unknown directives are ignored, unknown rules skipped and listed', () => {
    const rules = Array.from({ length: 200 }, (_, at) => `SecAction "id:${at + 1},phase:1,pass,nolog"`).join('\n');
    const set = setOf(`SecRuleEngine On\n# a comment\n${rules}\nSecRule ARGS "@geoLookup" "id:900,phase:1,chain"\n  SecRule ARGS "@rx a"`);
    expect(set).toMatchObject({ version: 'base-7', skipped: [{ what: '900: operator @geolookup' }], ignored: [{ what: 'SecRuleEngine', line: 2 }] });
  });
  test('too many unknown rules refuse the set', () => {
    expect(() => setOf(`SecAction "id:1,phase:1,pass"\nSecRule ARGS "@geoLookup" "id:2,phase:1"`)).toThrow(RuleSetRefused);
    expect(loadSets({ crsDir: mkdtempSync(join(tmpdir(), 'holdfast-empty-')), rulesDir })).toMatchObject({ refused: [{ ruleSet: 'crs' }], sets: { base: { version: 'base-1' } } });
  });
  test('files of phrases are read, folders are not left', () => {
    expect(ids(ask(setOf(`SecRule ARGS "@pmFromFile w.data" "id:1,phase:2,${hit}"`, { 'w.data': '# c\nneedle\n\n' }), { target: '/?a=a+NEEDLE' }))).toEqual(['1']);
    expect(() => setOf(`SecRule ARGS "@pmFromFile ../x" "id:1,phase:2"`)).toThrow(RuleSetRefused);
  });
  test('continued lines, quotes and escapes', () => {
    expect(matching(`SecRule ARGS \\\n   "@rx [\\"']x\\|y" \\\n  "id:1,\\\n  phase:2,\\\n msg:'it\\'s, ok',\\\n ${hit}"`, { target: '/?a=%22x%7Cy' })).toEqual(['1']);
  });
  test('levels above the detection level are not run; above the blocking level they only log', () => {
    const rules = `SecRule TX:DETECTION_PARANOIA_LEVEL "@lt 2" "id:1,phase:2,pass,nolog,skipAfter:END"\nSecAction "id:2,phase:2,block,msg:'m',setvar:'tx.anomaly_score_pl2=+5'"\nSecMarker "END"`;
    expect(ask(setOf(rules))).toMatchObject({ matches: [], score: 0 });
    expect(ask(setOf(rules), { managed: { detectionParanoiaLevel: 2 } })).toMatchObject({ matches: [{ id: '2', paranoiaLevel: 2, score: 5 }], score: 0, blocked: false });
    expect(ask(setOf(rules), { managed: { paranoiaLevel: 2, detectionParanoiaLevel: 2 } })).toMatchObject({ score: 5, blocked: true });
  });
  test('our own set has at most 120 rules of its range, on levels 1 and 2', () => {
    expect(base.skipped).toEqual([]);
    expect(base.ruleCount).toBeLessThanOrEqual(120);
    for (const { id, paranoiaLevel } of base.descriptions) expect([Number(id) >= 9_500_000, paranoiaLevel <= 2]).toEqual([true, true]);
    expect(new Set(base.descriptions.map(({ id }) => id)).size).toBe(base.descriptions.length);
  });
});

describe('a policy', () => {
  const rule = `SecRule ARGS|REQUEST_COOKIES|REQUEST_HEADERS "@contains evil" "id:942100,phase:2,tag:'attack-sqli',${hit}"`;
  const set = setOf(rule);
  const exclusion = (given: object) => ({ managed: managedSettings({ exclusions: [{ id: 'e', ruleId: '942100', tag: null, target: '*', pathPrefix: null, note: null, expiresAt: null, ...given }] }) });
  test('disabled rules never run, logOnly rules match with score 0', () => {
    expect(ask(set, { target: '/?a=evil', managed: { disabledRules: ['942100'] } })).toMatchObject({ matches: [], score: 0 });
    expect(ask(set, { target: '/?a=evil', managed: { logOnlyRules: ['942100'] } })).toMatchObject({ matches: [{ id: '942100', score: 0 }], score: 0, blocked: false });
  });
  test.each<[string, object, string, boolean]>([
    ['all', {}, '/?a=evil', false], ['all of ARGS', { target: 'ARGS' }, '/?a=evil', false], ['one argument', { target: 'ARGS:a' }, '/?a=evil', false], ['in any case', { target: 'ARGS:A' }, '/?a=evil', false],
    ['another argument', { target: 'ARGS:b' }, '/?a=evil', true], ['a name in Unicode', { target: 'ARGS:é' }, '/?%C3%A9=evil', false], ['headers', { target: 'REQUEST_HEADERS' }, '/?a=evil', true],
    ['the path', { pathPrefix: '/search' }, '/search/x?a=evil', false], ['another path', { pathPrefix: '/search' }, '/?a=evil', true], ['a tag', { ruleId: null, tag: 'attack-sqli' }, '/?a=evil', false],
    ['another tag', { ruleId: null, tag: 'attack-xss' }, '/?a=evil', true], ['what has expired', { expiresAt: '1969-01-01T00:00:00.000Z' }, '/?a=evil', true], ['what has not', { expiresAt: '1970-01-02T00:00:00.000Z' }, '/?a=evil', false],
  ])('excludes %s', (_what, given, target, matched) => expect(ids(ask(set, { target, ...exclusion(given) }))).toEqual(matched ? ['942100'] : []));

  test('the suggested exclusion lets the same request pass', () => {
    fc.assert(fc.property(fc.constantFrom('/?a=evil', '/p/q?x%5B0%5D=evil', '/?%C3%A9=evil', '/?=evil'), fc.boolean(), (target, cookie) => {
      const asked: Asked = { target, headers: cookie ? [['cookie', 'c=evil']] : [] };
      const seen: string[] = [];
      let verdict = ask(set, asked);
      const exclusions: Policy['managedRules']['exclusions'] = [];
      for (let at = 0; at < 4 && verdict.suggestion; at += 1) {
        exclusions.push({ id: `e${at}`, tag: null, note: null, expiresAt: null, ...verdict.suggestion });
        seen.push(verdict.suggestion.target);
        verdict = ask(set, { ...asked, managed: managedSettings({ exclusions }) });
      }
      expect({ seen, matches: verdict.matches }).toEqual({ seen, matches: [] });
    }), { numRuns: 12 });
  });
  test('the deciding rule is of the highest severity, the first in order', () => {
    const several = setOf(['WARNING', 'CRITICAL', 'CRITICAL'].map((severity, at) => `SecAction "id:${at + 1},phase:2,block,msg:'m',severity:${severity},setvar:'tx.anomaly_score_pl1=+3'"`).join('\n'));
    expect(ask(several)).toMatchObject({ score: 9, deciding: { id: '2', severity: 'CRITICAL' } });
  });
  test('switched off, nothing is looked at', () => expect(ask(set, { target: '/?a=evil', managed: { enabled: false } })).toMatchObject({ matches: [], fault: null }));
});

describe('limits', () => {
  const post = (type: string, body: string): Asked => ({ method: 'POST', headers: [['content-type', type]], body });
  test.each<[string, string, Asked]>([
    ['arguments', '9500001', { target: `/?${'a=1&'.repeat(1_001)}` }], ['parts', '9500002', post('multipart/form-data; boundary=X', `${'--X\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'.repeat(65)}--X--\r\n`)],
    ['depth', '9500003', post('application/json', `${'['.repeat(70)}${']'.repeat(70)}`)], ['a body that is not what it says', '9500005', post('application/json', '{')],
    ['multipart that can be read twice', '9500006', post('multipart/form-data; boundary=X', 'x\r\n--X\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--X--\r\n')],
  ])('too many %s are a critical match', (_what, id, asked) => {
    const verdict = ask(setOf('SecAction "id:1,phase:1,pass,nolog"'), asked);
    expect(verdict).toMatchObject({ blocked: true, fault: null, deciding: { severity: 'CRITICAL' } });
    expect(ids(verdict)).toContain(id);
  });
  test('time spent: what was found so far decides, else it is a fault', () => {
    const spent = (rules: string) => createRuleEngine({ sets: { base: setOf(rules) }, elsewhere: null, budgetMs: -1 }).inspectRequest(facts({}), managedSettings({ ruleSet: 'base' }), 0);
    expect(spent(`SecAction "id:1,phase:1,${hit}"`)).toMatchObject({ blocked: false, fault: 'budget' });
  });
  test('the time may end between any two rules, and within one that looks at long values', () => {
    const clock = jest.spyOn(performance, 'now');
    try {
      let now = 0;
      clock.mockImplementation(() => (now += 1));
      const until = (ms: number, score: number, asked: Asked) => {
        now = 0;
        const first = `SecAction "id:1,phase:1,block,msg:'m',tag:'paranoia-level/1',setvar:'tx.anomaly_score_pl1=+${score}'"`;
        const rest = Array.from({ length: 200 }, (_, at) => `SecRule ARGS "@rx [a-z]${at}$" "id:${at + 2},phase:2,t:none,${hit}"`).join('\n');
        return inspectWithin({ base: setOf(`${first}\n${rest}`) }, { facts: facts(asked), response: null, settings: managedSettings({ ruleSet: 'base' }), now: 0 }, ms);
      };
      expect(until(3, 5, {})).toMatchObject({ blocked: true, fault: null, score: 5, deciding: { id: '1' } });
      expect(until(3, 3, {})).toMatchObject({ blocked: false, fault: 'budget', score: 3 });
      expect(until(6, 3, { target: `/?${Array.from({ length: 12 }, (_, at) => `a${at}=${'x'.repeat(600)}`).join('&')}` })).toMatchObject({ fault: 'budget' });
      expect(now).toBeLessThan(12);
    } finally {
      clock.mockRestore();
    }
  });
  test('large bodies, and compressed ones of any size, are judged elsewhere', async () => {
    const moved: number[] = [];
    const split = createRuleEngine({ sets: { base }, elsewhere: async (inspected) => { moved.push(inspected.facts.body?.length ?? 0); return inspectWithin({ base }, inspected, 60_000); } });
    const packed = gzipSync('a=<script>alert(1)</script>');
    const compressed = { ...facts({ method: 'POST', headers: [['content-type', 'application/x-www-form-urlencoded'], ['content-encoding', 'gzip']] }), body: packed };
    expect(await split.inspectRequest(compressed, managedSettings({ ruleSet: 'base' }), 0)).toMatchObject({ blocked: true });
    await split.inspectRequest(facts({ method: 'POST', body: 'x'.repeat(16_385) }), managedSettings({ ruleSet: 'base' }), 0);
    expect(moved.filter((length) => length === packed.length || length === 16_385)).toEqual([packed.length, 16_385]);
  });
  test('whatever comes is judged: mutated requests of both corpora', () => {
    const samples = [...[...attacks().values()].flat(), ...benign()];
    const bits = ['%00', '%', '%u', '\\', '..', '<', '>', "'", '"', '(', ')', '{', '}', '[', '--', '/*', '&#', '=', '&', ';', '$', '\`', '\r\n', '\0', '\xc0\xaf', '\xff', '--X\r\n', '%0a'];
    const types = ['application/json', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=X', 'text/xml', 'text/plain', 'application/x-ndjson'];
    const settings = managedSettings({ ruleSet: 'base', paranoiaLevel: 2, detectionParanoiaLevel: 2, inspectResponse: true });
    const change = fc.record({ at: fc.double({ min: 0, max: 1, noNaN: true }), bit: fc.constantFrom(...bits), times: fc.integer({ min: 1, max: 300 }) });
    const judge = createRuleEngine({ sets: { base }, elsewhere: null, budgetMs: 60_000 });
    fc.assert(fc.property(fc.constantFrom(...samples), fc.array(change, { maxLength: 4 }), fc.constantFrom(...types), fc.boolean(), (sample, changes, type, complete) => {
      const mutated = (text: string) => changes.reduce((value, { at, bit, times }) => `${value.slice(0, at * value.length)}${bit.repeat(times)}${value.slice(at * value.length)}`, text);
      const plain = factsOf(sample);
      const body = Buffer.from(mutated(plain.body?.toString('latin1') ?? sample.name), 'latin1');
      const request = { ...plain, rawQuery: mutated(plain.rawQuery), headers: [...plain.headers.filter(([name]) => name !== 'content-type'), ['content-type', type] as const], body, bodyComplete: complete };
      for (const verdict of [judge.inspectRequest(request, settings, 0), judge.inspectResponse(request, { status: 200, headers: [], body }, settings, 0)]) {
        if (verdict instanceof Promise) throw new Error('not synchronous');
        expect({ fault: verdict.fault, nul: JSON.stringify(verdict).includes('\\u0000'), deciding: verdict.deciding !== null }).toEqual({ fault: null, nul: false, deciding: verdict.matches.length > 0 });
      }
    }), { numRuns: 120 });
  });
  test('a missing rule set is a fault', () => {
    expect(createRuleEngine({ sets: {}, elsewhere: null }).inspectRequest(facts({}), managedSettings({ ruleSet: 'base' }), 0)).toMatchObject({ fault: 'unavailable', blocked: false });
  });
});

test('answers are judged by phases 3 and 4 alone', () => {
  const engine = createRuleEngine({ sets: { base }, elsewhere: null, budgetMs: 60_000 });
  const answer = (body: string) => engine.inspectResponse(facts({ target: '/?a=<script>' }), { status: 500, headers: [['content-type', 'text/html']], body: Buffer.from(body) }, managedSettings({ ruleSet: 'base', inspectResponse: true }), 0);
  expect(answer('You have an error in your SQL syntax near')).toMatchObject({ blocked: true, threshold: 4, matches: [{ id: '9500600' }] });
  expect(answer('<p>hello</p>')).toMatchObject({ blocked: false, matches: [] });
});

describe('threads', () => {
  const started = startRuleEngine({ crsDir: null, rulesDir, threads: 1, execArgv: ['-r', resolve(__dirname, '../../support/typescript.cjs')] });
  beforeAll(() => started.ready, 60_000);
  afterAll(() => started.close());
  const body = (text: string): Asked => ({ method: 'POST', headers: [['content-type', 'application/x-www-form-urlencoded']], body: `pad=${'x'.repeat(20_000)}&t=${text}` });
  const settings = managedSettings({ ruleSet: 'base' });

  test('large bodies are judged in a thread', async () => {
    const late = started.engine.inspectRequest(facts(body('%3Cscript%3Ealert(1)%3C/script%3E')), settings, 0);
    expect(late).toBeInstanceOf(Promise);
    const verdict = await late;
    expect([null, 'budget']).toContain(verdict.fault);
    if (verdict.fault === null) expect(verdict.blocked).toBe(true);
  });
  test('a flood is refused, not queued for ever', async () => {
    const verdicts = await Promise.all(Array.from({ length: 200 }, async () => started.engine.inspectRequest(facts(body('x')), settings, 0)));
    expect(verdicts.filter(({ fault }) => fault === 'budget').length).toBeGreaterThanOrEqual(200 - 64 - 1);
  });
  test('a verdict names at most ten rules, the deciding one among them', async () => {
    const rules = Array.from({ length: 12 }, (_, at) => `SecAction "id:${at + 1},phase:2,block,msg:'m',severity:${at === 11 ? 'CRITICAL' : 'NOTICE'},setvar:'tx.anomaly_score_pl1=+1'"`);
    const verdict = shortVerdict(ask(setOf(rules.join('\n'))));
    expect(verdict).toMatchObject({ score: 12, deciding: { id: '12' } });
    expect(ids(verdict)).toEqual(['1', '2', '3', '4', '5', '6', '7', '8', '9', '12']);
    expect((await started.engine.inspectRequest(facts({ target: '/?a=<script>alert(1)</script>' }), settings, 0)).matches.length).toBeLessThanOrEqual(10);
  });
});
