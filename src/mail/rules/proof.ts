import { createHmac, timingSafeEqual } from 'node:crypto';
import { isId, type Id } from '../../core/ids';

/**
 * What proves that a report speaks of a mail of ours: the envelope sender of each recipient (VERP) and the header
 * X-Holdfast-Id, both with a MAC nobody else can make (contract mail.md §6).
 */
export type ProvenRecipient = { messageId: Id<'msg'>; recipientIndex: number };

const verpMacLength = 10;
const idMacLength = 16;
const verp = /^b\+([0-9a-z]{26})\.([0-9a-z]{1,4})\.([a-z2-7]{10})$/;

/** `b+<26 of the message id>.<recipient index base36>.<10 base32 of HMAC-SHA256>@<domain>`. */
export function envelopeSender({ messageId, recipientIndex }: { messageId: string; recipientIndex: number }, domain: string, secret: string): string {
  const tag = `${messageId.slice('msg_'.length)}.${recipientIndex.toString(36)}`;
  return `b+${tag}.${mac(secret, `verp:${tag}`, verpMacLength)}@${domain}`;
}

/** The recipient an envelope sender stands for, in any case, at any domain; null unless its MAC is right. */
export function readEnvelopeSender(address: string, secret: string): ProvenRecipient | null {
  const [, suffix = '', index = '', given = ''] = verp.exec(address.slice(0, Math.max(0, address.lastIndexOf('@'))).toLowerCase()) ?? [];
  const messageId = `msg_${suffix}`;
  if (!isId('msg', messageId) || !isMac(given, mac(secret, `verp:${suffix}.${index}`, verpMacLength))) return null;
  return { messageId, recipientIndex: parseInt(index, 36) };
}

/** Value of X-Holdfast-Id: `<messageId>.<mac>`. */
export function holdfastId(messageId: string, secret: string): string {
  return `${messageId}.${mac(secret, `id:${messageId}`, idMacLength)}`;
}

/** The message a header's value stands for; null unless its MAC is right. */
export function readHoldfastId(value: string, secret: string): Id<'msg'> | null {
  const [messageId, given = '', ...rest] = value.trim().toLowerCase().split('.');
  return isId('msg', messageId) && rest.length === 0 && isMac(given, mac(secret, `id:${messageId}`, idMacLength)) ? messageId : null;
}

/** 96 bits that are the same for every attempt and that no sender can foresee: the MIME boundary must not occur in the content. */
export function boundaryOf(messageId: string, secret: string): string {
  return createHmac('sha256', secret).update(`boundary:${messageId}`).digest('hex').slice(0, 24);
}

const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';

/** RFC 4648 base32 in lower case: it survives servers that change the case of a local part. */
function mac(secret: string, text: string, length: number): string {
  const octets = createHmac('sha256', secret).update(text).digest();
  return Array.from({ length }, (_, i) => {
    const bit = i * 5;
    const pair = octets.readUInt16BE(bit >> 3);
    return alphabet.charAt((pair >> (11 - (bit & 7))) & 31);
  }).join('');
}

function isMac(given: string, wanted: string): boolean {
  return given.length === wanted.length && timingSafeEqual(Buffer.from(given), Buffer.from(wanted));
}
