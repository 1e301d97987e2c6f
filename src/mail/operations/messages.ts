import { operationsOf } from '../../http/operation';
import type { MailDeps } from '../deps';
import { viewMessageRow, viewStats } from '../message-view';
import { cancelMessage, pageMessages, showContent, showMessage } from '../messages';
import { cancelledAnswer, listMessagesAnswer, listMessagesQuery, messageAnswer, messageQuery, messageWithContentAnswer, statsAnswer, statsQuery } from '../schemas/messages';
import { getService } from '../services';
import { readHours } from '../store/messages';

const { project, scoped } = operationsOf<MailDeps>();
const tag = 'Mail';

const getMessage = scoped('mail:read')({
  id: 'getMailMessageByKey', method: 'get', path: '/api/mail/messages/:id', aliases: ['/mail/messages/:id'], tag,
  summary: 'What became of a mail', description: "Of the key's own service.",
  answer: messageAnswer, errors: ['not_found'],
  async handle({ deps, caller, params }) {
    const message = await showMessage(deps.db.prisma, { serviceId: caller.serviceId }, params.id);
    return { messageId: message.id, status: message.status, message };
  },
});

const listMessagesByKey = scoped('mail:read')({
  id: 'listMailMessagesByKey', method: 'get', path: '/api/mail/messages', tag,
  summary: "Mails of the key's service, newest first",
  query: listMessagesQuery, answer: listMessagesAnswer, errors: ['invalid_cursor'],
  async handle({ deps, caller, query }) {
    const { items, ...page } = await pageMessages(deps, caller.serviceId, query);
    return { messages: items.map(viewMessageRow), ...page };
  },
});

const cancelByKey = scoped('mail:send')({
  id: 'cancelMailMessageByKey', method: 'post', path: '/api/mail/messages/:id/cancel', tag,
  summary: 'Stop a mail that waits',
  answer: cancelledAnswer, errors: ['not_found', 'invalid_state'],
  async handle({ deps, caller, params, transact }) {
    const scope = { serviceId: caller.serviceId };
    const answer = await transact(async (tx) => {
      const cancelled = await cancelMessage(tx, scope, params.id, null);
      const message = await showMessage(tx, scope, params.id);
      return { messageId: message.id, status: message.status, message, cancelled };
    });
    deps.wakeDelivery(params.id);
    return answer;
  },
});

const listMessages = project('mail:read')({
  id: 'listMailMessages', method: 'get', path: '/mail/services/:mailServiceId/messages', tag,
  summary: 'Mails of a service, newest first',
  query: listMessagesQuery, answer: listMessagesAnswer, errors: ['invalid_cursor', 'not_found'],
  async handle({ deps, caller, params, query }) {
    const { id } = await getService(deps, caller.project.id, params.mailServiceId);
    const { items, ...page } = await pageMessages(deps, id, query);
    return { messages: items.map(viewMessageRow), ...page };
  },
});

const getProjectMessage = project('mail:read')({
  id: 'getMailMessage', method: 'get', path: '/mail/messages/:messageId', tag,
  summary: 'What became of a mail', description: 'With `include=content` also its bodies, for who may write mail, as long as they are kept.',
  query: messageQuery, answer: messageWithContentAnswer, errors: ['not_found'],
  async handle({ deps, caller, params, query }) {
    const message = await showMessage(deps.db.prisma, { projectId: caller.project.id }, params.messageId);
    const content = query.include === 'content' ? { content: await showContent(deps.db.prisma, caller.role, message.id) } : {};
    return { messageId: message.id, status: message.status, message, ...content };
  },
});

const cancelProjectMessage = project('mail:write')({
  id: 'cancelMailMessage', method: 'post', path: '/mail/messages/:messageId/cancel', tag,
  summary: 'Stop a mail that waits',
  answer: cancelledAnswer, errors: ['not_found', 'invalid_state'],
  async handle({ deps, caller, params, cause, transact }) {
    const scope = { projectId: caller.project.id };
    const answer = await transact(async (tx) => {
      const cancelled = await cancelMessage(tx, scope, params.messageId, { orgId: caller.org.id, projectId: caller.project.id, cause });
      const message = await showMessage(tx, scope, params.messageId);
      return { messageId: message.id, status: message.status, message, cancelled };
    });
    deps.wakeDelivery(params.messageId);
    return answer;
  },
});

const getStats = project('mail:read')({
  id: 'getMailStats', method: 'get', path: '/mail/services/:mailServiceId/stats', tag,
  summary: 'What was accepted and what became of it, by hour',
  query: statsQuery, answer: statsAnswer, errors: ['not_found'],
  async handle({ deps, caller, params, query }) {
    const { id } = await getService(deps, caller.project.id, params.mailServiceId);
    return { stats: viewStats(await readHours(deps.db.prisma, id, query.hours)) };
  },
});

export const messageOperations = [getMessage, listMessagesByKey, cancelByKey, listMessages, getProjectMessage, cancelProjectMessage, getStats];
