import { readPage, unpagedMax } from '../../core/page';
import { operationsOf } from '../../http/operation';
import type { GatewayDeps } from '../deps';
import { evaluateRequest } from '../evaluation';
import { listHosts, type HostView } from '../hosts';
import { readPolicy } from '../policies';
import type { RuleDescription } from '../ports';
import { filterRules } from '../rule-catalogue';
import { evaluateBody, evaluationAnswer, hostsAnswer, pagedQuery, rulesAnswer, rulesQuery } from '../schemas';
import { base, bodyMaxBytes, tag } from './shown';

const { project } = operationsOf<GatewayDeps>();
const evaluateRate = { name: 'gateway-evaluate', limit: 10, periodSeconds: 60 };

const evaluateGatewayRequest = project('dns:policy')({
  id: 'evaluateGatewayRequest', method: 'post', path: `${base}/evaluate`, tag,
  summary: 'Judge a request without sending it',
  description: 'By the policy in force or by a draft. Nothing is stored and no rate limit counts it.',
  body: evaluateBody, bodyMaxBytes, answer: evaluationAnswer, errors: ['unsafe_regex', 'rule_set_unavailable', 'deadline_exceeded'],
  limits: ({ caller, params }) => [{ rule: evaluateRate, key: `${caller.project.id}/${params.zoneId}` }],
  handle: async ({ deps, caller, params: { zoneId }, body }) => ({ evaluation: await evaluateRequest(deps, caller.project.id, zoneId, body) }),
});

const listGatewayRules = project('dns:read')({
  id: 'listGatewayRules', method: 'get', path: `${base}/rules`, tag,
  summary: "Rules of the policy's rule set",
  query: rulesQuery, answer: rulesAnswer, errors: ['invalid_cursor'],
  handle: async ({ deps, caller, params: { zoneId }, query: { limit, cursor, ...wanted } }) => {
    const { policy: { managedRules: { ruleSet } } } = await readPolicy(deps, caller.project.id, zoneId);
    const found = filterRules(await deps.policyEvaluator.describe(ruleSet), wanted);
    const { items, ...page } = await readPage<RuleDescription>(deps.cursors, { list: 'gateway.rules', zoneId, ruleSet, wanted }, { limit, cursor }, {
      limitDefault: unpagedMax, keyOf: ({ id }) => [id], fetch: async (after, count) => found.slice(after ? found.findIndex(({ id }) => id === after[0]) + 1 : 0).slice(0, count),
    });
    return { rules: items.map(({ tags, ...rule }) => ({ ...rule, tags: [...tags] })), ...page };
  },
});

const listGatewayHosts = project('dns:read')({
  id: 'listGatewayHosts', method: 'get', path: `${base}/hosts`, tag,
  summary: 'Proxied names, with their origins and certificates',
  query: pagedQuery, answer: hostsAnswer, errors: ['invalid_cursor'],
  handle: async ({ deps, caller, params: { zoneId }, query }) => {
    const hosts = await listHosts(deps, caller.project.id, zoneId);
    const { items, ...page } = await readPage<HostView>(deps.cursors, { list: 'gateway.hosts', zoneId }, query, {
      limitDefault: unpagedMax, keyOf: ({ fqdn }) => [fqdn], fetch: async (after, count) => hosts.filter(({ fqdn }) => !after || fqdn > String(after[0])).slice(0, count),
    });
    return { hosts: items, ...page };
  },
});

export const inspectionOperations = [evaluateGatewayRequest, listGatewayRules, listGatewayHosts];
