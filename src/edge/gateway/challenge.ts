import { createHash, createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Decision, RequestFacts } from '../../gateway/ports';
import type { Policy } from '../../gateway/schemas';
import { networkOf } from './address-set';
import { challengePage, challengeRefusal } from './challenge-page';
import type { Page } from './judge';
import type { RequestView } from './request-view';
import { cleanDecision } from './tally';

export const tokenLifeMs = 120_000;
const cookieName = 'hf_clearance';
const tokenForm = /^(\d{1,12})\.(\d{1,2})\.([\w-]{22})\.([\w-]{43})$/;
const cookieForm = /^(\d{1,12})\.([\w-]{43})$/;
const answerForm = /^[\w-]{1,64}$/;

/** Salts of tokens that were spent; all workers share one set, so that a token is used once. */
export class UsedTokens {
  private readonly endOf = new Map<string, number>();
  /** Told of every token spent here. */
  onSpent: (salt: string) => void = () => undefined;

  /** False when it was spent before. */
  spend(salt: string, nowMs: number): boolean {
    if (this.endOf.has(salt)) return false;
    this.learn(salt, nowMs);
    this.onSpent(salt);
    return true;
  }

  /** Takes over what another worker spent. */
  learn(salt: string, nowMs: number): void {
    for (const [known, end] of this.endOf) {
      if (end > nowMs) break;
      this.endOf.delete(known);
    }
    this.endOf.set(salt, nowMs + tokenLifeMs);
  }
}

/**
 * The proof of work of one zone (contract gateway.md §4.4). A token is an HMAC over zone, network, time, difficulty and salt; it
 * lasts 120 s. A solved one is exchanged for a cookie that is an HMAC over zone, network and expiry.
 */
export class Challenge {
  private zoneKey: Buffer | undefined;

  constructor(private readonly zone: { readonly zoneId: string; readonly settings: Policy['challenge'] }, private readonly secret: Buffer, private readonly used: UsedTokens) {}

  isCleared(request: RequestView, nowMs: number): boolean {
    return request.cookie(cookieName).some((cookie) => {
      const [, expires = '', mac = ''] = cookieForm.exec(cookie) ?? [];
      return Number(expires) * 1_000 > nowMs && this.isMac(mac, `clearance|${networkOf(request.facts.clientIp)}|${expires}`);
    });
  }

  /** The page for GET and HEAD of who accepts HTML, JSON for everybody else. */
  ask(facts: RequestFacts, eventId: string | null, nowMs: number): Page {
    if ((facts.method !== 'GET' && facts.method !== 'HEAD') || !acceptsHtml(facts)) return challengeRefusal(eventId);
    const { difficulty } = this.settings;
    const next = `${facts.rawPath}${facts.rawQuery === '' ? '' : `?${facts.rawQuery}`}`;
    return challengePage({ token: this.token(facts.clientIp, difficulty, nowMs), difficulty, next, eventId });
  }

  /** Checks the form `token answer next`. A token is spent only by a right answer. Page null: refused, as the decision says. */
  answer(facts: RequestFacts, nowMs: number): { page: Page | null; decision: Decision } {
    const form = new URLSearchParams(facts.body?.toString('latin1') ?? '');
    const fault = this.fault(form, facts, nowMs);
    if (fault) {
      const decision: Decision = { ...cleanDecision, outcome: 'challenge_failed', source: 'challenge', ruleId: `challenge.${fault}`, refusal: { status: 403, code: 'challenge_failed', retryAfterSeconds: null, page: 'refused' } };
      return { page: null, decision };
    }
    const { validSeconds } = this.settings;
    const expires = String(Math.floor(nowMs / 1_000) + validSeconds);
    const mac = this.mac(`clearance|${networkOf(facts.clientIp)}|${expires}`);
    const cookie = `${cookieName}=${expires}.${mac}; Path=/; Max-Age=${validSeconds}; HttpOnly; SameSite=Lax${facts.scheme === 'https' ? '; Secure' : ''}`;
    const page: Page = { status: 303, body: '', headers: [['location', safeNext(form.get('next') ?? '')], ['set-cookie', cookie], ['cache-control', 'no-store']] };
    return { page, decision: { ...cleanDecision, outcome: 'challenge_passed', source: 'challenge', ruleId: 'challenge.passed' } };
  }

  private token(ip: string, difficulty: number, nowMs: number): string {
    const head = `${Math.floor(nowMs / 1_000)}.${difficulty}.${randomBytes(16).toString('base64url')}`;
    return `${head}.${this.mac(`token|${networkOf(ip)}|${head}`)}`;
  }

  private fault(form: URLSearchParams, facts: RequestFacts, nowMs: number): 'token' | 'expired' | 'answer' | 'used' | null {
    const token = form.get('token') ?? '';
    const [, seconds = '', difficulty = '', salt = '', mac = ''] = tokenForm.exec(token) ?? [];
    if (salt === '' || !this.isMac(mac, `token|${networkOf(facts.clientIp)}|${seconds}.${difficulty}.${salt}`)) return 'token';
    if (Number(seconds) * 1_000 + tokenLifeMs < nowMs) return 'expired';
    const answer = form.get('answer') ?? '';
    if (!answerForm.test(answer) || zeroBits(`${token}:${answer}`) < Number(difficulty)) return 'answer';
    return this.used.spend(salt, nowMs) ? null : 'used';
  }

  private get settings(): Policy['challenge'] {
    return this.zone.settings;
  }

  private mac(text: string): string {
    this.zoneKey ??= Buffer.from(hkdfSync('sha256', this.secret, this.zone.zoneId, 'holdfast gateway challenge', 32));
    return createHmac('sha256', this.zoneKey).update(`${this.zone.zoneId}|${text}`).digest('base64url');
  }

  private isMac(mac: string, text: string): boolean {
    const wanted = Buffer.from(this.mac(text));
    const given = Buffer.from(mac);
    return given.length === wanted.length && timingSafeEqual(given, wanted);
  }
}

function acceptsHtml(facts: RequestFacts): boolean {
  return facts.headers.some(([name, value]) => name === 'accept' && /\btext\/html\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i.test(value));
}

/** A path on this host and nothing else: no other authority, no control characters. */
function safeNext(next: string): string {
  return /^\/(?![/\\])[\x21-\x7e]*$/.test(next) ? next : '/';
}

function zeroBits(text: string): number {
  const hash = createHash('sha256').update(text).digest();
  const first = hash.readUInt32BE(0);
  return first === 0 ? 32 : Math.clz32(first);
}
