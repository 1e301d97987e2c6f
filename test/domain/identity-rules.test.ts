import fc from 'fast-check';
import { may, permissionFrom, permissionOfScope, rank } from '../../src/identity/permissions';
import { roles, scopes } from '../../src/core/caller';
import { canonicalEmail, firstFreeSlug, isReservedSlug, mayHandle, passwordFault, reservedSlugs, slugBase, slugPattern } from '../../src/identity/rules';

test('whatever a name is, a valid free slug comes of it, also when everything near it is taken', () => {
  fc.assert(fc.property(fc.string({ unit: 'grapheme', maxLength: 80 }), fc.nat(30), (name, takenCount) => {
    const base = slugBase(name, 'org');
    const taken = new Set([base, ...Array.from({ length: takenCount }, (_, i) => `${base}-${i + 2}`)]);
    const slug = firstFreeSlug(base, taken);
    expect(slug).toMatch(slugPattern);
    expect(taken.has(slug) || isReservedSlug(slug)).toBe(false);
  }));
});

test('a reserved word is taken from the start', () => {
  for (const word of reservedSlugs) expect(firstFreeSlug(slugBase(word, 'org'), new Set())).toBe(`${word}-2`);
});

test.each([
  ['1234567', /8 to 128/], ['x'.repeat(129), /8 to 128/], ['Password1', /guessed first/], ['QWERTYUIOP', /guessed first/], ['ann.smith@acme.test', /email/], ['Ann.Smith', /email/], ['Ann Q. Smith', /name/],
])('the password %p is refused', (password, why) => {
  expect(passwordFault(password, { email: 'ann.smith@acme.test', displayName: 'Ann Q. Smith' })).toMatch(why);
});

test.each(['correct horse battery', '🐎🔋📎🌊🐎🔋📎🌊', 'x'.repeat(128)])('the password %p is good: there are no composition rules', (password) => {
  expect(passwordFault(password, { email: 'ann@acme.test', displayName: 'Ann' })).toBeNull();
});

test('addresses have one form', () => {
  fc.assert(fc.property(fc.emailAddress(), (email) => canonicalEmail(`  ${email.toUpperCase()} `) === canonicalEmail(email)));
});

test('who may do more may do all that those below may; nobody handles a role above their own', () => {
  for (const permission of Object.keys(permissionFrom)) {
    const known = isPermission(permission) ? permission : null;
    const allowed = roles.map((role) => known !== null && may(role, known));
    expect(allowed).toEqual(allowed.toSorted((a, b) => Number(a) - Number(b)));
    expect(allowed.at(-1)).toBe(true);
  }
  for (const one of roles) for (const other of roles) expect(mayHandle(one, other)).toBe(rank(one) >= rank(other));
  expect(Object.keys(permissionOfScope).toSorted()).toEqual([...scopes].toSorted());
});

function isPermission(text: string): text is keyof typeof permissionFrom {
  return text in permissionFrom;
}
