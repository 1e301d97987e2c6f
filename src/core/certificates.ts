import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes, sign, X509Certificate, type KeyObject } from 'node:crypto';
import ipaddr from 'ipaddr.js';

/**
 * X.509 certificates (RFC 5280) with P-256 keys: the installation's own authority and the leaves it signs. Only what those
 * two need is written here; reading and checking is Node's.
 */
export type KeyedCertificate = { certificate: string; key: string };
export type LeafNames = { dnsNames: readonly string[]; ipAddresses: readonly string[] };

const dayMs = 86_400_000;

/** An authority of its own, good for 20 years, that signs leaves and no other authority. PEM. */
export function createAuthority(commonName: string, now = new Date()): KeyedCertificate {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const subject = nameOf(commonName);
  const extensions = [
    extension('2.5.29.19', true, sequence(boolean(true), integer(Buffer.of(0)))),
    extension('2.5.29.15', true, bits(Buffer.of(0x06), 1)), // keyCertSign, cRLSign
    extension('2.5.29.14', false, octets(keyIdOf(publicKey))),
  ];
  return { certificate: pemOf({ issuer: subject, subject, publicKey, signer: privateKey, extensions, now, days: 20 * 365 }), key: pkcs8Of(privateKey) };
}

/** A server certificate for these names with a key of its own, good for `days` (default 397). PEM. */
export function issueLeaf(authority: KeyedCertificate, names: LeafNames, now = new Date(), days = 397): KeyedCertificate {
  return signLeaf(authority, names, { privateKey: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey, now, days });
}

/** The same for a key that is there already. */
export function signLeaf(authority: KeyedCertificate, names: LeafNames, { privateKey, ...more }: { privateKey: KeyObject; now?: Date; days: number }): KeyedCertificate {
  return { certificate: certify(authority, names, { publicKey: createPublicKey(privateKey), ...more }), key: pkcs8Of(privateKey) };
}

/** The certificate alone, for a key whose owner keeps it. PEM. */
export function certify(authority: KeyedCertificate, names: LeafNames, { publicKey, now = new Date(), days }: { publicKey: KeyObject; now?: Date; days: number }): string {
  const issuer = new X509Certificate(authority.certificate);
  const alternatives = [
    ...names.dnsNames.map((name) => tlv(0x82, Buffer.from(name, 'ascii'))),
    ...names.ipAddresses.map((address) => tlv(0x87, Buffer.from(ipaddr.parse(address).toByteArray()))),
  ];
  const extensions = [
    extension('2.5.29.19', true, sequence()),
    extension('2.5.29.15', true, bits(Buffer.of(0x80), 7)), // digitalSignature
    extension('2.5.29.37', false, sequence(objectId('1.3.6.1.5.5.7.3.1'))), // serverAuth
    extension('2.5.29.17', false, sequence(...alternatives)),
    extension('2.5.29.14', false, octets(keyIdOf(publicKey))),
    extension('2.5.29.35', false, sequence(tlv(0x80, keyIdOf(issuer.publicKey)))),
  ];
  const subject = nameOf(names.dnsNames[0] ?? names.ipAddresses[0] ?? 'server');
  const signer = createPrivateKey(authority.key);
  return pemOf({ issuer: nameOf(commonNameOf(issuer)), subject, publicKey, signer, extensions, now, days });
}

/** What an authority is asked to certify (PKCS#10, RFC 2986): these names, for this key, which signs. No subject: names stand in the extension alone. PEM. */
export function certificateRequest(privateKey: KeyObject, dnsNames: readonly string[]): string {
  const extensions = sequence(extension('2.5.29.17', false, sequence(...dnsNames.map((name) => tlv(0x82, Buffer.from(name, 'ascii'))))));
  const attributes = tlv(0xa0, sequence(objectId('1.2.840.113549.1.9.14'), tlv(0x31, extensions))); // extensionRequest
  const info = sequence(integer(Buffer.of(0)), sequence(), createPublicKey(privateKey).export({ type: 'spki', format: 'der' }), attributes);
  return pem('CERTIFICATE REQUEST', sequence(info, ecdsaWithSha256(), bits(sign('sha256', info, privateKey), 0)));
}

/** A server certificate that vouches for itself and holds no name: what is shown where there is no other. Good for 397 days. PEM. */
export function createSelfSigned(commonName: string, now = new Date()): KeyedCertificate {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const subject = nameOf(commonName);
  const extensions = [
    extension('2.5.29.19', true, sequence()),
    extension('2.5.29.15', true, bits(Buffer.of(0x80), 7)), // digitalSignature
    extension('2.5.29.37', false, sequence(objectId('1.3.6.1.5.5.7.3.1'))), // serverAuth
  ];
  return { certificate: pemOf({ issuer: subject, subject, publicKey, signer: privateKey, extensions, now, days: 397 }), key: pkcs8Of(privateKey) };
}

/** Whether the leaf is signed by the authority, carries all the names and is good for another `days`. */
export function isGoodLeaf(leaf: KeyedCertificate, authority: string, names: LeafNames, days = 30): boolean {
  const certificate = new X509Certificate(leaf.certificate);
  return certificate.checkPrivateKey(createPrivateKey(leaf.key))
    && certificate.verify(new X509Certificate(authority).publicKey)
    && Date.parse(certificate.validTo) - Date.now() > days * dayMs
    && names.dnsNames.every((name) => certificate.subjectAltName?.includes(`DNS:${name}`))
    && names.ipAddresses.every((address) => certificate.checkIP(address) !== undefined);
}

type Certificate = {
  issuer: Buffer; subject: Buffer; publicKey: KeyObject; signer: KeyObject; extensions: Buffer[]; now: Date; days: number;
};

function pemOf(wanted: Certificate): string {
  const algorithm = ecdsaWithSha256();
  const validity = sequence(timeOf(new Date(wanted.now.getTime() - 3_600_000)), timeOf(new Date(wanted.now.getTime() + wanted.days * dayMs)));
  const serial = randomBytes(16);
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40; // positive, and never shorter
  const body = sequence(
    tlv(0xa0, integer(Buffer.of(2))), integer(serial), algorithm, wanted.issuer, validity, wanted.subject,
    wanted.publicKey.export({ type: 'spki', format: 'der' }), tlv(0xa3, sequence(...wanted.extensions)),
  );
  return pem('CERTIFICATE', sequence(body, algorithm, bits(sign('sha256', body, wanted.signer), 0)));
}

function pem(label: string, der: Buffer): string {
  return `-----BEGIN ${label}-----\n${(der.toString('base64').match(/.{1,64}/g) ?? []).join('\n')}\n-----END ${label}-----\n`;
}

function ecdsaWithSha256(): Buffer {
  return sequence(objectId('1.2.840.10045.4.3.2'));
}

function pkcs8Of(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}

function commonNameOf(certificate: X509Certificate): string {
  return /^CN=(.*)$/m.exec(certificate.subject)?.[1] ?? '';
}

function keyIdOf(key: KeyObject): Buffer {
  return createHash('sha256').update(key.export({ type: 'spki', format: 'der' })).digest().subarray(0, 20);
}

function nameOf(commonName: string): Buffer {
  return sequence(tlv(0x31, sequence(objectId('2.5.4.3'), tlv(0x0c, Buffer.from(commonName)))));
}

/** UTCTime until 2049, then GeneralizedTime (RFC 5280 §4.1.2.5). */
function timeOf(date: Date): Buffer {
  const digits = `${date.toISOString().replace(/\D/g, '').slice(0, 14)}Z`;
  return date.getUTCFullYear() < 2050 ? tlv(0x17, Buffer.from(digits.slice(2))) : tlv(0x18, Buffer.from(digits));
}

function extension(id: string, critical: boolean, value: Buffer): Buffer {
  return sequence(objectId(id), ...(critical ? [boolean(true)] : []), octets(value));
}

function sequence(...items: Buffer[]): Buffer { return tlv(0x30, ...items); }
function octets(value: Buffer): Buffer { return tlv(0x04, value); }
function boolean(value: boolean): Buffer { return tlv(0x01, Buffer.of(value ? 0xff : 0)); }
function integer(value: Buffer): Buffer { return tlv(0x02, value); }
function bits(value: Buffer, unused: number): Buffer { return tlv(0x03, Buffer.of(unused), value); }

function objectId(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split('.').map(Number);
  const bytes = [first * 40 + second];
  for (const arc of rest) {
    const groups = [arc & 0x7f];
    for (let left = arc >>> 7; left > 0; left >>>= 7) groups.unshift((left & 0x7f) | 0x80);
    bytes.push(...groups);
  }
  return tlv(0x06, Buffer.from(bytes));
}

function tlv(tag: number, ...contents: Buffer[]): Buffer {
  const content = Buffer.concat(contents);
  if (content.length < 0x80) return Buffer.concat([Buffer.of(tag, content.length), content]);
  const hex = content.length.toString(16);
  const length = Buffer.from(hex.length % 2 ? `0${hex}` : hex, 'hex');
  return Buffer.concat([Buffer.of(tag, 0x80 | length.length), length, content]);
}
