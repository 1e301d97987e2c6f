import type { ComposedParts, Mailbox } from './ports';
import { signDkim, type DkimKey } from './rules/dkim';
import { mailboxes, unstructured } from './rules/header-text';
import { boundaryOf, holdfastId } from './rules/proof';

export interface MessageToCompose {
  readonly messageId: string;
  readonly from: Mailbox;
  readonly to: readonly Mailbox[];
  readonly cc: readonly Mailbox[];
  readonly replyTo: Mailbox | null;
  readonly subject: string;
  readonly text: string | null;
  readonly html: string | null;
  /** The acceptance; Date and DKIM `t=`. */
  readonly date: Date;
}

export interface ComposeKeys {
  /** MAIL_VERP_SECRET */
  readonly secret: string;
  /** Null: unsigned. */
  readonly dkim: DkimKey | null;
}

export interface ComposedMail {
  readonly mime: Buffer;
  readonly parts: ComposedParts;
}

/**
 * The bytes of a message, signed: the same input gives the same bytes, so a repeated attempt sends what the first one did.
 * No Bcc; every line ends with CRLF and has at most 998 octets; nothing a sender wrote is read as syntax, path or URL.
 */
export async function composeMail(message: MessageToCompose, { secret, dkim }: ComposeKeys): Promise<ComposedMail> {
  const parts = await partsOf(message, secret);
  const { default: MailComposer } = await import('nodemailer/lib/mail-composer');
  const root = new MailComposer({
    messageId: parts.rfcMessageId, date: dateText(parts.date), text: crlf(parts.text), ...(parts.html === null ? {} : { html: crlf(parts.html) }),
    baseBoundary: boundaryOf(message.messageId, secret), disableFileAccess: true, disableUrlAccess: true,
  }).compile();
  const mime = Buffer.concat([Buffer.from(headersOf(parts)), await root.build()]);
  return { mime: dkim ? await signDkim(mime, dkim, parts.date) : mime, parts };
}

/** `<msg_…@sender domain>` */
export function rfcMessageIdOf(messageId: string, from: Mailbox): string {
  return `<${messageId}@${from.address.slice(from.address.lastIndexOf('@') + 1)}>`;
}

async function partsOf(message: MessageToCompose, secret: string): Promise<ComposedParts> {
  const { messageId, text, html, ...rest } = message;
  return {
    ...rest,
    text: text !== null && text !== '' ? text : html ? await textOf(html) : '',
    html: html === '' ? null : html,
    rfcMessageId: rfcMessageIdOf(messageId, message.from), holdfastId: holdfastId(messageId, secret),
  };
}

/** Written by us, before what nodemailer makes of the body: it sees no address and no subject. */
function headersOf({ from, to, cc, replyTo, subject, holdfastId: id }: ComposedParts): string {
  const lines: [string, string][] = [
    ['From', mailboxes([from], 4)], ['To', mailboxes(to, 2)], ['Cc', mailboxes(cc, 2)], ['Reply-To', replyTo ? mailboxes([replyTo], 8) : ''],
    ['Subject', unstructured(subject, 7)], ['X-Holdfast-Id', id],
  ];
  return lines.filter(([, value]) => value !== '').map(([name, value]) => `${name}: ${value}\r\n`).join('');
}

async function textOf(html: string): Promise<string> {
  const { convert } = await import('html-to-text');
  return convert(html, { wordwrap: 76, limits: { maxDepth: 200 }, selectors: [{ selector: 'img', format: 'skip' }] });
}

/** RFC 5322 §3.3, always in UTC. */
function dateText(at: Date): string {
  return at.toUTCString().replace('GMT', '+0000');
}

/** A carriage return or line feed of its own is a line break here: on the wire it would be neither (RFC 5321 §2.3.8). */
function crlf(text: string): string {
  return text.replace(/\r\n|\r|\n/g, '\r\n');
}
