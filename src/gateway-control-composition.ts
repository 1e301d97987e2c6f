import { acmeIssuer, newAccountKey } from './adapters/certificate-issuer/acme';
import { selfSignedIssuer } from './adapters/certificate-issuer/self-signed';
import type { Config } from './config';
import { ensureInstallationCa } from './db/installation-ca';
import type { CoreDeps } from './deps';
import { createPolicyEvaluator } from './edge/gateway/evaluator';
import type { CertificateIssuer } from './gateway/ports';
import type { GatewayDeps } from './gateway/service';
import { ensureAccount, keepAccountUrl } from './gateway/store/acme-accounts';

/** One switch per port: who signs certificates of proxied names. */
export function certificateIssuerOf({ config, db, secrets }: CoreDeps): CertificateIssuer {
  const { ACME_DIRECTORY_URL: directoryUrl = '', ACME_EMAIL: email = '', ACME_CA_FILE: caFile = null } = config;
  const aad = `acme-account:${directoryUrl}`;
  switch (config.GATEWAY_CERT_ISSUER) {
    case 'self_signed': return selfSignedIssuer(() => ensureInstallationCa(db.prisma, secrets));
    case 'acme': return acmeIssuer({
      directoryUrl, email, caFile, keepAccountUrl: (url) => keepAccountUrl(db.prisma, directoryUrl, url),
      account: async () => {
        const { keySealed, accountUrl } = await ensureAccount(db.prisma, directoryUrl, secrets.seal(newAccountKey(), aad));
        return { keyPem: secrets.open(keySealed, aad), accountUrl };
      },
    });
  }
}

/** What the API knows of the gateway beside its rows. */
export function gatewayOf(config: Config): Pick<GatewayDeps, 'certificateIssuerName' | 'policyEvaluator' | 'gatewayGeo'> {
  return {
    certificateIssuerName: config.GATEWAY_CERT_ISSUER, policyEvaluator: createPolicyEvaluator({ rulesDir: config.GATEWAY_RULES_DIR, crsDir: config.CRS_DIR ?? null }),
    gatewayGeo: { country: config.GATEWAY_GEO_COUNTRY_MMDB !== undefined, asn: config.GATEWAY_GEO_ASN_MMDB !== undefined },
  };
}
