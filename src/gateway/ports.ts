import type { Policy } from './schemas';

/** A request as every stage of the pipeline and the rule engine see it. Names and values are latin1 byte strings unless said otherwise. */
export interface RequestFacts {
  readonly zoneId: string;
  readonly requestId: string;
  /** Milliseconds of the wall clock. */
  readonly receivedAt: number;
  readonly clientIp: string;
  readonly country: string | null;
  readonly asn: number | null;
  readonly isVerifiedBot: boolean;
  readonly method: string;
  readonly scheme: 'http' | 'https';
  /** Lower case, without port. */
  readonly host: string;
  /** As it came, without the query: what is forwarded. */
  readonly rawPath: string;
  /** Decoded once, with dot segments and repeated slashes removed (contract gateway.md §4.1): what rules compare. */
  readonly path: string;
  /** Without the question mark; empty when there is none. */
  readonly rawQuery: string;
  readonly httpVersion: '1.0' | '1.1' | '2';
  readonly tlsVersion: '1.2' | '1.3' | null;
  /** In order, names in lower case. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly contentLength: number | null;
  /** What is inspected of the body: all of it, or its first `maxBodyBytes`; null when there is none. */
  readonly body: Buffer | null;
  readonly bodyComplete: boolean;
}

export interface ResponseFacts {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer | null;
}

/** A rule that matched; `matched` is masked and at most 128 characters. */
export interface RuleMatch {
  readonly id: string;
  readonly message: string;
  readonly severity: string | null;
  readonly score: number;
  readonly paranoiaLevel: number;
  readonly tags: readonly string[];
  readonly variable: string;
  readonly matched: string;
}

export interface SuggestedExclusion {
  readonly ruleId: string;
  readonly target: string;
  readonly pathPrefix: string | null;
}

/** What the managed rules say. `fault`: the engine could not finish (`budget` time spent, `exception`, `unavailable` rule set missing). */
export interface ManagedVerdict {
  readonly score: number;
  readonly threshold: number;
  readonly blocked: boolean;
  /** The rule named in the event: of the highest severity, the first in order. Null when nothing matched. */
  readonly deciding: RuleMatch | null;
  readonly matches: readonly RuleMatch[];
  readonly suggestion: SuggestedExclusion | null;
  readonly fault: 'budget' | 'exception' | 'unavailable' | null;
}

export interface RuleDescription {
  readonly id: string;
  readonly message: string;
  readonly severity: string | null;
  readonly paranoiaLevel: number;
  readonly phase: number;
  readonly tags: readonly string[];
}

/** The rule engine: rule lists are compiled once per (set, levels) and shared; settings of a zone are data. */
export interface RuleEngine {
  /** E.g. `crs-3.3.4`, `base-1`. */
  versionOf(ruleSet: 'crs' | 'base'): string | null;
  describe(ruleSet: 'crs' | 'base'): readonly RuleDescription[];
  /** Synchronous while it is quick; a promise once evaluation moves to the thread pool (after 10 ms, or for bodies over 16 KiB). */
  inspectRequest(facts: RequestFacts, settings: Policy['managedRules'], now: number): ManagedVerdict | Promise<ManagedVerdict>;
  inspectResponse(facts: RequestFacts, response: ResponseFacts, settings: Policy['managedRules'], now: number): ManagedVerdict | Promise<ManagedVerdict>;
}

export const outcomes = ['block', 'rate_limit', 'challenge', 'challenge_failed', 'challenge_passed', 'monitor', 'log', 'allow'] as const;
export type Outcome = (typeof outcomes)[number];
export const sources = ['managed', 'custom', 'rate_limit', 'ip_list', 'geo', 'bot', 'challenge', 'transport', 'protocol', 'engine'] as const;
export type Source = (typeof sources)[number];

/** What the pipeline decided about one request, before the origin answered. */
export interface Decision {
  /** `clean` when nothing happened; the strongest outcome reached otherwise. */
  readonly outcome: Outcome | 'clean';
  readonly wouldHave: 'block' | 'rate_limit' | 'challenge' | null;
  readonly source: Source | null;
  readonly ruleId: string | null;
  readonly ruleName: string | null;
  /** What the client is answered instead of the origin's answer; null: forward. */
  readonly refusal: { readonly status: number; readonly code: string; readonly retryAfterSeconds: number | null; readonly page: 'refused' | 'challenge' } | null;
  readonly managed: ManagedVerdict | null;
  readonly steps: readonly { readonly stage: string; readonly ruleId: string | null; readonly result: string }[];
}

/** What is written down of one finished request; masked by whoever keeps it. */
export interface FinishedRequest {
  readonly facts: RequestFacts;
  readonly decision: Decision;
  readonly policyVersion: number;
  readonly mode: Policy['mode'];
  readonly ruleSetVersion: string | null;
  readonly status: number;
  readonly originStatus: number | null;
  readonly durationMs: number;
  readonly bytesIn: number;
}

/** A place where requests are counted and events kept. Never waits, never throws. */
export interface EventSink {
  /** The id for `X-Gateway-Event`, reserved before the answer goes out; null for clean requests. */
  reserve(facts: RequestFacts, decision: Decision): string | null;
  record(request: FinishedRequest, eventId: string | null): void;
}

/** `respond.put` returns when every live server answers the challenge. */
export interface ChallengeResponder {
  readonly method: 'dns01' | 'http01';
  put(fqdn: string, token: string, keyAuthorization: string): Promise<void>;
  remove(fqdn: string, token: string): Promise<void>;
}

export interface CertificateOrder {
  readonly id: string;
  readonly hostnames: readonly string[];
  readonly keyPem: string;
  readonly resumeUrl: string | null;
  /** Asked before an order is placed: a name may have few. Errors: TryLater. */
  mayOrder(): Promise<void>;
  /** An order was placed; kept before anything is done with it. */
  saveResumeUrl(url: string): Promise<void>;
  readonly respond: ChallengeResponder;
}

export interface CertificateIssuer {
  readonly name: 'self_signed' | 'acme';
  /** Names by which CAA records allow it; none: it does not look at CAA. */
  caaIdentities(): Promise<readonly string[]>;
  /** Errors: `certificate_rejected` is final; all else is tried again. */
  issue(order: CertificateOrder, signal: AbortSignal): Promise<{ chainPem: string }>;
}

export interface GeoLookup {
  readonly available: { readonly country: boolean; readonly asn: boolean };
  lookup(ip: string): { country: string | null; asn: number | null };
}

/** A request as somebody describes it, to be judged without being sent. */
export interface DescribedRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: readonly { readonly name: string; readonly value: string }[];
  readonly body: string | null;
  readonly ip: string;
  readonly country: string | null;
  readonly asn: number | null;
}

export interface Evaluation {
  readonly outcome: Decision['outcome'];
  readonly wouldHave: Decision['wouldHave'];
  readonly steps: Decision['steps'];
  readonly rules: readonly RuleMatch[];
  readonly anomalyScore: number | null;
  readonly durationMicros: number;
}

/** Rule sets as the API knows them, and the pipeline run apart from any traffic: no counters, nothing kept. */
export interface PolicyEvaluator {
  /** Versions of what the operator has loaded, e.g. `crs-3.3.4`; null: not loaded. */
  ruleSets(): Promise<{ readonly crs: string | null; readonly base: string | null }>;
  describe(ruleSet: 'crs' | 'base'): Promise<readonly RuleDescription[]>;
  /** Errors: `deadline_exceeded` after 1 s. */
  evaluate(zoneId: string, policy: Policy, request: DescribedRequest): Promise<Evaluation>;
  close(): Promise<void>;
}
