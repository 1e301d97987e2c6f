import { newId, type Id } from '../core/ids';
import type { Secrets } from '../core/secrets';
import { execute, rows, type Db } from '../db/client';
import { afterCommit, type Tx } from '../db/transaction';
import type { IdentityDeps } from './deps';
import type { AccountMailMessage } from './ports';

export type AccountMailKind = 'verify_email' | 'reset_password' | 'invitation' | 'address_known' | 'password_changed' | NoticeKind;
/** What owners are told of their organisation's resources; facts: see `words`. */
export type NoticeKind = 'postgres_trial' | 'postgres_storage';
export type AccountMailRow = {
  id: string; kind: AccountMailKind; recipient: string; sealedLink: string | null; facts: Record<string, string>;
  status: 'pending' | 'sent' | 'failed'; createdAt: Date;
};
/** A mail is given up this long after it was written. */
export const accountMailHours = 24;

type NewMail = { kind: AccountMailKind; recipient: string; orgId?: Id<'org'>; link?: string; facts?: Record<string, string> };

/** Links in mails open the interface of the installation; each carries its token, which the API takes as well. */
export function link(deps: Pick<IdentityDeps, 'config'>, page: 'verify-email' | 'reset-password' | 'accept-invitation', token: string): string {
  return `${deps.config.PUBLIC_URL}/${page}?token=${token}`;
}

/**
 * The row is the outbox: it commits with what it tells of, and its workflow is started afterwards. The link is sealed.
 * Nothing is written while account mail is off.
 */
export async function sendLater(deps: IdentityDeps, tx: Tx, mail: NewMail): Promise<void> {
  if (deps.config.ACCOUNT_MAIL === 'off') return;
  const id = await insertMail(deps, tx, mail, 'pending');
  afterCommit(tx, () => deps.startAccountMail(id));
}

/** Every owner of the organisation is told by mail; the relay sends what commits. Nothing is written while account mail is off. */
export async function tellOwners(
  tx: Tx, config: Pick<IdentityDeps['config'], 'ACCOUNT_MAIL'>, notice: { orgId: Id<'org'>; kind: NoticeKind; facts: Record<string, string> },
): Promise<void> {
  if (config.ACCOUNT_MAIL === 'off') return;
  const owners = await rows<{ email: string }>(tx, `select u.email from member m join "user" u on u.id = m."userId"
    where m."organizationId" = $1 and m.role = 'owner' and u.disabled_at is null order by u.id`, notice.orgId);
  for (const { email } of owners) {
    await execute(tx, `insert into account_mail (id, kind, recipient, org_id, facts, status, next_attempt_at) values ($1, $2, $3, $4, $5::jsonb, 'pending', now())`,
      newId('msg'), notice.kind, email, notice.orgId, JSON.stringify(notice.facts));
  }
}

/** The same work for an address nobody has: a row that is given up at birth, so that timing tells nothing. */
export async function pretendToSend(deps: IdentityDeps, tx: Tx, mail: NewMail): Promise<void> {
  if (deps.config.ACCOUNT_MAIL !== 'off') await insertMail(deps, tx, mail, 'failed');
}

async function insertMail(deps: IdentityDeps, tx: Tx, mail: NewMail, status: 'pending' | 'failed'): Promise<string> {
  const id = newId('msg');
  const sealed = mail.link === undefined ? null : deps.secrets.seal(mail.link, aad(id));
  await execute(tx, `insert into account_mail (id, kind, recipient, org_id, sealed_link, facts, status, error_code, next_attempt_at)
    values ($1, $2, $3, $4, $5, $6::jsonb, $7, $8, now() + interval '2 seconds')`,
  id, mail.kind, mail.recipient, mail.orgId ?? null, status === 'pending' ? sealed : null, JSON.stringify(mail.facts ?? {}), status, status === 'pending' ? null : 'not_found');
  return id;
}

const columns = `id, kind, recipient, sealed_link as "sealedLink", facts, status, created_at as "createdAt"`;

export async function getMail(db: Db, mailId: string): Promise<AccountMailRow | null> {
  const [row] = await rows<AccountMailRow>(db, `select ${columns} from account_mail where id = $1`, mailId);
  return row ?? null;
}

/** What the reader sees. Errors: a link that does not open (another master key). */
export function composeMail(secrets: Secrets, row: AccountMailRow): AccountMailMessage {
  const url = row.sealedLink === null ? '' : secrets.open(row.sealedLink, aad(row.id));
  const { subject, lines } = words(row, url);
  return { id: row.id, to: row.recipient, subject, text: `${lines.join('\n\n')}\n` };
}

/** Sent or given up, once; the link is wiped with it. */
export async function settleMail(db: Db, mailId: string, status: 'sent' | 'failed', errorCode: string | null): Promise<boolean> {
  return await execute(db, `update account_mail set status = $2, sealed_link = null, error_code = $3, sent_at = case when $2 = 'sent' then now() end
    where id = $1 and status = 'pending'`, mailId, status, errorCode) === 1;
}

/** The workflow of this mail runs. */
export async function markMailDispatched(db: Db, mailId: string): Promise<void> {
  await execute(db, 'update account_mail set dispatched_at = now() where id = $1 and dispatched_at is null', mailId);
}

/**
 * Mails whose workflow nobody started, or whose workflow ended without a verdict an hour ago: each goes to one relay, and
 * comes due again by itself if that one dies.
 */
export async function claimDueMails(db: Db, limit: number): Promise<string[]> {
  const found = await rows<{ id: string }>(db, `
    update account_mail set attempts = attempts + 1, dispatched_at = null,
      next_attempt_at = now() + least(interval '1 minute', interval '2 seconds' * power(2, least(attempts, 8)))
    where id in (select id from account_mail where status = 'pending' and next_attempt_at <= now()
      and (dispatched_at is null or dispatched_at < now() - interval '1 hour') order by next_attempt_at limit $1::int for update skip locked)
    returning id`, limit);
  return found.map((row) => row.id);
}

function aad(mailId: string): string {
  return `account_mail:${mailId}`;
}

function words({ kind, facts }: AccountMailRow, url: string): { subject: string; lines: string[] } {
  switch (kind) {
    case 'verify_email':
      return { subject: 'Verify your address', lines: ['Somebody, hopefully you, signed up to Holdfast with this address. To verify it, open:', url, 'The link works once and for 24 hours. If it was not you, ignore this mail.'] };
    case 'reset_password':
      return { subject: 'Reset your password', lines: ['Somebody, hopefully you, asked to reset the password of your Holdfast account. To choose a new one, open:', url, 'The link works once and for one hour. If it was not you, ignore this mail; your password stays as it is.'] };
    case 'invitation':
      return { subject: `Invitation to ${facts['orgName'] ?? 'an organisation'}`, lines: [`${facts['inviter'] ?? 'A member'} invites you to join ${facts['orgName'] ?? 'their organisation'} on Holdfast as ${facts['role'] ?? 'member'}. To accept, open:`, url, 'The link works once and for seven days.'] };
    case 'address_known':
      return { subject: 'You already have an account', lines: ['Somebody, hopefully you, tried to sign up to Holdfast with this address. It has an account already: sign in, or reset the password if you forgot it.', 'If it was not you, ignore this mail.'] };
    case 'password_changed':
      return { subject: 'Your password was changed', lines: ['The password of your Holdfast account was changed and other sessions were ended. If it was not you, reset it at once.'] };
    case 'postgres_trial': return trialWords(facts['name'] ?? 'A database', facts['days'] ?? '0');
    case 'postgres_storage':
      return { subject: `${facts['name'] ?? 'A database'} is nearly full`, lines: [`The Postgres service "${facts['name'] ?? ''}" uses ${facts['percent'] ?? '90'} % of its storage. From 95 % on it takes no writes, at 100 % it only lets data be read and deleted, until less than 90 % is used.`, 'Delete data, or choose a larger plan.'] };
  }
}

function trialWords(name: string, days: string): { subject: string; lines: string[] } {
  const keep = 'To keep it, choose a paid plan for its subscription.';
  if (days === '0') return { subject: `The trial of ${name} has ended`, lines: [`The trial of the Postgres service "${name}" has ended and it is suspended. In seven days it will be deleted.`, keep] };
  return { subject: `The trial of ${name} ends in ${days === '1' ? 'a day' : `${days} days`}`, lines: [`The trial of the Postgres service "${name}" ends in ${days === '1' ? 'a day' : `${days} days`}. It will be suspended then, and deleted seven days later.`, keep] };
}
