import { execute, type Database } from '../db/client';
import type { SessionTimes } from './store/users';

const pageRows = 1_000;

/**
 * What has ended is gone or says so: sessions, verification and setup tokens, reservations of old slugs, account mails a
 * month after; pending invitations past their end are stored as expired. In pages; `beat` is called between them.
 */
export async function expireIdentityRows(db: Database, times: SessionTimes, beat: () => void): Promise<number> {
  const statements = [
    pageOf('session', 'id', `"expiresAt" <= now() or "createdAt" <= now() - interval '${times.SESSION_MAX_DAYS} days'`),
    pageOf('verification', 'id', '"expiresAt" <= now()'),
    pageOf('setup_token', 'digest', 'expires_at <= now()'),
    pageOf('account_mail', 'id', `status <> 'pending' and updated_at < now() - interval '30 days'`),
    `delete from slug_alias where (scope, slug) in (select scope, slug from slug_alias where reserved_until <= now() limit ${pageRows})`,
    `update invitation set status = 'expired' where id in (select id from invitation where status = 'pending' and "expiresAt" <= now() limit ${pageRows})`,
    pageOf('invitation_token', 'invitation_id', `invitation_id in (select id from invitation where status <> 'pending')`),
  ];
  let total = 0;
  for (const statement of statements) {
    for (let changed = pageRows; changed === pageRows;) {
      beat();
      changed = await execute(db.prisma, statement);
      total += changed;
    }
  }
  return total;
}

function pageOf(table: string, key: string, where: string): string {
  return `delete from ${table} where ${key} in (select ${key} from ${table} where ${where} limit ${pageRows})`;
}
