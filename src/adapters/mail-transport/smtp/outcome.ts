import type { Reply, TransportResult } from '../../../mail/ports';
import { diagnosticOf } from '../../../mail/rules/replies';
import { SmtpFault, type SmtpReply } from './line';

/** What a conversation says of the mail, by how far it had come (contract mail.md §4.5). Rethrows what is no SMTP fault. */
export function faultResult(error: unknown, where: Pick<Reply, 'mxHost' | 'tls'>): TransportResult {
  if (!(error instanceof SmtpFault)) throw error;
  const { phase, reply, message } = error;
  if (reply === null) return { outcome: phase === 'dot' ? 'interrupted' : 'deferred', text: diagnosticOf(message) ?? '', ...where };
  const final = reply.code >= 500 && (phase === 'rcpt' || phase === 'data' || phase === 'dot');
  return { outcome: final ? 'refused' : 'deferred', ...spoken(reply), ...where };
}

/** A reply's code, enhanced code (RFC 3463) and words. */
export function spoken({ code, lines }: SmtpReply): Pick<Reply, 'code' | 'enhancedCode' | 'text'> {
  const enhanced = /^([245]\.\d{1,3}\.\d{1,3})(?:\s|$)/;
  const enhancedCode = lines.map((line) => enhanced.exec(line)?.[1]).find((found) => found?.startsWith(String(code).charAt(0)));
  const words = lines.map((line) => line.replace(enhanced, '').trim()).filter(Boolean).join(' ');
  return { code, ...(enhancedCode ? { enhancedCode } : {}), text: diagnosticOf(words) ?? '' };
}
