import { mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createSecureContext, type SecureContext } from 'node:tls';
import { isGoodLeaf, issueLeaf, type KeyedCertificate, type LeafNames } from '../../../core/certificates';
import { readFileIfAny, replaceFile } from '../../../core/files';

export type CertificateSource = {
  /** Where the installation's own leaf and ca.pem are kept. */
  directory: string;
  names: LeafNames;
  /** The operator's certificate; null: the installation's own authority signs a leaf. */
  files: { certificate: string; key: string } | null;
  authority: () => Promise<KeyedCertificate>;
};

/**
 * What the gateway shows in TLS now. The installation's leaf is made again when less than 30 days are left or a name is
 * missing; with a good leaf on disk the gateway starts while the database is away. Errors: the operator's files cannot be
 * read or do not fit; no leaf and no database.
 */
export async function readCertificate(source: CertificateSource): Promise<SecureContext> {
  const { certificate, key } = source.files
    ? { certificate: await readFile(source.files.certificate, 'utf8'), key: await readFile(source.files.key, 'utf8') }
    : await ownLeaf(source);
  return createSecureContext({ cert: certificate, key, minVersion: 'TLSv1.2' });
}

async function ownLeaf({ directory, names, authority }: CertificateSource): Promise<KeyedCertificate> {
  const [leafFile, keyFile, authorityFile] = [join(directory, 'gateway.pem'), join(directory, 'gateway.key'), join(directory, 'ca.pem')];
  await mkdir(dirname(directory), { recursive: true });
  await mkdir(directory, { recursive: true, mode: 0o755 });
  const [certificate, key, kept] = await Promise.all([readFileIfAny(leafFile), readFileIfAny(keyFile), readFileIfAny(authorityFile)]);
  const current = await authority().catch((error: unknown) => {
    if (certificate && key && kept) return null;
    throw error;
  });
  const good = certificate && key && kept && (!current || current.certificate === kept) && isGoodLeaf({ certificate, key }, kept, names);
  if (good || !current) return { certificate: certificate ?? '', key: key ?? '' };
  const leaf = issueLeaf(current, names);
  await replaceFile(authorityFile, current.certificate, 0o644);
  await replaceFile(keyFile, leaf.key, 0o600);
  await replaceFile(leafFile, leaf.certificate, 0o644);
  return leaf;
}
