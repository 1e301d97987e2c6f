import { createHash } from 'node:crypto';
import type { Config } from '../../config';
import type { Clock } from '../../core/clock';
import type { Database } from '../../db/client';
import { inTransaction } from '../../db/transaction';
import { applyReports, type Report } from '../facts';
import { readEnvelopeSender, readHoldfastId } from '../rules/proof';
import { bounceClass } from '../rules/replies';
import { noteReport, reportableRecipients, type ReportableRecipient } from '../store/reports';
import { readReport, type ParsedReport, type ReportedRecipient } from './report';

export interface IntakeDeps {
  readonly db: Database;
  readonly clock: Clock;
  readonly config: Pick<Config, 'MAIL_VERP_SECRET' | 'MAIL_BOUNCE_DOMAIN'>;
}

/** What became of a report: `unproven` speaks of no mail of ours for certain, `unreadable` is none. */
export type Intake = 'applied' | 'repeated' | 'unproven' | 'unreadable';

/** Whether the intake takes mail to this address: an envelope sender of ours, or the address of feedback loops. */
export function isReportAddress({ config }: Pick<IntakeDeps, 'config'>, address: string): boolean {
  return address.toLowerCase() === `fbl@${config.MAIL_BOUNCE_DOMAIN}` || readEnvelopeSender(address, config.MAIL_VERP_SECRET) !== null;
}

/** A report is durable, its bounces, deliveries and complaints merged; the same bytes twice count once. Errors: those of the database. */
export async function acceptReport(deps: IntakeDeps, envelopeTo: string, raw: Buffer): Promise<Intake> {
  const parsed = await readReport(raw);
  if (!parsed) return 'unreadable';
  const claim = claimOf(parsed, envelopeTo, deps.config.MAIL_VERP_SECRET);
  if (!claim) return 'unproven';
  const digest = createHash('sha256').update(envelopeTo.toLowerCase()).update('\0').update(raw).digest('hex');
  return inTransaction(deps.db, async (tx) => {
    const recipients = await reportableRecipients(tx, claim.messageId);
    const own = claim.position === null ? (recipients.length === 1 ? recipients[0] : undefined) : recipients.find(({ position }) => position === claim.position);
    if (!own) return 'unproven';
    if (!await noteReport(tx, { kind: parsed.kind, digest, messageId: claim.messageId })) return 'repeated';
    await applyReports(tx, parsed.recipients.map((about) => reportOf({ about, kind: parsed.kind, messageId: claim.messageId, key: digest, at: deps.clock.now() }, named(about, recipients) ?? own)));
    return 'applied';
  });
}

type Claim = { messageId: string; position: number | null };

/** The envelope sender it came back to, or one found inside, names a recipient; the header only a message (contract mail.md §6). */
function claimOf({ senders, holdfastIds, informal }: ParsedReport, envelopeTo: string, secret: string): Claim | null {
  for (const address of informal ? [envelopeTo] : [envelopeTo, ...senders]) {
    const proven = readEnvelopeSender(address, secret);
    if (proven) return { messageId: proven.messageId, position: proven.recipientIndex };
  }
  const messageId = informal ? undefined : holdfastIds.map((value) => readHoldfastId(value, secret)).find((id) => id !== null);
  return messageId ? { messageId, position: null } : null;
}

/** The recipient of this message a group names. A name that is none of them is where the recipient's mail was passed on to. */
function named({ addresses }: ReportedRecipient, recipients: readonly ReportableRecipient[]): ReportableRecipient | undefined {
  return recipients.find(({ addressKey }) => addresses.includes(addressKey));
}

type Told = { about: ReportedRecipient; kind: 'dsn' | 'arf'; messageId: string; key: string; at: Date };

function reportOf({ about: { action, reply, feedbackType }, kind, messageId, key, at }: Told, { id }: ReportableRecipient): Report {
  const base = { messageId, recipientIds: [id], key, source: kind };
  switch (action) {
    case 'failed': return { ...base, type: 'bounced', fact: { type: 'bounced', occurredAt: at, reply, bounce: { class: bounceClass(reply) } } };
    case 'delivered': return { ...base, type: 'delivered', fact: { type: 'delivered', occurredAt: at, reply } };
    case 'complained': return { ...base, type: 'complained', fact: { type: 'complained', occurredAt: at, reply, complaint: feedbackType === undefined ? {} : { feedbackType } } };
    case 'delayed': return { ...base, type: 'deferred', fact: null };
    case 'relayed': case 'expanded': return { ...base, type: 'sent', fact: null };
  }
}
