import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Agent } from 'node:https';
import { axios, Client, type Authorization, type Order } from 'acme-client';
import { certificateRequest } from '../../core/certificates';
import { AppError } from '../../core/errors';
import type { CertificateIssuer, CertificateOrder } from '../../gateway/ports';
import { Gone, noteAnswer, translated, UnknownAccount } from './acme-problems';

export type AcmeAccount = { keyPem: string; accountUrl: string | null };
export interface AcmeOptions {
  readonly directoryUrl: string;
  readonly email: string;
  /** Certificates the directory itself is verified with; null: the system's. */
  readonly caFile: string | null;
  /** Our account's key; made at first and the same ever after. */
  account(): Promise<AcmeAccount>;
  keepAccountUrl(url: string | null): Promise<void>;
}

/** P-256, PEM. */
export function newAccountKey(): string {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}

const requestTimeoutMs = 30_000;
const backoff = { backoffAttempts: 30, backoffMin: 250, backoffMax: 5_000 };
let noted = false;

/** A certificate authority that speaks ACME (RFC 8555). One order at a time per certificate; a second run resumes the first's. */
export function acmeIssuer(options: AcmeOptions): CertificateIssuer {
  let ready: Promise<Client> | undefined;
  const client = (): Promise<Client> => {
    ready ??= openClient(options).catch((error: unknown) => {
      ready = undefined;
      throw error;
    });
    return ready;
  };
  return {
    name: 'acme',
    caaIdentities: async () => {
      await client();
      const { data }: { data: unknown } = await axios.get(options.directoryUrl, { timeout: requestTimeoutMs });
      return identitiesIn(data);
    },
    issue: (order, signal) => translated(async () => ({ chainPem: await issue(await client(), order, signal) })).catch(async (error: unknown) => {
      if (error instanceof UnknownAccount) {
        ready = undefined;
        await options.keepAccountUrl(null);
      }
      throw error;
    }),
  };
}

async function openClient(options: AcmeOptions): Promise<Client> {
  axios.defaults.timeout = requestTimeoutMs;
  if (options.caFile !== null) axios.defaults.httpsAgent = new Agent({ ca: await readFile(options.caFile) });
  if (!noted) {
    // Who calls us tries again: the library's interceptors would hold the call for as long as a Retry-After says.
    axios.interceptors.request.clear();
    axios.interceptors.response.clear();
    axios.interceptors.response.use((response) => {
      noteAnswer(response.status, response.data, response.headers['retry-after']);
      return response;
    });
    noted = true;
  }
  const { keyPem, accountUrl } = await options.account();
  const client = new Client({ directoryUrl: options.directoryUrl, accountKey: keyPem, ...(accountUrl === null ? {} : { accountUrl }), ...backoff });
  if (accountUrl === null) {
    await translated(() => client.createAccount({ termsOfServiceAgreed: true, contact: [`mailto:${options.email}`] }));
    await options.keepAccountUrl(client.getAccountUrl());
  }
  return client;
}

async function issue(client: Client, wanted: CertificateOrder, signal: AbortSignal): Promise<string> {
  let order = await resumed(client, wanted.resumeUrl) ?? await begun(client, wanted);
  for (const authorization of order.status === 'pending' ? await client.getAuthorizations(order) : []) {
    signal.throwIfAborted();
    if (authorization.status !== 'valid') await prove(client, wanted, authorization);
  }
  signal.throwIfAborted();
  if (order.status === 'pending') order = await client.getOrder(order);
  if (order.status === 'pending' || order.status === 'ready') {
    order = await client.finalizeOrder(order, certificateRequest(createPrivateKey(wanted.keyPem), wanted.hostnames));
  }
  signal.throwIfAborted();
  if (order.status !== 'valid') order = await client.waitForValidStatus(order);
  return client.getCertificate(order);
}

async function begun(client: Client, wanted: CertificateOrder): Promise<Order> {
  await wanted.mayOrder();
  const order = await client.createOrder({ identifiers: wanted.hostnames.map((value) => ({ type: 'dns', value })) });
  await wanted.saveResumeUrl(order.url);
  return order;
}

/** Null for an order that is over or that the server no longer knows. */
async function resumed(client: Client, url: string | null): Promise<Order | null> {
  if (url === null) return null;
  const known: Order = { url, status: 'pending', identifiers: [], authorizations: [], finalize: '' };
  try {
    const order = await translated(() => client.getOrder(known));
    return order.status === 'invalid' ? null : order;
  } catch (error) {
    if (error instanceof AppError || error instanceof Gone) return null;
    throw error;
  }
}

async function prove(client: Client, { respond }: CertificateOrder, authorization: Authorization): Promise<void> {
  const type = respond.method === 'dns01' ? 'dns-01' : 'http-01';
  const challenge = authorization.challenges.find((offered) => offered.type === type);
  if (!challenge) throw new AppError('certificate_rejected', `The certificate authority offers no ${type} for this name.`);
  const hostname = authorization.identifier.value;
  const keyAuthorization = await client.getChallengeKeyAuthorization(challenge);
  await respond.put(hostname, challenge.token, keyAuthorization);
  try {
    if (challenge.status === 'pending') await client.completeChallenge(challenge);
    await client.waitForValidStatus(authorization);
  } finally {
    await respond.remove(hostname, challenge.token);
  }
}

/** `meta.caaIdentities` of a directory (RFC 8555 §7.1.1). */
function identitiesIn(directory: unknown): string[] {
  const meta: unknown = typeof directory === 'object' && directory !== null && 'meta' in directory ? directory.meta : null;
  const named: unknown = typeof meta === 'object' && meta !== null && 'caaIdentities' in meta ? meta.caaIdentities : null;
  return Array.isArray(named) ? named.filter((name) => typeof name === 'string') : [];
}
