import { z } from 'zod';
import { text } from '../../core/fields';
import type { Mailbox } from '../ports';
import { addressKey, isHeaderText, parseMailbox } from '../rules/addresses';
import { metadataFault } from '../rules/metadata';

const mailbox = text.transform((value, context): Mailbox => {
  const parsed = parseMailbox(value);
  if ('value' in parsed) return parsed.value;
  context.issues.push({ code: 'custom', message: parsed.fault, input: value });
  return z.NEVER;
}).meta({ description: '`local@domain` or `Name <local@domain>`, at most 320 octets.' });

const list = (min: number, max: number) => z.array(mailbox).min(min, 'must name at least one recipient').max(max, `must be at most ${max} addresses`);

const subject = text
  .refine((value) => value.trim() !== '', 'must not be blank')
  .refine((value) => [...value].length <= 180, 'must be at most 180 characters')
  .refine(isHeaderText, 'must not hold control characters or line breaks')
  .meta({ description: '1 to 180 characters on one line.' });

type Metadata = Readonly<Record<string, unknown>>;

/** Returned as it came: zod's own objects would leave `__proto__` out without a word. */
const metadata = z.unknown().transform((value, context): Metadata => {
  const fault = isObject(value) ? metadataFault(value) : 'must be an object';
  if (fault) context.issues.push({ code: 'custom', message: fault, input: value });
  return isObject(value) ? value : z.NEVER;
}).meta({ type: 'object', description: 'At most 16 KiB and 50 keys of 1 to 64 characters, 5 levels deep. Returned unchanged.' });

function isObject(value: unknown): value is Metadata {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Body of POST /api/mail/send (contract mail.md §4.1). Sizes are judged later: they have an error of their own. */
export const sendBody = z.strictObject({
  from: mailbox,
  to: list(1, 50),
  cc: list(0, 25).optional(),
  bcc: list(0, 25).optional(),
  replyTo: mailbox.optional(),
  subject,
  text: text.optional().meta({ description: 'At most 5 MiB.' }),
  html: text.optional().meta({ description: 'At most 5 MiB. Alone it gets a text part made from it.' }),
  metadata: metadata.optional(),
}).meta({ id: 'SendMail' });

export type SendBody = z.output<typeof sendBody>;
export type RecipientKind = 'to' | 'cc' | 'bcc';
export type AddressedTo = Mailbox & { kind: RecipientKind; addressKey: string };

/** Everybody the message goes to, each once: the first kind wins, in the order to, cc, bcc. */
export function recipientsOf({ to, cc = [], bcc = [] }: Pick<SendBody, 'to' | 'cc' | 'bcc'>): AddressedTo[] {
  const byKey = new Map<string, AddressedTo>();
  for (const [kind, mailboxes] of [['to', to], ['cc', cc], ['bcc', bcc]] as const) {
    for (const one of mailboxes) {
      const key = addressKey(one.address);
      if (!byKey.has(key)) byKey.set(key, { ...one, kind, addressKey: key });
    }
  }
  return [...byKey.values()];
}

const partMaxBytes = 5 * 1024 * 1024;
export const mimeMaxBytes = 10 * 1024 * 1024;

/** What the message will measure as MIME, headers and encodings included; an upper bound within a few per cent. */
export function estimatedMimeBytes(body: SendBody, recipients: readonly AddressedTo[]): number {
  const html = body.html ?? '';
  const part = (content: string) => 400 + (isPlain(content) ? content.length + countLines(content) : Math.ceil(Buffer.byteLength(content) * 1.37));
  // Without a text of its own the html is also told as text, never longer than itself.
  const parts = html === '' ? part(body.text ?? '') : part(html) + part(body.text ?? html);
  const headers = 2_000 + recipients.reduce((sum, { name, address }) => sum + address.length + Buffer.byteLength(name) * 2 + 20, 0);
  return headers + parts;
}

/** Which bound the body breaks; null when it keeps all. */
export function sizeFault(body: SendBody, sizeBytes: number): { part: 'text' | 'html' | 'message'; limit: number } | null {
  for (const part of ['text', 'html'] as const) {
    if (Buffer.byteLength(body[part] ?? '') > partMaxBytes) return { part, limit: partMaxBytes };
  }
  return sizeBytes > mimeMaxBytes ? { part: 'message', limit: mimeMaxBytes } : null;
}

/** Sent as it is: ASCII in lines of at most 76 octets, which no encoding has to fold. */
function isPlain(content: string): boolean {
  if (!/^[\x00-\x7f]*$/.test(content)) return false;
  for (let from = 0; from < content.length;) {
    const end = content.indexOf('\n', from);
    if ((end === -1 ? content.length : end) - from > lineMax) return false;
    from = end === -1 ? content.length : end + 1;
  }
  return true;
}

const lineMax = 76;

function countLines(content: string): number {
  let lines = 0;
  for (let at = content.indexOf('\n'); at !== -1; at = content.indexOf('\n', at + 1)) lines += 1;
  return lines;
}
