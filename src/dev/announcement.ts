import { rename, rm, writeFile } from 'node:fs/promises';
import { formatAddress, type Addresses } from './addresses';

/** `.holdfast/dev.json` (design.md §7): what a script needs to use this installation. Null: what later parts bring, or what is not ours. */
export interface DevFile {
  readonly apiUrl: string;
  readonly docsUrl: string;
  readonly temporalUiUrl: string | null;
  readonly dns: { readonly host: string; readonly port: number } | null;
  /** The development registry: its first server for `test`. */
  readonly registry: { readonly host: string; readonly port: number } | null;
  /** Where visitors of proxied names are led; `caFile`: the authority their certificates are verified with. */
  readonly gateway: { readonly httpUrl: string; readonly httpsUrl: string; readonly caFile: string };
  readonly postgres: { readonly host: string; readonly port: number };
  /** Where bounces and complaints arrive. */
  readonly smtp: { readonly host: string; readonly port: number } | null;
  /** Mail that was captured, to be read. */
  readonly captureUrl: string;
  readonly processes: readonly { readonly name: string; readonly pid: number }[];
  readonly demo: Demo;
}

export interface Demo {
  readonly email: string;
  readonly password: string;
  readonly orgSlug: string;
  readonly projectSlug: string;
  /** What the project sends mail with, and a key that reads its zones and records; null when the project is gone. */
  readonly mailServiceId: string | null;
  readonly mailDomain: string | null;
  /** mode test: what it sends is captured. */
  readonly mailApiKey: string | null;
  readonly dnsApiKey: string | null;
}

export function describe(addresses: Addresses, facts: { temporalIsOurs: boolean; demo: Demo; processes: DevFile['processes']; authorityFile: string }): DevFile {
  const apiUrl = `http://${formatAddress({ ...addresses.api, host: reachable(addresses.api.host) })}`;
  const postgres = addresses.postgresGateway[0];
  const { http, https } = addresses.gateway;
  const dns = addresses.dns[0];
  return {
    apiUrl,
    docsUrl: `${apiUrl}/docs`,
    temporalUiUrl: facts.temporalIsOurs ? `http://127.0.0.1:${addresses.temporal.uiPort}` : null,
    dns: dns ? { host: reachable(dns.host), port: dns.port } : null,
    registry: addresses.registry && { host: addresses.registry.hosts[1] ?? '', port: addresses.registry.port },
    gateway: { httpUrl: `http://${formatAddress({ ...http, host: reachable(http.host) })}`, httpsUrl: `https://${formatAddress({ ...https, host: reachable(https.host) })}`, caFile: facts.authorityFile },
    postgres: { host: reachable(postgres?.host ?? ''), port: postgres?.port ?? 0 },
    smtp: addresses.smtp ? { host: reachable(addresses.smtp.host), port: addresses.smtp.port } : null,
    captureUrl: `${apiUrl}/captured`,
    processes: facts.processes,
    demo: facts.demo,
  };
}

/** Appears whole or not at all; only its owner can read it. */
export async function writeDevFile(file: string, content: DevFile): Promise<void> {
  await rm(`${file}.new`, { force: true });
  await writeFile(`${file}.new`, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
  await rename(`${file}.new`, file);
}

/** What is printed when all is ready; every command works by copy and paste, one after the other. */
export function welcome({ apiUrl, docsUrl, temporalUiUrl, captureUrl, dns, gateway, postgres, smtp, demo }: DevFile, seconds: string): string {
  const project = `${apiUrl}/v1/api/orgs/${demo.orgSlug}/projects/${demo.projectSlug}`;
  return `
Holdfast is ready (${seconds} s).

  API            ${apiUrl}
  Documentation  ${docsUrl}
  Temporal UI    ${temporalUiUrl ?? 'at the server of TEMPORAL_ADDRESS'}
  DNS            ${dns?.host}:${dns?.port} (UDP and TCP)
  Gateway        ${gateway.httpUrl}, ${gateway.httpsUrl} (where proxied names lead)
  Sent mail      ${captureUrl} (captured, to be read)
  Reports        ${smtp ? `${smtp.host}:${smtp.port} (SMTP; bounces and complaints)` : 'not taken'}
  Postgres       ${postgres.host}:${postgres.port} (the gateway customers connect to)

  Demo owner     ${demo.email}  password ${demo.password}
  Organisation   ${demo.orgSlug}, project ${demo.projectSlug}

Try in another terminal, line by line:

  P=${project}
  curl -s -c jar -H 'Content-Type: application/json' -d '{"email":"${demo.email}","password":"${demo.password}"}' ${apiUrl}/v1/api/auth/sign-in
  S=$(curl -s -b jar -H 'Content-Type: application/json' -d '{"displayName":"First","plan":"trial"}' $P/postgres/services | sed 's/.*"serviceId":"\\([^"]*\\)".*/\\1/')
  curl -s -b jar "$P/operations?resourceId=$S"
  psql "$(curl -s -b jar "$P/postgres/services/$S/credentials?reveal=true" | sed 's/.*"connectionString":"\\([^"]*\\)".*/\\1/')"
  curl -s -b jar -X DELETE $P/postgres/services/$S

Ctrl-C stops everything.
`;
}

/** Where a client on this machine finds what listens on every address. */
function reachable(host: string): string {
  return host === '0.0.0.0' || host === '' ? '127.0.0.1' : host === '::' ? '::1' : host;
}
