import { createHash } from 'node:crypto';
import type { CustomRule, Policy, RateLimit } from '../../gateway/schemas';
import { leavesOf } from '../../gateway/schemas';
import { AddressSet, networkOf } from './address-set';
import { compileMatch, type Predicate } from './match';
import type { RequestView } from './request-view';

export type CompiledRule = { readonly rule: CustomRule; readonly matches: Predicate };
export type CompiledLimit = { readonly limit: RateLimit; readonly matches: Predicate; keyOf(request: RequestView): string };

/** One version of a zone's policy in the form requests are judged by: an immutable object, swapped as a whole. */
export interface CompiledPolicy {
  readonly zoneId: string;
  readonly version: number;
  readonly policy: Policy;
  readonly allow: AddressSet;
  readonly deny: AddressSet;
  readonly countries: ReadonlySet<string>;
  readonly denyAsns: ReadonlySet<number>;
  readonly rules: readonly CompiledRule[];
  readonly limits: readonly CompiledLimit[];
  /** Whether a rule compares the size of the body, which is then read first where it is not announced. */
  readonly comparesBodySize: boolean;
}

/** Errors: a pattern or an address that the API would have refused. */
export function compilePolicy(zoneId: string, version: number, policy: Policy): CompiledPolicy {
  const rules = policy.customRules.filter(({ enabled }) => enabled);
  const limits = policy.rateLimits.filter(({ enabled }) => enabled);
  const leaves = [...rules, ...limits].flatMap(({ match }) => (match ? leavesOf(match) : []));
  return {
    zoneId, version, policy,
    allow: new AddressSet(policy.ipLists.allow),
    deny: new AddressSet(policy.ipLists.deny),
    countries: new Set(policy.geo.countries),
    denyAsns: new Set(policy.geo.denyAsns),
    rules: rules.map((rule) => ({ rule, matches: compileMatch(rule.match) })),
    limits: limits.map((limit) => ({ limit, matches: compileMatch(limit.match), keyOf: compileKey(limit) })),
    comparesBodySize: leaves.some(({ leaf }) => leaf.field === 'bodySize'),
  };
}

/** What a limit counts by: its own id and period, then each part. Long keys become their digest, so that a client cannot fill the memory. */
function compileKey(limit: RateLimit): (request: RequestView) => string {
  const parts = limit.key.map(keyPart);
  const head = `${limit.id}:${limit.periodSeconds}`;
  return (request) => {
    const key = parts.reduce((text, part) => `${text}\n${part(request)}`, head);
    return key.length <= 160 ? key : `${head}\n${createHash('sha256').update(key).digest('base64')}`;
  };
}

function keyPart(part: string): (request: RequestView) => string {
  const [kind, name = ''] = part.split(/:(.*)/s);
  switch (kind) {
    case 'ip': return ({ facts }) => facts.clientIp;
    case 'ip_prefix': return ({ facts }) => networkOf(facts.clientIp);
    case 'host': return ({ facts }) => facts.host;
    case 'path': return ({ facts }) => facts.path;
    case 'country': return ({ facts }) => facts.country ?? '';
    case 'asn': return ({ facts }) => String(facts.asn ?? '');
    case 'header': return (request) => request.header(name.toLowerCase()).join(',');
    case 'cookie': return (request) => request.cookie(name).join(';');
    default: throw new TypeError(`${part} is no part of a limit's key`);
  }
}
