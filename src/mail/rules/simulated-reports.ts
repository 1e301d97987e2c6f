import { createHash } from 'node:crypto';

/** What a report of the simulator speaks of. */
export type Reported = { envelopeFrom: string; recipient: string; mime: Buffer; at: Date };

/** A delivery status notification as a mail exchanger writes one (RFC 3464): CRLF lines. */
export function bounceReport(reported: Reported, enhancedCode: string): Buffer {
  const domain = domainOf(reported.recipient);
  const status = [
    `Reporting-MTA: dns; mx.${domain}`, `Arrival-Date: ${dateText(reported.at)}`, '',
    `Final-Recipient: rfc822; ${reported.recipient}`, 'Action: failed', `Status: ${enhancedCode}`, `Diagnostic-Code: smtp; 550 ${enhancedCode} Simulated late bounce`,
  ];
  return report(reported, { from: `MAILER-DAEMON@${domain}`, to: reported.envelopeFrom, subject: 'Undelivered Mail Returned to Sender', type: 'delivery-status' }, [
    ['text/plain; charset=us-ascii', ['This is the mail system.', '', `<${reported.recipient}>: 550 ${enhancedCode} Simulated late bounce`]], ['message/delivery-status', status],
  ]);
}

/** A complaint as a feedback loop sends it (RFC 5965). */
export function complaintReport(reported: Reported, feedbackAddress: string): Buffer {
  const domain = domainOf(reported.recipient);
  const feedback = [
    'Feedback-Type: abuse', 'User-Agent: Holdfast-Simulator/1.0', 'Version: 1', `Original-Mail-From: <${reported.envelopeFrom}>`, `Original-Rcpt-To: <${reported.recipient}>`,
    `Arrival-Date: ${dateText(reported.at)}`, `Reporting-MTA: dns; mx.${domain}`,
  ];
  return report(reported, { from: `feedback@${domain}`, to: feedbackAddress, subject: 'Complaint about a message from you', type: 'feedback-report' }, [
    ['text/plain; charset=us-ascii', ['This is an email abuse report for an email message received on the date below.']], ['message/feedback-report', feedback],
  ]);
}

type Heading = { from: string; to: string; subject: string; type: 'delivery-status' | 'feedback-report' };

function report({ mime, at, recipient }: Reported, { from, to, subject, type }: Heading, parts: readonly (readonly [string, readonly string[]])[]): Buffer {
  const headers = mime.toString('latin1', 0, Math.max(0, mime.indexOf('\r\n\r\n')));
  const boundary = `=_report_${createHash('sha256').update(mime).update(recipient).digest('hex').slice(0, 20)}`;
  const head = [
    `From: <${from}>`, `To: <${to}>`, `Subject: ${subject}`, `Date: ${dateText(at)}`, 'Auto-Submitted: auto-replied', 'MIME-Version: 1.0',
    `Content-Type: multipart/report; report-type=${type}; boundary="${boundary}"`, '',
  ];
  const body = [...parts, ['text/rfc822-headers', [headers]] as const].flatMap(([contentType, lines]) => [`--${boundary}`, `Content-Type: ${contentType}`, '', ...lines, '']);
  return Buffer.from([...head, ...body, `--${boundary}--`, ''].join('\r\n'), 'latin1');
}

function domainOf(address: string): string {
  return address.slice(address.lastIndexOf('@') + 1);
}

function dateText(at: Date): string {
  return at.toUTCString().replace('GMT', '+0000');
}
