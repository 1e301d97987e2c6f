import type { Decision, FinishedRequest, RequestFacts } from '../../gateway/ports';
import type { Head } from './hygiene';
import type { Judge } from './judge';
import type { RequestBody } from './request-body';
import type { ClientRequest, Responder } from './responder';
import type { ServedHost } from './zone-table';

export const clean: Decision = { outcome: 'clean', wouldHave: null, source: null, ruleId: null, ruleName: null, refusal: null, managed: null, steps: [] };

/** A refusal that no policy decides: of source `protocol` or `transport`, in every mode. */
export function refusal(source: 'protocol' | 'transport', what: string, status: number, code: string): Decision {
  const ruleId = `${source}.${what}`;
  return {
    outcome: 'block', wouldHave: null, source, ruleId, ruleName: null, refusal: { status, code, retryAfterSeconds: null, page: 'refused' }, managed: null,
    steps: [{ stage: source, ruleId, result: 'block' }],
  };
}

type Options = {
  request: ClientRequest; responder: Responder; head: Head; facts: RequestFacts; host: ServedHost; judge: Judge; hsts: string | null;
  expects: boolean; upgrades: boolean; startedAt: number;
};

/** One request to a served host, from its head to the end of its answer. Judged by one version of the policy, whatever comes meanwhile. */
export class Visit {
  decision: Decision = clean;
  eventId: string | null = null;
  originStatus: number | null = null;
  body: RequestBody | null = null;
  readonly facts: RequestFacts;
  /** With the part of the body that was inspected. */
  whole: RequestFacts;
  readonly request: ClientRequest;
  readonly responder: Responder;
  readonly head: Head;
  readonly host: ServedHost;
  readonly judge: Judge;
  readonly hsts: string | null;
  /** The origin is asked to send 100 first. */
  expects: boolean;
  readonly upgrades: boolean;
  /** 101 has been sent: the answer is a tunnel. */
  tunnelled = false;
  private readonly startedAt: number;

  constructor({ request, responder, head, facts, host, judge, hsts, expects, upgrades, startedAt }: Options) {
    this.request = request;
    this.responder = responder;
    this.head = head;
    this.facts = facts;
    this.whole = facts;
    this.host = host;
    this.judge = judge;
    this.hsts = hsts;
    this.expects = expects;
    this.upgrades = upgrades;
    this.startedAt = startedAt;
  }

  finished(): FinishedRequest {
    return {
      facts: this.facts, decision: this.decision, policyVersion: this.judge.version, mode: this.judge.policy.mode, ruleSetVersion: this.judge.ruleSetVersion,
      status: this.tunnelled ? 101 : this.responder.isStarted ? this.responder.status : 499, originStatus: this.originStatus,
      durationMs: performance.now() - this.startedAt, bytesIn: this.body?.bytes ?? 0,
    };
  }
}
