import { pino } from 'pino';
import { openDatabase } from '../../src/db/client';
import { engineOptions } from '../../src/identity/engine';
import { testConfig } from '../support/postgres-api';

const database = openDatabase({ url: 'postgresql://127.0.0.1:7/none', max: 1, process: 'test', log: pino({ level: 'silent' }) });
afterAll(() => database.close());

test('what the account engine weakens under test, or by default, is set by us (contract identity.md)', () => {
  const { advanced, rateLimit, session, verification, emailAndPassword, telemetry, plugins, ...rest } = engineOptions(database, testConfig('postgresql://127.0.0.1:7/none'));
  expect(advanced).toMatchObject({
    disableOriginCheck: false, disableCSRFCheck: false,
    cookies: { session_token: { name: '__Host-holdfast_session', attributes: { secure: true, httpOnly: true, sameSite: 'lax', path: '/' } } },
  });
  expect(rateLimit).toEqual({ enabled: true });
  expect(session).toEqual({ expiresIn: 7 * 86_400, updateAge: 3_600 });
  expect(verification).toEqual({ storeIdentifier: 'hashed' });
  expect(emailAndPassword).toMatchObject({ revokeSessionsOnPasswordReset: true });
  expect(telemetry).toEqual({ enabled: false });
  expect(plugins.map(({ id }) => id)).toEqual(['organization']);
  expect(plugins[0]?.options).toMatchObject({ cancelPendingInvitationsOnReInvite: true, requireEmailVerificationOnInvitation: false });
  expect(rest).not.toHaveProperty('secondaryStorage');
  expect(Object.keys(plugins[0]?.options?.roles ?? {}).toSorted()).toEqual(['admin', 'member', 'owner', 'viewer']);
});
