import { isIPv4, isIPv6 } from 'node:net';
import { Resolver } from 'node:dns/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { canonicalDomain, isAtOrBelow } from '../../dns/rules/domains';
import { canonicalHost } from '../../dns/rules/names';
import { changeDelegations, readDelegations, type Delegated } from './delegations';
import { registryTld } from './registry';

export const usage = `usage: npm run registry -- <command>

  delegate <domain> <nameserver>… [--glue <name>=<address>]… [--ds "<tag> <algorithm> <type> <digest>"]…
        delegates a domain under .${registryTld} to these name servers, instead of those it had
  remove <domain>
        the domain is not registered any more
  list  what is delegated

A name server inside the domain needs its addresses at the registry, too: --glue ns1.shop.${registryTld}=127.0.0.1, or as
ns1.shop.${registryTld}=127.0.0.1 in place of the name. What is written stays over restarts of \`npm start\`.`;

export type RegistryContext = {
  file: string;
  /** The platform's own, which nobody else registers. */
  suffixes: readonly string[];
  /** Content of dev.json; null while nothing runs. */
  running: string | null;
};

/** Carries out one command; returns what to print. Errors: a sentence for whoever typed it. */
export async function registryCommand(args: readonly string[], context: RegistryContext): Promise<string[]> {
  const { values, positionals: [command, ...rest] } = parseArgs({
    args: [...args], allowPositionals: true, options: { glue: { type: 'string', multiple: true }, ds: { type: 'string', multiple: true }, help: { type: 'boolean', short: 'h' } },
  });
  if (values.help || command === 'help') return [usage];
  switch (command) {
    case 'delegate': return delegate(wishOf(rest, { glue: values.glue ?? [], ds: values.ds ?? [], suffixes: context.suffixes }), context);
    case 'remove': return remove(rest, context);
    case 'list': return list(context);
    case undefined: throw new Error('Say what to do.');
    default: throw new Error(`There is no command "${command}".`);
  }
}

async function delegate(wish: Delegated, context: RegistryContext): Promise<string[]> {
  const { serial } = await changeDelegations(context.file, (present) => {
    const others = present.filter(({ domain }) => domain !== wish.domain);
    const near = others.find(({ domain }) => isAtOrBelow(domain, wish.domain) || isAtOrBelow(wish.domain, domain));
    if (near) throw new Error(`${near.domain} is delegated already, and one of the two would hide the other. Remove it first.`);
    return [...others, wish];
  });
  const bare = wish.names.filter((name) => isAtOrBelow(name, wish.domain) && !wish.glue[name]);
  return [
    `${wish.domain} is delegated to ${wish.names.join(', ')}.`,
    ...bare.map((name) => `${name} is inside ${wish.domain}: without --glue ${name}=<address> nobody finds it.`),
    await answeredFrom(serial, context),
  ];
}

async function remove(rest: readonly string[], context: RegistryContext): Promise<string[]> {
  const [text = '', ...more] = rest;
  if (text === '' || more.length > 0) throw new Error('remove takes one domain.');
  const domain = text.toLowerCase().replace(/\.$/, '');
  const { serial } = await changeDelegations(context.file, (present) => {
    if (!present.some((one) => one.domain === domain)) throw new Error(`${domain} is not delegated.`);
    return present.filter((one) => one.domain !== domain);
  });
  return [`${domain} is not registered any more.`, await answeredFrom(serial, context)];
}

async function list({ file }: RegistryContext): Promise<string[]> {
  const held = (await readDelegations(file))?.delegations ?? [];
  if (held.length === 0) return ['Nothing is delegated.'];
  return held.flatMap(({ domain, names, glue, ds }) => [
    `${domain}  ${names.join(' ')}`, ...Object.entries(glue).map(([name, addresses]) => `  glue ${name} ${addresses.join(' ')}`), ...ds.map((value) => `  ds ${value}`),
  ]);
}

type Options = { glue: readonly string[]; ds: readonly string[]; suffixes: readonly string[] };

/** Errors: everything that is wrong with it, in words. */
function wishOf([domainText = '', ...given]: readonly string[], { glue: extra, ds, suffixes }: Options): Delegated {
  const domain = registrable(domainText, suffixes);
  if (given.length === 0) throw new Error('Name at least one name server: those that the zone shows as its nameservers.');
  const glue: Record<string, string[]> = {};
  const names = given.map((text) => {
    const [name = '', address] = text.split('=');
    const host = hostOf(name, domain);
    if (address !== undefined) addGlue(glue, host, address);
    return host;
  });
  for (const text of extra) {
    const [name = '', address = ''] = text.split('=');
    addGlue(glue, hostOf(name, domain), address);
  }
  const stranger = Object.keys(glue).find((name) => !names.includes(name));
  if (stranger) throw new Error(`${stranger} has glue and is none of the name servers.`);
  const bad = ds.find((value) => !/^\d{1,5} \d{1,3} \d{1,3} (?:[0-9a-fA-F]{2})+$/.test(value));
  if (bad !== undefined) throw new Error(`"${bad}" is no DS record: "<tag> <algorithm> <digest type> <digest in hex>".`);
  return { domain, names: [...new Set(names)], glue, ds: [...ds] };
}

function registrable(text: string, suffixes: readonly string[]): string {
  if (text === '') throw new Error('Name the domain to delegate.');
  const { value, fault } = canonicalDomain(text, { allowTestTlds: true, platformSuffixes: [] });
  if (fault !== undefined) throw new Error(`"${text}" ${fault}.`);
  const { domain } = value;
  if (!isAtOrBelow(domain, registryTld)) throw new Error(`${domain} is not under .${registryTld}: this registry has no other names.`);
  const reserved = [...suffixes, 'nic.test', 'root.test'].find((suffix) => isAtOrBelow(domain, suffix) || isAtOrBelow(suffix, domain));
  if (reserved) throw new Error(`${reserved} belongs to the platform; ${domain} cannot be registered.`);
  return domain;
}

function hostOf(text: string, domain: string): string {
  const { value, fault } = canonicalHost(text, domain, { underscores: false, wildcard: false });
  if (fault !== undefined) throw new Error(`"${text}" is no name server: it ${fault}.`);
  return value;
}

function addGlue(glue: Record<string, string[]>, name: string, text: string): void {
  for (const address of text.split(',')) {
    if (!isIPv4(address) && !isIPv6(address)) throw new Error(`Glue is <name>=<address>: "${address}" is no IP address.`);
    glue[name] = [...glue[name] ?? [], address];
  }
}

const devFile = z.object({ registry: z.object({ host: z.string(), port: z.number() }).nullable() });

/** Waits until the running registry answers from this serial on, so that the next command of a script sees it. */
async function answeredFrom(serial: number, { running }: RegistryContext): Promise<string> {
  const at = running === null ? null : devFile.parse(JSON.parse(running)).registry;
  if (!at) return 'It takes effect when `npm start` runs.';
  const resolver = new Resolver({ timeout: 500, tries: 1 });
  resolver.setServers([`${at.host}:${at.port}`]);
  for (let tries = 0; tries < 50; tries++) {
    const soa = await resolver.resolveSoa(registryTld).catch(() => null);
    if (soa && soa.serial >= serial) return `The registry at ${at.host}:${at.port} answers so.`;
    await pause(100);
  }
  return `The registry at ${at.host}:${at.port} does not answer so yet.`;
}
