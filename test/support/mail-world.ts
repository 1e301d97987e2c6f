import type { DnsWorld } from './dns-world';
import type { ForeignServer } from './fake-registry';
import type { Tenant } from './tenant';

export type ShownRecord = { purpose: string; required: boolean; type: string; name: string; value: string; ttl: number; status: string; found: string[]; published: boolean };
export type ShownDomain = {
  id: string; domain: string; mailServiceId: string; status: string; canSend: boolean; failureReason: string | null; hostedZoneId: string | null; checkCount: number;
  nextCheckAt: string | null; lastCheckedAt: string | null; verifiedAt: string | null; degradedAt: string | null; verificationDeadline: string; dmarcPolicy: string | null; records: ShownRecord[];
};

/** Calls of mail in a world of DNS. */
export function mailCalls(world: DnsWorld) {
  const service = async (plan = 'launch', tenant: Tenant = world.tenant): Promise<string> => {
    const { status, body } = await world.ask('POST', '/mail/services', { tenant, json: { displayName: 'Mail', plan } });
    if (status !== 200) throw new Error(`not created: ${JSON.stringify(body)}`);
    return body.mailServiceId;
  };
  return {
    service,
    /** A domain in a new service. */
    async domain(name: string, json: object = {}, tenant: Tenant = world.tenant): Promise<ShownDomain> {
      const { status, body } = await world.ask('POST', `/mail/services/${await service('launch', tenant)}/domains`, { tenant, json: { domain: name, ...json } });
      if (status !== 200) throw new Error(`not added: ${JSON.stringify(body)}`);
      return body.domain;
    },
    async shown(ref: string): Promise<ShownDomain> {
      return (await world.ask('GET', `/mail/domains/${ref}`)).body.domain;
    },
    verify: (ref: string) => world.ask('POST', `/mail/domains/${ref}/verify`),
  };
}

/** What a stranger's server is to answer with: these records of a mail domain. */
export function zoneLines({ domain, records }: Pick<ShownDomain, 'domain' | 'records'>, wanted: (record: ShownRecord) => boolean = () => true): string[] {
  return records.filter(wanted).map(({ name, type, value, ttl }) => `${name.slice(0, -domain.length - 1)} ${type} ${ttl} ${value}`);
}

/** A stranger's name server that answers for the domain, delegated by the registry. */
export async function foreignServer(world: DnsWorld, domain: string): Promise<ForeignServer> {
  const name = `ns1.host-${domain}`;
  const server = await world.registry.addServer(name);
  world.registry.delegate(domain, [`ns1.${domain}`], { glue: { [`ns1.${domain}`]: [server.address] } });
  return server;
}
