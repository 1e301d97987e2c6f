import { z } from 'zod';
import { operationsOf } from '../../http/operation';
import type { MailDeps } from '../deps';
import { receiveEvents } from '../provider-events';

const { signed } = operationsOf<MailDeps>();

const receiveMailEvents = signed({
  id: 'receiveMailEvents',
  method: 'post',
  path: '/api/mail/provider-events/:provider',
  summary: 'Take delivery, bounce and complaint events of a provider',
  description: 'Signed over the raw bytes. Events may come in any order and more than once; what cannot be matched to a message is kept for 72 hours.',
  tag: 'Mail',
  bodyMaxBytes: 1024 * 1024,
  answer: z.object({
    received: z.number().int(), duplicates: z.number().int(), unmatched: z.number().int(), ignored: z.number().int(),
  }),
  errors: ['invalid_signature', 'not_found', 'invalid_json', 'validation_error'],
  limits: ({ params }) => [{ rule: { name: 'mail-provider-events', limit: 1_000, periodSeconds: 60 }, key: params.provider }],
  handle: ({ deps, params, request }) => receiveEvents(deps, params.provider, request.rawBody, request.headers),
});

export const providerEventOperations = [receiveMailEvents];
