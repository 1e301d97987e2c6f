import { dmarcPolicyOf, newSelector, recordsOf, shownFound, statusOfFound } from '../../src/mail/rules/domain-records';

const domain = { domain: 'acme.com', token: 'a'.repeat(32), returnPath: 'bounce' };
const key = Buffer.from('a public key').toString('base64');
const dkim = { purpose: 'dkim' as const, value: `v=DKIM1; k=rsa; p=${key}` };

test('a domain has four records, and one more for each key beside the one that signs', () => {
  const names = (states: readonly ('current' | 'next' | 'former')[]) => recordsOf(domain, states.map((state) => ({ selector: state, state, publicKey: key })), 'bounce.holdfast.test').map(({ name, required }) => `${name} ${required}`);
  expect(names(['current'])).toEqual(['_holdfast.acme.com true', 'current._domainkey.acme.com true', 'bounce.acme.com false', '_dmarc.acme.com false']);
  expect(names(['former', 'next', 'current']).slice(1, 4)).toEqual(['current._domainkey.acme.com true', 'next._domainkey.acme.com true', 'former._domainkey.acme.com false']);
  expect(newSelector()).toMatch(/^hf[a-z2-7]{6}$/);
});

test.each([
  [`v=DKIM1; k=rsa; p=${key}`, 'ok'], [`p=${key}`, 'ok'], [` k=rsa ;p= ${key.slice(0, 5)} ${key.slice(5)};v=DKIM1;`, 'ok'], [`v=DKIM1; p=${key}; t=y`, 'ok'],
  ['v=DKIM1; k=rsa; p=', 'mismatch'], [`v=DKIM2; p=${key}`, 'mismatch'], [`v=DKIM1; k=ed25519; p=${key}`, 'mismatch'], ['v=DKIM1; k=rsa; p=b3RoZXI=', 'mismatch'], [`x ${key}`, 'mismatch'],
])('DKIM record %s is %s', (text, status) => {
  expect(statusOfFound(dkim, [text])).toBe(status);
  expect(statusOfFound(dkim, ['something else', text])).toBe(status);
});

test('ownership is equal after trimming; a return path points at us; nothing found is missing', () => {
  expect(statusOfFound({ purpose: 'ownership', value: 'holdfast-verify=x' }, ['  holdfast-verify=x '])).toBe('ok');
  expect(statusOfFound({ purpose: 'ownership', value: 'holdfast-verify=x' }, ['holdfast-verify=X'])).toBe('mismatch');
  expect(statusOfFound({ purpose: 'return_path', value: 'bounce.holdfast.test' }, ['Bounce.Holdfast.test.'])).toBe('ok');
  expect(statusOfFound({ purpose: 'return_path', value: 'bounce.holdfast.test' }, [])).toBe('missing');
});

test.each([
  [['v=DMARC1; p=none'], 'none'], [['v=DMARC1;p=Reject;sp=none'], 'reject'], [['unrelated', 'v=DMARC1 ; p=quarantine'], 'quarantine'],
  [['v=DMARC1; p=none', 'v=DMARC1; p=reject'], null], [['v=DMARC1; p=maybe'], null], [['p=none; v=DMARC1'], null], [[], null],
])('DMARC records %j have the policy %s', (found, policy) => {
  expect(dmarcPolicyOf(found)).toBe(policy);
});

test('of what is found five strings are kept, each of 512 characters at most', () => {
  expect(shownFound(Array.from({ length: 9 }, () => 'x'.repeat(600))).map(({ length }) => length)).toEqual([512, 512, 512, 512, 512]);
});
