import { createHash, createPublicKey, randomBytes, verify, type JsonWebKey, type KeyObject } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { certify, createAuthority, issueLeaf } from '../../src/core/certificates';

export type AcmeStep = 'directory' | 'newNonce' | 'newAccount' | 'newOrder' | 'order' | 'authorization' | 'challenge' | 'finalize' | 'certificate';
/** What is answered instead; `cut`: the connection ends without an answer; `lost`: it takes effect, and the connection ends without an answer. */
export type AcmeFault = { status: number; type: string; retryAfter?: string } | 'cut' | 'lost';
type Problem = { type: string; status: number; detail: string };
type Challenge = { id: string; type: 'dns-01' | 'http-01'; token: string; status: 'pending' | 'processing' | 'valid' | 'invalid'; error?: Problem };
type Authorization = { id: string; order: Order; hostname: string; wildcard: boolean; challenges: Challenge[]; thumbprint: string };
type Order = { id: string; names: string[]; authorizations: Authorization[]; certificate: string | null };
type Signed = { header: { jwk?: JsonWebKey; kid?: string; nonce?: string; url?: string }; payload: Record<string, unknown>; text: string; signature: Buffer };
type Answer = { status: number; body: unknown; headers?: Record<string, string> };

/** How the authority looks at a name, as it would from the outside. */
export interface AcmeEyes {
  txt(name: string): Promise<string[]>;
  get(hostname: string, path: string): Promise<string>;
}

const problem = (type: string, status = 403): Problem => ({ type: `urn:ietf:params:acme:error:${type}`, status, detail: `This server says ${type}.` });
const id = () => randomBytes(8).toString('hex');

/** A certificate authority that speaks ACME (RFC 8555) over HTTPS with a certificate of `caFile`: accounts, orders, both proofs, chains that are really signed. */
export class AcmeServer {
  /** Every call by its step, in order. */
  readonly calls: AcmeStep[] = [];
  readonly orders = new Map<string, Order>();
  /** Set by a test: what becomes of a call; `nth` counts calls of the step from 1. */
  fault: (step: AcmeStep, nth: number) => AcmeFault | null = () => null;
  /** Set by a test: the type of the problem that a proof ends with although it is right. */
  finding: string | null = null;
  daysOfLeaf = 90;
  private readonly authority = createAuthority('Test ACME');
  private readonly nonces = new Set<string>();
  private readonly accounts = new Map<string, KeyObject>();
  private readonly authorizations = new Map<string, Authorization>();
  private server: Server | undefined;
  private base = '';

  constructor(private readonly eyes: AcmeEyes) {}

  readonly caFile = join(tmpdir(), `acme-${id()}.pem`);
  get directoryUrl(): string { return `${this.base}/directory`; }

  async start(): Promise<void> {
    const leaf = issueLeaf(this.authority, { dnsNames: ['localhost'], ipAddresses: ['127.0.0.1'] });
    writeFileSync(this.caFile, this.authority.certificate);
    const server = createServer({ cert: leaf.certificate, key: leaf.key }, (request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk)).on('end', () => {
        void this.answer(request.method ?? '', request.url ?? '', Buffer.concat(chunks).toString()).then((answer) => {
          if (answer === null) return void request.socket.destroy();
          const nonce = id();
          this.nonces.add(nonce);
          const isText = typeof answer.body === 'string';
          const type = isText ? 'application/pem-certificate-chain' : answer.status >= 400 ? 'application/problem+json' : 'application/json';
          response.writeHead(answer.status, { 'Replay-Nonce': nonce, 'Content-Type': type, ...answer.headers });
          response.end(isText ? answer.body : JSON.stringify(answer.body));
        });
      });
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const address = server.address();
    this.base = `https://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`;
    this.server = server;
  }

  async close(): Promise<void> {
    this.server?.closeAllConnections();
    await new Promise((done) => (this.server ? this.server.close(done) : done(null)));
  }

  /** As after a disaster of the authority: it knows nobody any more. */
  forget(): void {
    this.accounts.clear();
    this.orders.clear();
  }

  /** Null: no answer. */
  private async answer(method: string, url: string, text: string): Promise<Answer | null> {
    const [, step = '', ...rest] = url.split('/');
    const known = isStep(step) ? step : null;
    if (known === null) return refusal(problem('malformed', 404));
    this.calls.push(known);
    const fault = this.fault(known, this.calls.filter((call) => call === known).length);
    if (fault === 'cut') return null;
    if (fault !== null && fault !== 'lost') return { ...refusal(problem(fault.type, fault.status)), ...(fault.retryAfter === undefined ? {} : { headers: { 'Retry-After': fault.retryAfter } }) };
    const answer = known === 'directory' ? { status: 200, body: this.directory() } : method === 'HEAD' ? { status: 200, body: '' } : await this.signed(known, rest, url, text);
    return fault === 'lost' ? null : answer;
  }

  private directory(): object {
    const at = (step: AcmeStep) => `${this.base}/${step}`;
    return { newNonce: at('newNonce'), newAccount: at('newAccount'), newOrder: at('newOrder'), meta: { caaIdentities: ['ca.test'] } };
  }

  private async signed(step: AcmeStep, rest: string[], url: string, text: string): Promise<Answer> {
    const given = readSigned(text);
    const { header } = given;
    if (!this.nonces.delete(header.nonce ?? '')) return refusal(problem('badNonce', 400));
    const account = header.kid?.split('/').at(-1) ?? '';
    const key = header.jwk ? createPublicKey({ key: header.jwk, format: 'jwk' }) : this.accounts.get(account);
    if (!key) return refusal(problem('accountDoesNotExist', 400));
    if (header.url !== `${this.base}${url}` || !verify('sha256', Buffer.from(given.text), { key, dsaEncoding: 'ieee-p1363' }, given.signature)) return refusal(problem('malformed', 400));
    if (step === 'newAccount') return this.newAccount(key);
    const thumbprint = thumbprintOf(key);
    if (step === 'newOrder') return this.newOrder(given.payload, thumbprint);
    const [place = '', which = ''] = rest;
    if (step === 'authorization' || step === 'challenge') {
      const authorization = this.authorizations.get(place);
      if (!authorization) return refusal(problem('malformed', 404));
      return { status: 200, body: step === 'authorization' ? this.viewAuthorization(authorization) : await this.tryChallenge(authorization, which, 'payload' in given && given.payload !== null) };
    }
    const order = this.orders.get(place);
    if (!order) return { status: 404, body: '' };
    if (step === 'order') return { status: 200, body: this.viewOrder(order) };
    if (step === 'finalize') return this.finalize(order, given.payload);
    return order.certificate === null ? refusal(problem('orderNotReady')) : { status: 200, body: order.certificate };
  }

  private newAccount(key: KeyObject): Answer {
    const account = thumbprintOf(key);
    const existed = this.accounts.has(account);
    this.accounts.set(account, key);
    return { status: existed ? 200 : 201, body: { status: 'valid' }, headers: { Location: `${this.base}/account/${account}` } };
  }

  private newOrder(payload: Record<string, unknown>, thumbprint: string): Answer {
    const identifiers: unknown = payload['identifiers'];
    const names = Array.isArray(identifiers) ? identifiers.flatMap((one: unknown) => (typeof one === 'object' && one !== null && 'value' in one ? [String(one.value)] : [])) : [];
    const order: Order = { id: id(), names, authorizations: [], certificate: null };
    order.authorizations = names.map((name) => {
      const challenges = (['dns-01', 'http-01'] as const).filter((type) => type === 'dns-01' || !name.startsWith('*.')).map((type): Challenge => ({ id: id(), type, token: randomBytes(24).toString('base64url'), status: 'pending' }));
      return { id: id(), order, hostname: name.replace(/^\*\./, ''), wildcard: name.startsWith('*.'), challenges, thumbprint };
    });
    for (const authorization of order.authorizations) this.authorizations.set(authorization.id, authorization);
    this.orders.set(order.id, order);
    return { status: 201, body: this.viewOrder(order), headers: { Location: `${this.base}/order/${order.id}` } };
  }

  private viewOrder(order: Order): object {
    const states = order.authorizations.map(statusOf);
    const status = order.certificate !== null ? 'valid' : states.includes('invalid') ? 'invalid' : states.every((state) => state === 'valid') ? 'ready' : 'pending';
    return {
      status, identifiers: order.names.map((value) => ({ type: 'dns', value })), authorizations: order.authorizations.map((one) => `${this.base}/authorization/${one.id}`),
      finalize: `${this.base}/finalize/${order.id}`, ...(order.certificate === null ? {} : { certificate: `${this.base}/certificate/${order.id}` }),
    };
  }

  private viewAuthorization(one: Authorization): object {
    return {
      status: statusOf(one), identifier: { type: 'dns', value: one.hostname }, ...(one.wildcard ? { wildcard: true } : {}),
      challenges: one.challenges.map(({ id: which, ...challenge }) => ({ ...challenge, url: `${this.base}/challenge/${one.id}/${which}` })),
    };
  }

  /** Answered at once; the name is looked at afterwards, and whoever asks meanwhile sees `processing`. */
  private async tryChallenge(authorization: Authorization, which: string, begin: boolean): Promise<object> {
    const challenge = authorization.challenges.find((one) => one.id === which);
    if (challenge?.status === 'pending' && begin) {
      challenge.status = 'processing';
      void this.look(authorization, challenge).catch(() => 'connection').then((found) => {
        challenge.status = found === null ? 'valid' : 'invalid';
        if (found !== null) challenge.error = problem(found);
      });
    }
    return { ...challenge, url: `${this.base}/challenge/${authorization.id}/${which}` };
  }

  /** Null: the proof is there; else the type of the problem. */
  private async look({ hostname, thumbprint }: Authorization, { type, token }: Challenge): Promise<string | null> {
    const proof = `${token}.${thumbprint}`;
    const seen = type === 'dns-01' ? await this.eyes.txt(`_acme-challenge.${hostname}`) : [await this.eyes.get(hostname, `/.well-known/acme-challenge/${token}`)];
    const wanted = type === 'dns-01' ? createHash('sha256').update(proof).digest('base64url') : proof;
    return seen.includes(wanted) ? this.finding : 'unauthorized';
  }

  private finalize(order: Order, payload: Record<string, unknown>): Answer {
    if (!order.authorizations.every((one) => statusOf(one) === 'valid')) return refusal(problem('orderNotReady'));
    const der = Buffer.from(String(payload['csr']), 'base64url');
    if (order.names.some((name) => !der.includes(Buffer.concat([Buffer.of(0x82, name.length), Buffer.from(name)])))) return refusal(problem('badCSR', 400));
    const publicKey = createPublicKey({ key: publicKeyIn(der), format: 'der', type: 'spki' });
    order.certificate = certify(this.authority, { dnsNames: order.names, ipAddresses: [] }, { publicKey, days: this.daysOfLeaf }) + this.authority.certificate;
    return { status: 200, body: this.viewOrder(order) };
  }
}

const steps: readonly AcmeStep[] = ['directory', 'newNonce', 'newAccount', 'newOrder', 'order', 'authorization', 'challenge', 'finalize', 'certificate'];
const isStep = (text: string): text is AcmeStep => steps.some((step) => step === text);
const refusal = (body: Problem): Answer => ({ status: body.status, body });

function statusOf({ challenges }: Authorization): 'pending' | 'valid' | 'invalid' {
  const states = challenges.map(({ status }) => status);
  return states.includes('valid') ? 'valid' : states.includes('invalid') ? 'invalid' : 'pending';
}

function readSigned(text: string): Signed {
  const { protected: head, payload, signature } = JSON.parse(text);
  const decoded = (part: string) => Buffer.from(part, 'base64url').toString();
  return { header: JSON.parse(decoded(head)), payload: payload === '' ? null : JSON.parse(decoded(payload)), text: `${head}.${payload}`, signature: Buffer.from(signature, 'base64url') };
}

/** RFC 7638. */
function thumbprintOf(key: KeyObject): string {
  const { crv, kty, x, y } = key.export({ format: 'jwk' });
  return createHash('sha256').update(JSON.stringify({ crv, kty, x, y })).digest('base64url');
}

/** SubjectPublicKeyInfo of a request (RFC 2986): the third member of its first member. */
function publicKeyIn(der: Buffer): Buffer {
  const info = contentOf(der, 0).from;
  let at = contentOf(der, info).from;
  for (let skipped = 0; skipped < 2; skipped++) at = contentOf(der, at).end;
  return der.subarray(at, contentOf(der, at).end);
}

function contentOf(der: Buffer, at: number): { from: number; end: number } {
  const first = der[at + 1] ?? 0;
  const more = first < 0x80 ? 0 : first & 0x7f;
  const length = more === 0 ? first : der.readUIntBE(at + 2, more);
  return { from: at + 2 + more, end: at + 2 + more + length };
}
