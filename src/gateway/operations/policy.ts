import { operationsOf, Reply } from '../../http/operation';
import type { GatewayDeps } from '../deps';
import { completePolicy, pageVersions, readPolicy, readVersionOf, replacePolicy, type WrittenPolicy } from '../policies';
import { loadRuleFacts } from '../rule-catalogue';
import { pagedQuery, policyAnswer, policyBody, policyWrittenAnswer, putQuery, versionsAnswer } from '../schemas';
import { viewPolicy } from '../view';
import { base, bodyMaxBytes, etagOf, showWritten, tag, writeRate } from './shown';

const { project } = operationsOf<GatewayDeps>();

const getGatewayPolicy = project('dns:read')({
  id: 'getGatewayPolicy', method: 'get', path: base, tag,
  summary: 'The policy of a zone',
  description: 'A zone that was never written answers the default, with version 0.',
  answer: policyAnswer,
  handle: async ({ deps, caller, params: { zoneId } }) => {
    const { zone, row, policy } = await readPolicy(deps, caller.project.id, zoneId);
    return new Reply({ policy: viewPolicy(zone, row, policy) }, etagOf(row?.version ?? 0));
  },
});

const putGatewayPolicy = project('dns:policy')({
  id: 'putGatewayPolicy', method: 'put', path: base, tag,
  summary: 'Replace the policy of a zone',
  description: 'The body is the whole policy: what is missing takes its default. Equal content makes no new version. The answer tells how many gateway workers judge by it already.',
  query: putQuery, body: policyBody, bodyMaxBytes, answer: policyWrittenAnswer,
  errors: ['unsafe_regex', 'rule_set_unavailable', 'precondition_failed', 'quota_exceeded', 'service_suspended'],
  limits: ({ caller, params }) => [{ rule: writeRate, key: `${caller.project.id}/${params.zoneId}` }],
  handle: async ({ deps, caller, params: { zoneId }, query: { dryRun = false }, body, cause, request: { ifMatch, ip }, transact }) => {
    const ruleFacts = await loadRuleFacts(deps.policyEvaluator);
    const written = await transact<WrittenPolicy>((tx) => replacePolicy(tx, { ...deps, ruleFacts }, { caller, zoneId, cause, ifMatch, dryRun, ip }, () => completePolicy(body, ruleFacts)));
    return new Reply(await showWritten(deps, written, dryRun), etagOf(written.row?.version ?? 0));
  },
});

const listGatewayPolicyVersions = project('dns:read')({
  id: 'listGatewayPolicyVersions', method: 'get', path: `${base}/versions`, tag,
  summary: 'Versions of the policy, newest first',
  description: 'The last hundred are kept.',
  query: pagedQuery, answer: versionsAnswer, errors: ['invalid_cursor'],
  handle: async ({ deps, caller, params: { zoneId }, query }) => {
    const { items, ...page } = await pageVersions(deps, caller.project.id, zoneId, query);
    return { versions: items.map(({ createdAt, ...version }) => ({ ...version, createdAt: createdAt.toISOString() })), ...page };
  },
});

const getGatewayPolicyVersion = project('dns:read')({
  id: 'getGatewayPolicyVersion', method: 'get', path: `${base}/versions/:version`, tag,
  summary: 'A former version of the policy',
  answer: policyAnswer,
  handle: async ({ deps, caller, params: { zoneId, version } }) => {
    const { zone, row, policy } = await readVersionOf(deps, caller.project.id, zoneId, version);
    return { policy: viewPolicy(zone, row, policy) };
  },
});

const restoreGatewayPolicyVersion = project('dns:policy')({
  id: 'restoreGatewayPolicyVersion', method: 'post', path: `${base}/versions/:version/restore`, tag,
  summary: 'Bring a former version back',
  description: 'It becomes a new version with the old content.',
  answer: policyWrittenAnswer, errors: ['unsafe_regex', 'rule_set_unavailable', 'precondition_failed', 'quota_exceeded', 'service_suspended'],
  limits: ({ caller, params }) => [{ rule: writeRate, key: `${caller.project.id}/${params.zoneId}` }],
  handle: async ({ deps, caller, params: { zoneId, version }, cause, request: { ifMatch, ip }, transact }) => {
    const ruleFacts = await loadRuleFacts(deps.policyEvaluator);
    const former = await readVersionOf(deps, caller.project.id, zoneId, version);
    const written = await transact<WrittenPolicy>((tx) => replacePolicy(tx, { ...deps, ruleFacts }, { caller, zoneId, cause, ifMatch, dryRun: false, ip }, () => former.policy));
    return new Reply(await showWritten(deps, written, false), etagOf(written.row?.version ?? 0));
  },
});

export const policyOperations = [getGatewayPolicy, putGatewayPolicy, listGatewayPolicyVersions, getGatewayPolicyVersion, restoreGatewayPolicyVersion];
