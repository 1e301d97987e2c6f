import { z } from 'zod';
import { operationsOf, Reply } from '../../http/operation';
import type { MailDeps } from '../deps';
import { sendBody } from '../schemas/send';
import { acceptSend } from '../send';

const { scoped } = operationsOf<MailDeps>();

const bodyMaxBytes = 12 * 1024 * 1024;

export const sendAnswer = z.object({
  messageId: z.string().meta({ description: '`msg_…`' }),
  status: z.literal('queued'),
});

const sendMail = scoped('mail:send')({
  id: 'sendMail',
  method: 'post',
  path: '/api/mail/send',
  aliases: ['/mail/send'],
  summary: 'Send a mail',
  description: 'Durable when the answer is there. `Location` and `Link` name the message, whose status tells what becomes of it.',
  tag: 'Mail',
  body: sendBody,
  bodyMaxBytes,
  answer: sendAnswer,
  status: 202,
  idempotent: 'own',
  errors: ['service_suspended', 'domain_not_allowed', 'domain_not_verified', 'message_too_large', 'too_many_pending', 'quota_exceeded', 'spend_limit_reached'],
  limits: ({ caller }) => [{
    rule: { name: 'mail-send', limit: caller.sendsPerSecond, periodSeconds: 1, burst: caller.sendsPerSecond * 3 }, key: caller.serviceId,
  }],
  async handle({ deps, caller, body, once }) {
    const { kept, replayed } = await acceptSend(deps, caller, body, once);
    return new Reply(sendAnswer.parse(kept.body), { headers: { ...kept.headers, ...(replayed ? { 'Idempotency-Replayed': 'true' } : {}) } });
  },
});

export const sendOperations = [sendMail];
