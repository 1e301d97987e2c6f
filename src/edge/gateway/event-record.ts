import { timeOfId } from '../../core/ids';
import type { FinishedRequest } from '../../gateway/ports';
import type { EventRecord } from '../../gateway/store/batches';
import { maskedMatch, maskedPath, maskedProse, maskedReferer, maskedText, maskNumbers, queryOutline, shownSuggestion } from './mask';
import { unicode } from './request-view';

const rulesMax = 10;
const textMax = 512;

/** One finished request as it is written down: nothing secret is in it any more. */
export function eventRecord(request: FinishedRequest, id: `gwe_${string}`): EventRecord {
  const { facts, decision, mode } = request;
  const { managed } = decision;
  const isManaged = decision.source === 'managed';
  return {
    id, zone_id: facts.zoneId, created_at: timeOfId(id).toISOString(), updated_at: new Date(Math.max(timeOfId(id).getTime(), facts.receivedAt)).toISOString(), count: 1,
    action: decision.outcome === 'clean' ? 'log' : decision.outcome, would_have: decision.wouldHave, mode, policy_version: request.policyVersion, rule_set_version: request.ruleSetVersion,
    source: decision.source ?? 'protocol', rule_id: decision.ruleId, rule_name: decision.ruleName === null ? null : maskedText(decision.ruleName, 256),
    rules: (managed?.matches ?? []).slice(0, rulesMax).map((match) => ({
      ...match, message: maskedText(match.message, 256), tags: match.tags.slice(0, 20).map((tag) => maskedText(tag, 128)), variable: maskedText(match.variable, 128), matched: maskedMatch(match),
    })),
    anomaly_score: isManaged ? managed?.score ?? null : null, threshold: isManaged ? managed?.threshold ?? null : null,
    suggested_exclusion: isManaged && managed?.suggestion ? shownSuggestion(managed.suggestion) : null,
    ip: facts.clientIp.replace(/%.*/s, ''), country: facts.country, asn: facts.asn,
    request_id: facts.requestId, method: maskedText(facts.method, 32), scheme: facts.scheme, host: maskedText(facts.host, 255), path: maskedPath(facts.path), query: queryOutline(facts.rawQuery),
    http_version: facts.httpVersion, tls_version: facts.tlsVersion, user_agent: header(request, 'user-agent', (text) => maskedProse(text, textMax)), referer: header(request, 'referer', maskedReferer),
    status: request.status, origin_status: request.originStatus, duration_ms: Math.round(request.durationMs * 1_000) / 1_000, bytes_in: request.bytesIn,
  };
}

/** The keys an event is found by in the lists of the most frequent. */
export function topKeys({ facts, decision }: FinishedRequest): readonly (readonly [dimension: string, key: string | null])[] {
  const agent = facts.headers.find(([name]) => name === 'user-agent')?.[1];
  return [
    ['rule', decision.ruleId], ['ip', facts.clientIp], ['path', maskedPath(facts.path, 256)], ['country', facts.country], ['user_agent', agent === undefined ? null : maskedProse(maskNumbers(unicode(agent)), 256)],
  ];
}

function header({ facts }: FinishedRequest, wanted: string, shown: (text: string) => string): string | null {
  const found = facts.headers.find(([name]) => name === wanted);
  return found ? shown(unicode(found[1])) : null;
}
