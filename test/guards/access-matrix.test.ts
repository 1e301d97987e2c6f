import { randomBytes } from 'node:crypto';
import { roles, scopes, type Role } from '../../src/core/caller';
import type { Described } from '../../src/http/possible-errors';
import { routes } from '../../src/http/routes';
import { addresses } from '../../src/http/server';
import { sessionCookieName, sessionCookieValue } from '../../src/identity/cookie';
import { permissionFrom } from '../../src/identity/permissions';
import { withApi } from '../support/api';
import { insertApiKey } from '../support/mail-rows';

const columns = ['no session', 'expired', 'API key', 'non-member', ...roles] as const;
type Column = (typeof columns)[number];
type Verdict = '401' | '403' | '404' | 'yes';

/** Contract identity.md §4.1, row by row: the first role that holds each permission. */
const contract: Readonly<Record<Role, readonly string[]>> = {
  viewer: ['org:read', 'mail:read', 'dns:read', 'postgres:read', 'billing:read'],
  member: ['mail:write', 'mail:keys', 'dns:write', 'postgres:create', 'postgres:manage', 'postgres:credentials'],
  admin: ['mail:delete', 'postgres:delete', 'dns:zones', 'dns:policy', 'org:update', 'projects:manage', 'members:manage', 'audit:read', 'billing:invoices', 'billing:plans'],
  owner: ['billing:manage', 'org:delete'],
};

/** What the contract gives a caller of this kind: 401 without a session or with another credential, 404 outside, 403 below. */
function expected({ auth }: Described, column: Column): Verdict {
  if (auth.kind === 'open') return 'yes';
  if (auth.kind === 'signature') return '401';
  if (auth.kind === 'scope') return column === 'API key' ? 'yes' : '401';
  if (column === 'no session' || column === 'expired' || column === 'API key') return '401';
  if (auth.kind === 'self') return 'yes';
  if (column === 'non-member') return '404';
  const from = roles.find((role) => contract[role].includes(auth.permission));
  return from !== undefined && roles.indexOf(column) >= roles.indexOf(from) ? 'yes' : '403';
}

// A provider that is not configured is a 404: the ledger and generic mail events are.
const api = withApi({ LEDGER_WEBHOOK_SECRETS: `whsec_${Buffer.alloc(24, 1).toString('base64')}` });

test('the permissions are the table of the contract', () => {
  const table = Object.fromEntries(roles.flatMap((role) => contract[role].map((permission) => [permission, role])));
  expect(permissionFrom).toEqual(table);
});

test('who may call what: reviewed when it changes', () => {
  const width = Math.max(...routes.map(({ id }) => id.length));
  const lines = routes.map((operation) => [operation.id.padEnd(width), ...columns.map((column) => expected(operation, column).padEnd(column.length))].join('  '));
  expect(['', [' '.repeat(width), ...columns].join('  '), ...lines.toSorted(), ''].join('\n')).toMatchSnapshot();
});

// A body with an unknown key is refused after who calls is settled, and before anything is done: 400 is "yes".
test.each(routes.map((operation) => ({ id: operation.id, operation })))('$id answers each kind of caller as the matrix says', async ({ operation }) => {
  const verdicts = await Promise.all(columns.map(async (column) => [column, await verdictOf(operation, column)]));
  expect(Object.fromEntries(verdicts)).toEqual(Object.fromEntries(columns.map((column) => [column, expected(operation, column)])));
});

test('an alias asks for the same', async () => {
  for (const operation of routes) {
    const [, ...others] = addresses(operation);
    for (const address of others.filter((path) => !path.includes('/projects/') || operation.auth.kind !== 'permission')) {
      expect({ address, verdict: await verdictOf(operation, 'no session', address) }).toEqual({ address, verdict: expected(operation, 'no session') });
    }
  }
});

async function verdictOf(operation: Described, column: Column, address = addresses(operation)[0] ?? ''): Promise<string> {
  const path = address.replace(':orgSlug', api.tenant.orgSlug).replace(':projectSlug', api.tenant.projectSlug).replace(':provider', address.includes('/mail/') ? 'generic' : 'ledger').replace(/:\w+/g, 'x');
  const { status, body } = await api.ask(operation.method.toUpperCase(), path, { headers: await credential(column), json: { accessMatrix: true } });
  if (status === 400) return body.code === 'validation_error' ? 'yes' : `400 ${String(body.code)}`;
  if (status === 404 && !/^(Organi[sz]ation|Project)/.test(body.message)) return `404 ${String(body.message)}`;
  return String(status);
}

async function credential(column: Column): Promise<Record<string, string>> {
  switch (column) {
    case 'no session': return {};
    case 'expired': return { cookie: await expiredCookie() };
    case 'API key': return { authorization: `Bearer ${await keyOfEveryScope()}` };
    case 'non-member': return { cookie: api.foreign.cookies.owner };
    default: return { cookie: api.tenant.cookies[column] };
  }
}

let keyOnce: Promise<string> | undefined;

/** A key of the tenant's project that may do whatever keys may. */
function keyOfEveryScope(): Promise<string> {
  keyOnce ??= insertApiKey(api.deps.db, api.tenant, { scopes }).then(({ key }) => key);
  return keyOnce;
}

let expiredOnce: Promise<string> | undefined;

/** A session of the tenant's owner, whose time has passed. */
function expiredCookie(): Promise<string> {
  expiredOnce ??= (async () => {
    const token = randomBytes(24).toString('base64url');
    await api.deps.db.pool.query(`insert into session (id, "userId", token, "expiresAt") values ($1, $2, $3, now() - interval '1 second')`,
      [`ses_${randomBytes(13).toString('hex')}`, api.tenant.userIds.owner, token]);
    return `${sessionCookieName}=${sessionCookieValue(token, api.deps.config.AUTH_SECRET)}`;
  })();
  return expiredOnce;
}
