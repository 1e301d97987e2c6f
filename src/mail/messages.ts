import type { z } from 'zod';
import type { Cause, Role } from '../core/caller';
import { AppError, notFound } from '../core/errors';
import { readPage, type Page } from '../core/page';
import type { Db } from '../db/client';
import type { Tx } from '../db/transaction';
import { appendAudit } from '../identity/service';
import { may } from '../identity/permissions';
import type { Id } from '../core/ids';
import { toldOf, writeChanges, type Change } from './changes';
import type { MailDeps } from './deps';
import { viewMessage } from './message-view';
import { addressKey } from './rules/addresses';
import type { listMessagesQuery, MessageView } from './schemas/messages';
import { lockMessages } from './store/changes';
import { findMessage, listMessages, readContent, readEvents, readRecipients, type MessageRow, type MessageScope } from './store/messages';
import { recipientsOfMessages } from './store/recipients';
import { markCancelRequested } from './store/cancel';

const eventsMax = 200;
const limitDefault = 25;

/** A message with its recipients and events. Errors: `not_found` for what is absent or foreign. */
export async function showMessage(db: Db, scope: MessageScope, messageId: string): Promise<MessageView> {
  const row = await findMessage(db, scope, messageId);
  if (!row) throw notFound('Message');
  return viewMessage(row, await readRecipients(db, row.id), await readEvents(db, row.id, eventsMax));
}

/** Bodies as far as they are kept, for who may write mail. Errors: `forbidden`. */
export async function showContent(db: Db, role: Role, messageId: string): Promise<{ text: string | null; html: string | null; mime: string | null }> {
  if (!may(role, 'mail:write')) throw new AppError('forbidden', 'Your role does not include mail:write, which reading bodies needs. Ask an owner of the organisation.', { required: 'mail:write' });
  const { text, html, mime } = await readContent(db, messageId);
  return { text, html, mime: mime === null ? null : Buffer.from(mime).toString() };
}

/** Messages of a service, newest first. Errors: `invalid_cursor`. */
export function pageMessages(deps: Pick<MailDeps, 'db' | 'cursors'>, serviceId: string, query: z.output<typeof listMessagesQuery>): Promise<Page<MessageRow>> {
  const { status = null, recipient, since = null, until = null, mode = null } = query;
  const filter = { serviceId, statuses: status, addressKey: recipient === undefined ? null : addressKey(recipient), since, until, mode };
  const list = { list: 'mail.messages', ...filter, since: since?.toISOString() ?? null, until: until?.toISOString() ?? null };
  return readPage(deps.cursors, list, query, {
    limitDefault, keyOf: (row) => [row.createdAt.toISOString(), row.id], fetch: (after, limit) => listMessages(deps.db.prisma, filter, { after, limit }),
  });
}

/** For whom an audit entry is written: sessions, not keys. */
export type Audited = { orgId: Id<'org'>; projectId: Id<'prj'>; cause: Cause };

/**
 * What waits is cancelled; what is being tried is if the attempt ends deferred. Answers how many were cancelled at once.
 * Errors: `not_found`; `invalid_state` when there is neither.
 */
export async function cancelMessage(tx: Tx, scope: MessageScope, messageId: string, audited: Audited | null): Promise<number> {
  if (!await findMessage(tx, scope, messageId)) throw notFound('Message');
  const message = (await lockMessages(tx, [messageId])).get(messageId);
  if (!message) throw notFound('Message');
  const recipients = await recipientsOfMessages(tx, [messageId]);
  const waiting = recipients.filter(({ status, retryOwner }) => status === 'queued' || (status === 'deferred' && retryOwner === 'us'));
  const running = recipients.some(({ status }) => status === 'sending');
  if (waiting.length === 0 && !running) throw new AppError('invalid_state', 'Nothing of this message waits any more.');
  await markCancelRequested(tx, messageId);
  await writeChanges(tx, waiting.map((before): Change => {
    const after = { ...before, status: 'cancelled' as const, statusReason: null, nextAttemptAt: null };
    return { message, before, after, told: [toldOf(after, 'cancelled', message.now, { source: 'api', attempt: null })] };
  }));
  if (audited) appendAudit(tx, { ...audited, outcome: 'done', target: { type: 'mailMessage', id: messageId }, changes: [{ field: 'cancelled', from: null, to: waiting.length }] });
  return waiting.length;
}

