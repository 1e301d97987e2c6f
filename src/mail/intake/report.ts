import type { Attachment, Email } from 'postal-mime';
import type { Reply } from '../ports';
import { diagnosticOf } from '../rules/replies';
import { addressOf, first, readGroups, typedValue, type Fields } from '../rules/report-fields';

export type ReportedAction = 'failed' | 'delivered' | 'delayed' | 'relayed' | 'expanded';
/** What a report says of one recipient; `addresses`: the names it may have had, none when it was redacted. */
export type ReportedRecipient = { addresses: readonly string[]; action: ReportedAction | 'complained'; reply: Reply; feedbackType?: string };

export type ParsedReport = {
  kind: 'dsn' | 'arf';
  recipients: readonly ReportedRecipient[];
  /** What may prove whose mail it speaks of: envelope senders and values of X-Holdfast-Id, as found. */
  senders: readonly string[];
  holdfastIds: readonly string[];
  /** Without a report part, only an envelope sender of ours proves it. */
  informal: boolean;
};

const actions: readonly ReportedAction[] = ['failed', 'delivered', 'delayed', 'relayed', 'expanded'];
/** Feedback that is no complaint (RFC 5965 §7.3, RFC 6591). */
const noComplaints = ['not-spam', 'auth-failure', 'dmarc'];

/** A bounce or a complaint in any of the forms of contract mail.md §6; null for other mail. Every group of a notification counts. */
export async function readReport(raw: Buffer): Promise<ParsedReport | null> {
  const { default: PostalMime } = await import('postal-mime');
  const email = await PostalMime.parse(raw, { forceRfc822Attachments: true, maxNestingDepth: 20 }).catch(() => null);
  if (!email) return null;
  const part = (...types: string[]) => email.attachments.find(({ mimeType }) => types.includes(mimeType.toLowerCase()));
  const originals = email.attachments.filter(({ mimeType }) => /^(?:message\/(?:rfc822|global)(?:-headers)?|text\/rfc822-headers)$/i.test(mimeType)).map((one) => readGroups(textOf(one))[0] ?? new Map());
  const proof = {
    senders: originals.flatMap((fields) => [first(fields, 'return-path'), first(fields, 'x-original-mail-from')]).map(addressOf).filter(Boolean),
    holdfastIds: originals.map((fields) => first(fields, 'x-holdfast-id')).filter(Boolean),
  };
  const status = part('message/delivery-status', 'message/global-delivery-status');
  if (status) return { kind: 'dsn', informal: false, recipients: readGroups(textOf(status)).flatMap(deliveryStatus), ...proof };
  const feedback = part('message/feedback-report');
  if (feedback) return complaint(readGroups(textOf(feedback))[0] ?? new Map(), proof);
  return informalBounce(email);
}

/** A per-recipient group; the per-message one has no Action. */
function deliveryStatus(fields: Fields): ReportedRecipient[] {
  const spoken = first(fields, 'action').toLowerCase();
  const action = actions.find((one) => spoken === one || spoken.startsWith(`${one} `));
  if (!action) return [];
  const diagnostic = typedValue(first(fields, 'diagnostic-code'));
  const enhancedCode = /[245]\.\d{1,3}\.\d{1,3}/.exec(first(fields, 'status'))?.[0];
  const specific = /^[245]\.0\.0$/.test(enhancedCode ?? '5.0.0') ? /\b[245]\.\d{1,3}\.\d{1,3}\b/.exec(diagnostic)?.[0] ?? enhancedCode : enhancedCode;
  const addresses = ['original-recipient', 'final-recipient'].map((name) => addressOf(first(fields, name))).filter(Boolean);
  return [{ addresses, action, reply: replyOf({ enhancedCode: specific, text: diagnostic, mxHost: typedValue(first(fields, 'remote-mta')) }) }];
}

function complaint(fields: Fields, proof: Pick<ParsedReport, 'senders' | 'holdfastIds'>): ParsedReport | null {
  const feedbackType = first(fields, 'feedback-type').toLowerCase();
  if (noComplaints.includes(feedbackType)) return null;
  const addresses = (fields.get('original-rcpt-to') ?? []).map(addressOf).filter(Boolean);
  const about = addresses.length > 0 ? addresses.map((address) => [address]) : [[]];
  return {
    kind: 'arf', informal: false, ...proof, senders: [addressOf(first(fields, 'original-mail-from')), ...proof.senders].filter(Boolean),
    recipients: about.map((names) => ({ addresses: names, action: 'complained', reply: {}, ...(feedbackType === '' ? {} : { feedbackType: feedbackType.slice(0, 100) }) })),
  };
}

/** Servers that write no report part: `X-Failed-Recipients` (Exim), or an enhanced code in the words. */
function informalBounce(email: Email): ParsedReport | null {
  const failed = email.headers.filter(({ key }) => key.toLowerCase() === 'x-failed-recipients').flatMap(({ value }) => value.split(',')).map(addressOf).filter(Boolean);
  const words = email.text ?? '';
  const enhancedCode = /\b5\.\d{1,3}\.\d{1,3}\b/.exec(words)?.[0];
  if (failed.length === 0 && enhancedCode === undefined) return null;
  const around = words.split('\n').find((line) => enhancedCode !== undefined && line.includes(enhancedCode)) ?? '';
  return { kind: 'dsn', informal: true, senders: [], holdfastIds: [], recipients: [{ addresses: failed, action: 'failed', reply: replyOf({ enhancedCode, text: around }) }] };
}

function replyOf({ enhancedCode, text, mxHost }: { enhancedCode: string | undefined; text: string; mxHost?: string }): Reply {
  const code = /(?:^|[\s(])([245]\d\d)(?=[\s-])/.exec(text)?.[1];
  const diagnostic = diagnosticOf(text);
  return {
    ...(code ? { code: Number(code) } : {}), ...(enhancedCode ? { enhancedCode } : {}), ...(diagnostic ? { text: diagnostic } : {}), ...(mxHost ? { mxHost: mxHost.slice(0, 255) } : {}),
  };
}

function textOf({ content }: Attachment): string {
  return typeof content === 'string' ? content : Buffer.from(content instanceof ArrayBuffer ? new Uint8Array(content) : content).toString();
}
