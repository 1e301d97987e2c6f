import { createPublicKey } from 'node:crypto';
import { certify, type KeyedCertificate } from '../../core/certificates';
import type { CertificateIssuer } from '../../gateway/ports';

const days = 90;

/** The installation's own authority signs: for development and for networks whose clients trust it. Nothing is proven. */
export function selfSignedIssuer(authority: () => Promise<KeyedCertificate>): CertificateIssuer {
  return {
    name: 'self_signed',
    caaIdentities: () => Promise.resolve([]),
    async issue({ hostnames, keyPem }) {
      const signer = await authority();
      return { chainPem: certify(signer, { dnsNames: hostnames, ipAddresses: [] }, { publicKey: createPublicKey(keyPem), days }) + signer.certificate };
    },
  };
}
