import type { Decision, EventSink, FinishedRequest, RequestFacts, ResponseFacts } from '../../gateway/ports';
import type { Policy } from '../../gateway/schemas';

/** What a client is sent instead of the origin's answer. */
export type Page = { status: number; headers: readonly (readonly [name: string, value: string])[]; body: string };

/** One version of one zone's policy, ready to judge: stages 5–12 and 14 of the contract. Never throws: a fault is a decision. */
export interface Judge {
  readonly policy: Policy;
  readonly version: number;
  readonly ruleSetVersion: string | null;
  /** `readBody` gives the same facts with the part of the body that is inspected; it is asked only when a stage needs it. */
  judge(facts: RequestFacts, readBody?: () => Promise<RequestFacts>): Decision | Promise<Decision>;
  /** Whether the answer to a request that was judged is to be inspected. */
  inspectsAnswer(facts: RequestFacts): boolean;
  /** What an origin's answer adds to the decision on its request. */
  judgeResponse(facts: RequestFacts, decision: Decision, response: ResponseFacts): Decision | Promise<Decision>;
  /** The origin has answered: limits that count statuses count now. */
  answered(facts: RequestFacts, originStatus: number): void;
  /** What a client that is asked for a challenge gets. */
  challengePage(facts: RequestFacts, eventId: string | null): Page;
  /** The answering POST to `/.well-known/holdfast/challenge`, with its form; the decision says passed or failed, and refuses where there is no page. */
  answerChallenge(facts: RequestFacts): { page: Page | null; decision: Decision };
}

export type JudgedZone = { zoneId: string; version: number; policy: Policy };
/** Compiles a policy. Called when the first request of a version comes. */
export type MakeJudge = (zone: JudgedZone) => Judge;

export type { Decision, EventSink, FinishedRequest, RequestFacts, ResponseFacts };
