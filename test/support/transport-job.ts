import { newId } from '../../src/core/ids';
import type { TransportJob } from '../../src/mail/ports';

/** One mail for one recipient, with lines that test the wire: dots, long ones, 8 bits encoded. */
export function transportJob(change: Partial<TransportJob> = {}): TransportJob {
  const messageId = newId('msg');
  const recipientId = newId('rcp');
  const recipient = change.recipient ?? 'x@y.test';
  const text = '.a line with a dot\r\n..two\r\n.\r\nend';
  return {
    messageId, recipientId, attempt: 1, idempotencyKey: recipientId, envelopeFrom: 'b+tag@bounce.acme.test', recipient,
    mime: Buffer.from(`From: a@acme.test\r\nTo: ${recipient}\r\nSubject: Hello\r\nMessage-ID: <${messageId}@acme.test>\r\n\r\n${text}\r\n`),
    parts: {
      from: { name: 'Acme', address: 'a@acme.test' }, to: [{ name: '', address: recipient }], cc: [], replyTo: { name: '', address: 'r@acme.test' }, subject: 'Hello', text, html: '<p>Hi</p>',
      date: new Date(0), rfcMessageId: `<${messageId}@acme.test>`, holdfastId: `${messageId}.mac`,
    },
    ...change,
  };
}
