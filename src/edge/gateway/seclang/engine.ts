import type { ManagedVerdict, RequestFacts, ResponseFacts, RuleEngine } from '../../../gateway/ports';
import type { Policy } from '../../../gateway/schemas';
import { Evaluation } from './evaluate';
import type { RuleSet } from './rule-set';
import { settingsOf } from './settings';
import { Texts } from './text';
import { Transaction } from './transaction';
import { verdictOf } from './verdict';

export type Managed = Policy['managedRules'];
export type Sets = Readonly<Partial<Record<'crs' | 'base', RuleSet>>>;

/** What is inspected: a request, or with `response` what the origin answered to it. `now` is the wall clock in milliseconds. */
export interface Inspected {
  readonly facts: RequestFacts;
  readonly response: ResponseFacts | null;
  readonly settings: Managed;
  readonly now: number;
}

/** Where evaluation goes on when it takes longer than 10 ms, and for large bodies. */
export type Elsewhere = (inspected: Inspected) => Promise<ManagedVerdict>;

export interface EngineOptions {
  readonly sets: Sets;
  /** Null: all is done here, within `budgetMs`. */
  readonly elsewhere: Elsewhere | null;
  /** Default 250 ms. */
  readonly budgetMs?: number;
}

/** Bodies above this many bytes, and compressed ones, are not inspected on the event loop. */
const largeBody = 16_384;
const inlineMs = 10;
export const budgetMsDefault = 250;

/** The rule engine over loaded sets (contract gateway.md §4.7). Never throws: what fails is the verdict's `fault`. Matched values are not masked. */
export function createRuleEngine({ sets, elsewhere, budgetMs = budgetMsDefault }: EngineOptions): RuleEngine {
  const setOf = (name: 'crs' | 'base') => sets[name] ?? sets.base;
  const run = (inspected: Inspected): ManagedVerdict | Promise<ManagedVerdict> => {
    if (!elsewhere) return inspectWithin(sets, inspected, budgetMs);
    if (inspected.settings.enabled && isLong(inspected)) return elsewhere(inspected);
    const verdict = inspectWithin(sets, inspected, inlineMs);
    return verdict.fault === 'budget' ? elsewhere(inspected) : verdict;
  };
  return {
    versionOf: (name) => setOf(name)?.version ?? null,
    describe: (name) => setOf(name)?.descriptions ?? [],
    inspectRequest: (facts, settings, now) => run({ facts, response: null, settings, now }),
    inspectResponse: (facts, response, settings, now) => run({ facts, response, settings, now }),
  };
}

/** A verdict without matches. */
export function emptyVerdict({ response, settings }: Inspected, fault: ManagedVerdict['fault']): ManagedVerdict {
  const threshold = response ? settings.outboundThreshold : settings.inboundThreshold;
  return { score: 0, threshold, blocked: false, deciding: null, matches: [], suggestion: null, fault };
}

function isLong({ facts, response }: Inspected): boolean {
  const body = response ? response.body : facts.body;
  if (!body) return false;
  return body.length > largeBody || (!response && facts.headers.some(([name, value]) => name === 'content-encoding' && value !== 'identity'));
}

/** The verdict of what could be found out in so many milliseconds. Never throws. */
export function inspectWithin(sets: Sets, inspected: Inspected, ms: number): ManagedVerdict {
  const set = sets[inspected.settings.ruleSet] ?? sets.base;
  if (!inspected.settings.enabled) return emptyVerdict(inspected, null);
  if (!set) return emptyVerdict(inspected, 'unavailable');
  try {
    return evaluate(set, inspected, performance.now() + ms);
  } catch {
    return emptyVerdict(inspected, 'exception');
  }
}

function evaluate(set: RuleSet, { facts, response, settings, now }: Inspected, deadline: number): ManagedVerdict {
  const state = new Transaction(facts, new Texts(set.repeated));
  state.response = response;
  prepare(state, settings);
  const program = set.program({ blocking: settings.paranoiaLevel, detection: settings.detectionParanoiaLevel });
  const evaluation = new Evaluation(state, { operators: set.operators, program, settings: settingsOf(settings), now, deadline });
  const finished = response ? runResponse(evaluation) : runRequest(evaluation, state);
  return verdictOf(evaluation, facts, settings, { outbound: response !== null, finished });
}

function runRequest(evaluation: Evaluation, state: Transaction): boolean {
  if (!evaluation.phase(1)) return false;
  if (evaluation.denied) return true;
  state.readBody();
  return evaluation.phase(2);
}

/** Phase 1 runs again for what it sets; only what the answer matches counts. */
function runResponse(evaluation: Evaluation): boolean {
  if (!evaluation.phase(1)) return false;
  evaluation.matches.length = 0;
  evaluation.denied = false;
  return evaluation.phase(3) && evaluation.phase(4) && evaluation.phase(5);
}

const methods = 'GET HEAD POST OPTIONS PUT PATCH DELETE';
/** `tx.allowed_request_content_type`, as the Core Rule Set writes it. */
export const allowedContentTypes = [
  'application/x-www-form-urlencoded', 'multipart/form-data', 'multipart/related', 'text/xml', 'application/xml', 'application/soap+xml', 'application/json', 'application/cloudevents+json', 'application/cloudevents-batch+json',
  'application/json-patch+json', 'application/merge-patch+json', 'application/vnd.api+json', 'application/ld+json', 'application/problem+json', 'application/activity+json', 'application/geo+json', 'application/hal+json', 'application/fhir+json',
  'application/csp-report', 'application/reports+json', 'application/x-ndjson', 'application/graphql', 'text/plain', 'text/csv', 'text/calendar', 'application/octet-stream', 'application/pdf', 'application/zip', 'application/gzip',
  'application/protobuf', 'application/x-protobuf', 'application/grpc', 'application/grpc+proto', 'application/grpc-web', 'application/grpc-web+proto', 'application/grpc-web-text', 'application/offset+octet-stream',
  'image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif', 'audio/mpeg', 'audio/webm', 'video/mp4', 'video/webm',
].map((type) => `|${type}|`).join(' ');

/** What `crs-setup.conf` would set. Methods and content types are those of ordinary APIs (docs/decisions/0221, 0223). */
function prepare({ tx }: Transaction, settings: Managed): void {
  tx.set('crs_setup_version', '400');
  tx.set('paranoia_level', String(settings.paranoiaLevel));
  tx.set('blocking_paranoia_level', String(settings.paranoiaLevel));
  tx.set('executing_paranoia_level', String(settings.detectionParanoiaLevel));
  tx.set('detection_paranoia_level', String(settings.detectionParanoiaLevel));
  tx.set('inbound_anomaly_score_threshold', String(settings.inboundThreshold));
  tx.set('outbound_anomaly_score_threshold', String(settings.outboundThreshold));
  tx.set('allowed_methods', methods);
  tx.set('allowed_request_content_type', allowedContentTypes);
}
