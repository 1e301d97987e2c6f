import { operationsOf, Reply } from '../../http/operation';
import type { GatewayDeps } from '../deps';
import { excludeEvent, pageEvents, readEvent } from '../events';
import { loadRuleFacts } from '../rule-catalogue';
import type { WrittenPolicy } from '../policies';
import { eventAnswer, eventsAnswer, eventsQuery, excludeBody, policyWrittenAnswer, summaryAnswer, summaryQuery } from '../schemas';
import { readSummary } from '../summary';
import { viewEvent } from '../view';
import { base, etagOf, showWritten, tag, writeRate } from './shown';

const { project } = operationsOf<GatewayDeps>();
const summaryRate = { name: 'gateway-summary', limit: 60, periodSeconds: 60 };
const hoursDefault = 24;

const listGatewayEvents = project('dns:read')({
  id: 'listGatewayEvents', method: 'get', path: `${base}/events`, tag,
  summary: 'What the gateway did, newest first',
  description: 'Clean requests are counted in the summary and make no event. Alike requests of one minute share an event; count tells how many.',
  query: eventsQuery, answer: eventsAnswer, errors: ['invalid_cursor'],
  handle: async ({ deps, caller, params: { zoneId }, query }) => {
    const { items, range: { from, to, retentionFrom }, ...page } = await pageEvents(deps, { orgId: caller.org.id, projectId: caller.project.id, zoneId }, query);
    return { events: items.map(viewEvent), ...page, range: { from: from.toISOString(), to: to.toISOString(), retentionFrom: retentionFrom.toISOString() } };
  },
});

const getGatewayEvent = project('dns:read')({
  id: 'getGatewayEvent', method: 'get', path: `${base}/events/:eventId`, tag,
  summary: 'An event, with the rules that matched',
  description: 'The id stands in the header X-Gateway-Event of the answer the client got.',
  answer: eventAnswer,
  handle: async ({ deps, caller, params: { zoneId, eventId } }) => (
    { event: viewEvent(await readEvent(deps, { orgId: caller.org.id, projectId: caller.project.id, zoneId }, eventId)) }
  ),
});

const excludeGatewayEvent = project('dns:policy')({
  id: 'excludeGatewayEvent', method: 'post', path: `${base}/events/:eventId/exclude`, tag,
  summary: 'Take what an event suggests out of a rule',
  description: 'For false positives: a new version of the policy has the suggested exclusion.',
  body: excludeBody, bodyOptional: true, answer: policyWrittenAnswer, errors: ['invalid_state', 'precondition_failed', 'quota_exceeded', 'service_suspended', 'unsafe_regex', 'rule_set_unavailable'],
  limits: ({ caller, params }) => [{ rule: writeRate, key: `${caller.project.id}/${params.zoneId}` }],
  handle: async ({ deps, caller, params: { zoneId, eventId }, body: { note = null, expiresAt = null }, cause, request: { ifMatch, ip }, transact }) => {
    const event = await readEvent(deps, { orgId: caller.org.id, projectId: caller.project.id, zoneId }, eventId);
    const ruleFacts = await loadRuleFacts(deps.policyEvaluator);
    const written = await transact<WrittenPolicy>((tx) => excludeEvent(tx, { ...deps, ruleFacts }, { caller, zoneId, cause, ifMatch, dryRun: false, ip }, { event, note, expiresAt }));
    return new Reply(await showWritten(deps, written, false), etagOf(written.row?.version ?? 0));
  },
});

const getGatewaySummary = project('dns:read')({
  id: 'getGatewaySummary', method: 'get', path: `${base}/summary`, tag,
  summary: 'Requests of the last hours, counted',
  description: 'Every request is in exactly one of the counters; every total is the sum over series.',
  query: summaryQuery, answer: summaryAnswer,
  limits: ({ caller, params }) => [{ rule: summaryRate, key: `${caller.project.id}/${params.zoneId}` }],
  handle: async ({ deps, caller, params: { zoneId }, query: { hours = hoursDefault } }) => ({ summary: await readSummary(deps, caller.project.id, zoneId, hours) }),
});

export const eventOperations = [listGatewayEvents, getGatewayEvent, excludeGatewayEvent, getGatewaySummary];
