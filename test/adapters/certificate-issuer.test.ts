import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { createServer } from 'node:http';
import { acmeIssuer, newAccountKey, type AcmeOptions } from '../../src/adapters/certificate-issuer/acme';
import { selfSignedIssuer } from '../../src/adapters/certificate-issuer/self-signed';
import { createAuthority } from '../../src/core/certificates';
import { newId } from '../../src/core/ids';
import type { CertificateIssuer, CertificateOrder } from '../../src/gateway/ports';
import { AcmeServer } from '../support/acme-server';

// With ACME_DIRECTORY_URL (and ACME_CA_FILE, ACME_HTTP_PORT where it looks for proofs, e.g. Pebble's 5002) the suite also runs against a server of your own.
const { ACME_DIRECTORY_URL: ownDirectory, ACME_CA_FILE: ownCaFile = null, ACME_HTTP_PORT: ownPort = '5002' } = process.env;
const placed = new Map<string, string>();
const acme = new AcmeServer({ txt: async (name) => [placed.get(name) ?? ''], get: async (_host, path) => placed.get(path.split('/').at(-1) ?? '') ?? '' });
const proofs = createServer((request, response) => response.end(placed.get(request.url?.split('/').at(-1) ?? '')));
beforeAll(async () => {
  await acme.start();
  if (ownDirectory) await new Promise<void>((done) => proofs.listen(Number(ownPort), done));
});
afterAll(async () => {
  await acme.close();
  proofs.close();
});

type Account = { keyPem: string; accountUrl: string | null };
const acmeAt = (options: () => Pick<AcmeOptions, 'directoryUrl' | 'caFile'>): (() => CertificateIssuer) => () => {
  const account: Account = { keyPem: newAccountKey(), accountUrl: null };
  return acmeIssuer({ ...options(), email: 'certificates@holdfast.test', account: async () => account, keepAccountUrl: async (url) => void (account.accountUrl = url) });
};
const authority = createAuthority('test');
const adapters: [string, { open: () => CertificateIssuer; trust: (() => string) | null; resumes: boolean }][] = [
  ['self_signed', { open: () => selfSignedIssuer(async () => authority), trust: () => authority.certificate, resumes: false }],
  ['acme', { open: acmeAt(() => ({ directoryUrl: acme.directoryUrl, caFile: acme.caFile })), trust: null, resumes: true }],
  ...(ownDirectory ? [['acme at ACME_DIRECTORY_URL', { open: acmeAt(() => ({ directoryUrl: ownDirectory, caFile: ownCaFile })), trust: null, resumes: true }] satisfies [string, object]] : []),
];

type Seen = { asked: number; urls: string[]; put: string[]; removed: string[] };
function order(hostnames: string[], method: 'dns01' | 'http01' = 'http01', resumeUrl: string | null = null): CertificateOrder & { seen: Seen } {
  const seen: Seen = { asked: 0, urls: [], put: [], removed: [] };
  return {
    id: newId('crt'), hostnames, resumeUrl, seen, keyPem: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    mayOrder: async () => void (seen.asked += 1), saveResumeUrl: async (url) => void seen.urls.push(url),
    respond: {
      method,
      put: async (fqdn, token, keyAuthorization) => {
        seen.put.push(token);
        placed.set(method === 'dns01' ? `_acme-challenge.${fqdn}` : token, keyAuthorization);
      },
      remove: async (_fqdn, token) => void seen.removed.push(token),
    },
  };
}

describe.each(adapters)('%s', (_name, { open, trust, resumes }) => {
  const never = new AbortController().signal;

  test('gives a chain for the key and the names it was given, and takes every proof away', async () => {
    const wanted = order(['www.private.test', 'api.private.test']);
    const { chainPem } = await open().issue(wanted, never);
    const leaf = new X509Certificate(chainPem);
    expect(leaf.checkPrivateKey(createPrivateKey(wanted.keyPem))).toBe(true);
    expect(leaf.subjectAltName?.split(', ').toSorted()).toEqual(['DNS:api.private.test', 'DNS:www.private.test']);
    const [, above = ''] = chainPem.split(/(?=-----BEGIN)/);
    expect(leaf.verify(new X509Certificate(above).publicKey)).toBe(true);
    if (trust) expect(above).toBe(trust());
    expect(wanted.seen.removed.toSorted()).toEqual(wanted.seen.put.toSorted());
    expect(wanted.seen.urls).toHaveLength(resumes ? 1 : 0);
    expect(wanted.seen.asked).toBe(resumes ? 1 : 0);
  });

  test('goes on with an order that was begun, and begins another when nobody knows it', async () => {
    const issuer = open();
    const begun = order(['resumed.private.test']);
    await issuer.issue(begun, never);
    const [url = ''] = begun.seen.urls;
    const again = { ...order(['resumed.private.test'], 'http01', resumes ? url : null), keyPem: begun.keyPem };
    const { chainPem } = await issuer.issue(again, never);
    expect(new X509Certificate(chainPem).checkPrivateKey(createPrivateKey(begun.keyPem))).toBe(true);
    expect(again.seen.urls).toEqual([]);
    const unknown = order(['resumed.private.test'], 'http01', resumes ? `${url}x` : null);
    await issuer.issue(unknown, never);
    expect(unknown.seen.urls).toHaveLength(resumes ? 1 : 0);
  });
});

test('a wildcard and its apex are proven at one name, and an order that was called off places nothing', async () => {
  const issuer = adapters[1]?.[1].open();
  const wanted = order(['wild.test', '*.wild.test'], 'dns01');
  const { chainPem } = await issuer?.issue(wanted, new AbortController().signal) ?? { chainPem: '' };
  expect(new X509Certificate(chainPem).subjectAltName).toBe('DNS:wild.test, DNS:*.wild.test');
  expect(await issuer?.caaIdentities()).toEqual(['ca.test']);
  const called = order(['off.test'], 'dns01');
  await expect(issuer?.issue(called, AbortSignal.abort())).rejects.toThrow();
  expect(called.seen.put).toEqual([]);
});
