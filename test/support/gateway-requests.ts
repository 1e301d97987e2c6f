import type { FinishedRequest, ManagedVerdict, RequestFacts, RuleEngine, RuleMatch } from '../../src/gateway/ports';
import { policySchema, type Policy } from '../../src/gateway/schemas';
import { cleanDecision } from '../../src/edge/gateway/tally';

/** A browser's GET of `/`, with what a test changes of it. */
export function requestFacts(changes: Partial<RequestFacts> = {}): RequestFacts {
  return {
    zoneId: 'zone_1', requestId: 'req_1', receivedAt: Date.now(), clientIp: '198.51.100.7', country: null, asn: null, isVerifiedBot: false, method: 'GET', scheme: 'https', host: 'www.example.com',
    rawPath: '/', path: '/', rawQuery: '', httpVersion: '1.1', tlsVersion: '1.3', headers: [['user-agent', 'Mozilla/5.0'], ['accept', 'text/html,*/*;q=0.8']], contentLength: null, body: null, bodyComplete: true,
    ...changes,
  };
}

/** The policy that `written` stands for, with every default. */
export function policyOf(written: unknown): Policy {
  return policySchema.parse(written);
}

export function ruleMatch(changes: Partial<RuleMatch> = {}): RuleMatch {
  return { id: '942100', message: 'SQL injection', severity: 'CRITICAL', score: 5, paranoiaLevel: 1, tags: ['attack-sqli'], variable: 'ARGS:q', matched: '1 or 1=1', ...changes };
}

export const nothingFound: ManagedVerdict = { score: 0, threshold: 5, blocked: false, deciding: null, matches: [], suggestion: null, fault: null };

/** A rule engine at its port: it says of a request what `verdictOf` says. */
export function engineSaying(verdictOf: (facts: RequestFacts) => Partial<ManagedVerdict> = () => ({})): RuleEngine {
  return {
    versionOf: (set) => `${set}-1`, describe: () => [],
    inspectRequest: (facts) => ({ ...nothingFound, ...verdictOf(facts) }),
    inspectResponse: (facts) => ({ ...nothingFound, ...verdictOf(facts) }),
  };
}

export function finished(changes: Partial<FinishedRequest> = {}): FinishedRequest {
  return { facts: requestFacts(), decision: cleanDecision, policyVersion: 1, mode: 'block', ruleSetVersion: 'base-1', status: 200, originStatus: 200, durationMs: 3, bytesIn: 100, ...changes };
}
